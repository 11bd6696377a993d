"""Reads classes as text: their members, whether they are aggregates, and their alignment.

Names are not resolved: a type is found by its last name among the classes of the file and of all
headers.
"""

import re
from dataclasses import dataclass, field

import cxx_text

HEAD = re.compile(r"\b(struct|class)\s+((?:\[\[[^\]]*\]\]\s*)*)(alignas\s*\([^()]*\)\s*)?"
                  r"([A-Za-z_]\w*(?:::\w+)*)\s*(?:final\s*)?"
                  r"(?::(?!:)([^;{}()]*(?:\([^;{}()]*\)[^;{}()]*)*))?\{")
ENUM = re.compile(r"\benum\s+(?:class\s+|struct\s+)?([A-Za-z_]\w*)")
LABEL = re.compile(r"^\s*(public|private|protected)\s*:(?!:)")
NO_MEMBER = re.compile(r"^(?:inline\s+)?(?:using|typedef|friend|static|enum|struct|class|union|"
                       r"template|constexpr|static_assert|concept)\b")
ALIAS = re.compile(r"\busing\s+([A-Za-z_]\w*)\s*=\s*([^;]+);")
ALIGNED = re.compile(r"\balignas\s*\(([^()]*)\)")
ARGUMENTS = re.compile(r"<[^<>]*>")
# Types with a trivial destructor, by their last name.
TRIVIAL = re.compile(
    r"^(?:bool|char|char8_t|signed|unsigned|short|int|long|float|double|void|byte|nullptr_t|"
    r"u?int(?:8|16|32|64|ptr|max)_t|s?size_t|ptrdiff_t|string_view|span|atomic|atomic_bool|"
    r"coroutine_handle|reference_wrapper|nanoseconds|microseconds|milliseconds|seconds|minutes|"
    r"hours|duration|time_point|error_code|id|pid_t|time_t|timespec|sockaddr\w*|in6?_addr|iovec|"
    r"msghdr|cmsghdr|source_location|type_index)$")
WRAPPERS = {"optional", "array", "pair", "tuple", "variant", "expected"}
ALIGNMENT_OF_NEW = 16


@dataclass
class Class:
    """The properties of a class that its text shows."""

    name: str
    members: list = field(default_factory=list)  # types of its variables
    bases: list = field(default_factory=list)
    made: bool = False  # True with a constructor, virtual functions or non-public variables
    ended: bool = False  # True with a user-defined destructor
    awaited: bool = False  # True for an awaiter or a type with operator co_await
    aligned: bool = False  # True if the class or a member is aligned beyond `new`
    line: int = 0

    @property
    def aggregate(self):
        return not self.made


def statements(code, partner, opening):
    """Yields the declarations directly in a class, without bodies of functions."""
    offset = opening + 1
    text = ""
    while offset < partner[opening]:
        char = code[offset]
        if char == ";":
            yield text
            text = ""
        elif char == "{":
            offset = partner[offset]
            text += "{}"
            following = code[offset + 1:offset + 80].lstrip()[:1]
            if "(" in without_template_arguments(text) and following not in (",", "{", ";"):
                yield text  # a function's body ends its declaration
                text = ""
        elif char in "([":
            text += code[offset:partner[offset] + 1]
            offset = partner[offset]
        else:
            text += char
        offset += 1


def without_template_arguments(text):
    """Returns the text without angle brackets and their content."""
    while (shorter := ARGUMENTS.sub("", text)) != text:
        text = shorter
    return text


def variable(text):
    """Returns the type of the declared variable, or None."""
    if NO_MEMBER.match(text):
        return None
    written = re.split(r"=|\{", text, maxsplit=1)[0].strip()
    if "(" in without_template_arguments(written) or "operator" in written:
        return None
    found = re.match(r"(.*[\s&*>])[A-Za-z_]\w*(?:\s*\[[^\]]*\]|\s*:\s*\d+)*$", written, re.DOTALL)
    return found and found.group(1).strip()


def over_aligned(text):
    """Returns true if an alignas may exceed the alignment of `new`; a name always may."""
    return any(not amount.strip().isdigit() or int(amount) > ALIGNMENT_OF_NEW
               for amount in ALIGNED.findall(text))


def class_at(code, partner, head):
    """Returns the Class of a matched head."""
    kind, _, alignment, name, bases = head.groups()
    found = Class(name.split("::")[-1], line=cxx_text.line_of(code, head.start()))
    listed = [base.strip() for base in re.split(r",(?![^<>]*>)", bases or "") if base.strip()]
    found.bases = [re.sub(r"\b(?:public|virtual)\b", "", base).strip() for base in listed]
    hidden = r"private|protected|virtual"
    found.made = any(re.search(rf"\b(?:{hidden})\b", base) or
                     (kind == "class" and not re.search(r"\bpublic\b", base)) for base in listed)
    found.aligned = bool(alignment) and over_aligned(alignment)
    public = kind == "struct"
    for text in statements(code, partner, head.end() - 1):
        while label := LABEL.match(text):
            public = label.group(1) == "public"
            text = text[label.end():]
        read(found, re.sub(r"\[\[.*?\]\]", "", text, flags=re.DOTALL).strip(), public)
    return found


def read(found, text, public):
    """Updates `found` from one declaration of the class."""
    if re.search(rf"~\s*{found.name}\s*\(", text):
        found.ended |= not re.search(r"=\s*default$", text)
    elif text.startswith("using"):
        found.made |= is_inherited(without_template_arguments(text))
    elif re.search(rf"(?:^|[\s)]){found.name}\s*\(", without_template_arguments(text)):
        found.made = True
    found.made |= bool(re.match(r"virtual\b", text) or re.search(r"\)[^()]*\boverride\b", text))
    found.awaited |= bool(re.search(r"\bawait_ready\s*\(|\boperator\s+co_await\b", text))
    if kind := variable(ALIGNED.sub("", text).strip()):
        found.members.append(kind)
        found.made |= not public
        found.aligned |= over_aligned(text)


def is_inherited(text):
    """Returns true if a using declaration inherits constructors: `using Base::Base`."""
    parts = text.removeprefix("using").strip().split("::")
    return len(parts) > 1 and parts[-1].strip() == parts[-2].strip()


def classes(code):
    """Returns all defined classes in the order of their heads; none if braces do not match."""
    try:
        partner = cxx_text.brackets(code)
    except cxx_text.UnbalancedBraces:
        return []
    return [class_at(code, partner, head) for head in HEAD.finditer(code)
            if not re.search(r"\b(?:enum|friend)\s*$", code[:head.start()][-40:])]


class Types:
    """The types of a repository, by their last names."""

    def __init__(self, repository):
        self.of_files = {file.path: classes(file.code) for file in repository.cxx}
        self.of_headers = {}
        self.enums = set()
        self.aliases = {}
        for file in repository.cxx:
            self.enums.update(ENUM.findall(file.code))
            for name, written in ALIAS.findall(file.code):
                self.aliases.setdefault(name, set()).add(written.strip())
            if file.is_header:
                for each in self.of_files[file.path]:
                    self.of_headers.setdefault(each.name, []).append(each)

    def named(self, file, name):
        """Returns the classes that a name may mean in a file."""
        last = without_template_arguments(name).split("::")[-1].strip()
        own = [each for each in self.of_files[file.path] if each.name == last]
        return own or self.of_headers.get(last, [])

    def trivial(self, file, written, seen=()):
        """Returns true if the text shows that the type has a trivial destructor."""
        written = re.sub(r"\b(?:const|mutable|volatile|typename)\b", "", written).strip()
        if written.endswith(("*", "&")):
            return True
        name, _, arguments = written.partition("<")
        last = name.split("::")[-1].split()[-1] if name.split() else ""
        if last in WRAPPERS:
            inner = re.split(r",(?![^<>]*>)", arguments.rsplit(">", 1)[0])
            return all(each.strip().isdigit() or self.trivial(file, each, seen) for each in inner)
        if TRIVIAL.match(last) or last in self.enums:
            return True
        if last in seen:
            return False
        if found := self.named(file, last):
            return all(self.trivially_destroyed(file, each, (*seen, last)) for each in found)
        found = self.aliases.get(last, ())
        return bool(found) and all(self.trivial(file, each, (*seen, last)) for each in found)

    def trivially_destroyed(self, file, each, seen=()):
        return not each.ended and all(self.trivial(file, part, seen)
                                      for part in each.members + each.bases)

    def fragile(self, file, written):
        """Returns true for an aggregate with a non-trivial destructor: GCC 12 may call it twice."""
        if without_template_arguments(written).split("::")[-1] == "array":
            return not self.trivial(file, written)
        return any(each.aggregate and not self.trivially_destroyed(file, each)
                   for each in self.named(file, written))
