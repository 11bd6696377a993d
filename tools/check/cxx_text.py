"""Reads C++ sources as text: blanks comments and literals, matches braces, finds functions.

This is no parser. It handles enough syntax for rules that a reader could check by eye. Blanking
keeps the position of every character, so that offsets and line numbers stay valid.
"""

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<line_comment>//[^\n]*)
  | (?P<block_comment>/\*.*?\*/)
  | (?P<raw>\bu?8?[LU]?R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)")
  | (?P<string>"(?:\\.|[^"\\\n])*")
  | (?P<number>\b[0-9](?:'?[0-9A-Za-z_.])*)
  | (?P<char>'(?:\\.|[^'\\\n])+')
    """,
    re.DOTALL | re.VERBOSE,
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
_SCOPE = re.compile(r"^(inline\s+)?(namespace|class|struct|union|enum)\b")
_LEAD = re.compile(r"\s*(?:(?:public|private|protected)\s*:\s*)*")
_LINKAGE = re.compile(r'^extern\s+"\s*"$')


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def _without(text, kinds):
    def replace(match):
        found = match.group(0)
        if match.lastgroup == "tag" or match.group("raw"):
            return '"' + _blank(found[1:-1]) + '"' if "raw" in kinds else found
        for kind in ("line_comment", "block_comment"):
            if match.group(kind):
                return _blank(found) if kind in kinds else found
        for kind in ("string", "char"):
            if match.group(kind):
                return found[0] + _blank(found[1:-1]) + found[-1] if kind in kinds else found
        return found

    return _TOKEN.sub(replace, text)


def without_comments(text):
    return _without(text, {"line_comment", "block_comment"})


def code_only(text):
    """Returns the text with blanks for comments, contents of literals and preprocessor lines."""
    code = _without(text, {"line_comment", "block_comment", "raw", "string", "char"})
    return _DIRECTIVE.sub(lambda match: _blank(match.group(0)), code)


def includes(text):
    """Returns (line, opening character, path) of every include outside comments."""
    plain = without_comments(text)
    return [
        (line_of(plain, match.start(2)), match.group(1), match.group(2))
        for match in _INCLUDE.finditer(plain)
    ]


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


class UnbalancedBraces(Exception):
    pass


def brackets(code):
    """Maps the offset of each bracket to that of its partner, both ways."""
    partner = {}
    stack = []
    closing = {")": "(", "]": "[", "}": "{"}
    for offset, char in enumerate(code):
        if char in "([{":
            stack.append(offset)
        elif char in closing:
            if not stack or code[stack[-1]] != closing[char]:
                raise UnbalancedBraces(line_of(code, offset))
            start = stack.pop()
            partner[start] = offset
            partner[offset] = start
    if stack:
        raise UnbalancedBraces(line_of(code, stack[-1]))
    return partner


@dataclass
class Function:
    head: str
    first_line: int
    last_line: int

    @property
    def lines(self):
        return self.last_line - self.first_line + 1


def _strip_template(head):
    """Drops leading attributes and `template <...>` with a requires clause in parentheses."""
    while True:
        before = head
        head = re.sub(r"^\s*(\[\[.*?\]\]|export\b)\s*", "", head, flags=re.DOTALL).lstrip()
        head = re.sub(r"^(public|private|protected)\s*:\s*", "", head)
        if match := re.match(r"template\s*<", head):
            depth, end = 1, match.end()
            while depth and end < len(head):
                depth += {"<": 1, ">": -1}.get(head[end], 0)
                end += 1
            head = head[end:].lstrip()
        if match := re.match(r"requires\b.*?\b(?=class\b|struct\b)", head, flags=re.DOTALL):
            head = head[match.end():]
        if head == before:
            return head


def functions(code):
    """Returns every function at namespace or class level. Nested bodies belong to it."""
    partner = brackets(code)
    found = []
    start = offset = 0  # `start`: start of the current declaration
    while offset < len(code):
        char = code[offset]
        if char in "([":
            offset = partner[offset]
        elif char in ";}":
            start = offset + 1
        elif char == "{":
            head = _strip_template(code[start:offset].strip())
            end = partner[offset]
            following = code[end + 1:].lstrip()[:1]
            if _SCOPE.match(head) or _LINKAGE.match(head):
                start = offset + 1  # go inside
            elif "(" not in head:
                offset = end  # an initializer
            elif following in (",", "{"):
                offset = end  # one of a constructor's member initializers
            else:
                first = start + _LEAD.match(code[start:offset]).end()
                found.append(Function(head, line_of(code, first), line_of(code, end)))
                offset = end
                start = end + 1
        offset += 1
    return found
