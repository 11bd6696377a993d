"""Whatever can be awaited says what becomes of it when it is cancelled, and a test cancels it.

An awaitable is a public function, in a header of a floor that waits, that returns a task or another
type with co_await. A "Cancel:" line is in its doc comment, in that of what it returns, or in one
further up in the same paragraph; and tests/cancel_sweep*_test.cpp has a case of its name, or
NOT_SWEPT says what is done instead.
"""

import re

import cxx_text
import floors

WAITING_FLOORS = {"task", "cores", "net", "http", "app"}
SWEEP = re.compile(r"tests/cancel_sweep\w*_test\.cpp$")
# By name, from its start on.
NOT_SWEPT = {
    "this_context": "it does not wait",
    "yield": "it returns in the next round, whatever happens",
    "as_task": "what it is given has its own case",
    "Scope::children_finished": "it is what with_scope() ends with",
    "http::LiveRoutes::(head|post|put|patch|del|options|add)": "as get()",
    "http::(serve|serve_with|accept_connections)": "they are serve_on(), and a part of it",
    "http::(serve_connection|turn_away)": "connection_strikes_test.cpp, in every turn",
    "http::(BodyReader|BodySource|Exchange|OpenConnection|TimedStream|Transport)::": "there, too",
    "http::(Handler|Middleware|RouteMatch)::": "they call what a route was given: there, too",
    "http::(OwnedRoutes|RouteBoard|RouteSeat)::": "parts of an App: replacement_steps_test.cpp",
    "files::(read_some|write_all|sync)$": "parts of files::File",
    "names::(NameFiles|NameServers|SharedLookup)::": "parts of a Resolver: resolver_steps_test.cpp",
}

AWAITED = re.compile(r"\boperator co_await\b|\bawait_suspend\b")
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\s+(?:\[\[.*?\]\]\s*)?(?:class\s+)?"
                   r"([\w:]*)")
ACCESS = re.compile(r"\b(public|private|protected)\s*:(?!:)")
# What a function returns, and its name.
PLAIN = re.compile(r"((?:\w+::)*\w+)(?:<.*>)?\s*&{0,2}\s+(operator|\w+)\s*$", re.DOTALL)
TRAILING = re.compile(r"\)\s*(?:const\s*)?(?:noexcept\s*)?->\s*((?:\w+::)*\w+)")
INTERNAL = {"detail", "wiring"}  # namespaces
PARAGRAPH_ENDS = re.compile(r"^\s*$|^\s*\w+:$|^[^/]*\b(?:class|struct|namespace)\b.*\{$")
MACHINERY = re.compile(r"^await_|^get_return_object$|^final_suspend$|^yield_value$")


def declarations(code):
    """(offset, names of the scopes around it, whether it is public, head) of each declaration at
    namespace or class level."""
    partner = cxx_text.brackets(code)
    scopes = []  # [end, name, access]
    start = offset = 0
    while offset < len(code):
        char = code[offset]
        if scopes and offset == scopes[-1][0]:
            scopes.pop()
            start = offset + 1
        elif char in "([":
            offset = partner[offset]
        elif char in ";{":
            labels = ACCESS.findall(code[start:offset])
            if labels and scopes:
                scopes[-1][2] = labels[-1]
            head = ACCESS.split(code[start:offset])[-1].lstrip()
            first = offset - len(head)
            opened = None
            if char == "{" and "(" not in head:
                opened = SCOPE.search(re.sub(r"<[^<>]*>", "", head))
            if opened and opened[1] != "enum":
                scopes.append([partner[offset], opened[2],
                               "private" if opened[1] == "class" else "public"])
            else:
                public = all(access == "public" for _, _, access in scopes)
                names = [name for _, written, _ in scopes for name in written.split("::") if name]
                yield first, names, public, head
                if char == "{":
                    offset = partner[offset]
            start = offset + 1
        offset += 1


def returned(head):
    """(the type that a function returns, without namespaces and arguments, its name), or None."""
    found = PLAIN.search(head[:head.index("(")]) if "(" in head else None
    if found is None or re.search(r"\b(using|friend|return)\b", head):
        return None
    trailing = TRAILING.search(head)
    written = trailing[1] if trailing else found[1]
    return written.split("::")[-1], found[2] + ("()" if found[2] == "operator" else "")


def headers(repository):
    for file in repository.cxx:
        if file.is_header and not file.is_fixture and floors.floor_of(file.path) in WAITING_FLOORS:
            yield file


def above(file, line, goes_on):
    """The lines above one (counted from 1) as long as each `goes_on`."""
    first = line - 1
    while first > 0 and goes_on(file.lines[first - 1]):
        first -= 1
    return "\n".join(file.lines[first:line - 1])


def says_cancel(file, line, type_name):
    paragraph = above(file, line, lambda each: not PARAGRAPH_ENDS.search(each))
    documented_type = re.compile(rf"^ *///.*\bCancel:.*\n(?: *///.*\n)*"
                                 rf" *(?:class|struct)\b[^;{{(]*\b{type_name}\b", re.MULTILINE)
    return re.search(r"///.*\bCancel:", paragraph) or documented_type.search(file.text)


def awaitables(repository):
    """(file, line, name, whether it is documented) of each."""
    for file in headers(repository):
        found = list(declarations(file.code))
        types = {"Task"} | {scopes[-1] for _, scopes, _, head in found
                            if scopes and AWAITED.search(head)}
        for offset, scopes, public, head in found:
            result = returned(head) if public and not INTERNAL.intersection(scopes) else None
            if result is None or MACHINERY.search(result[1]):
                continue
            line = cxx_text.line_of(file.code, offset)
            doc = above(file, line, lambda each: each.lstrip().startswith("///"))
            if result[0] in types or "`co_await " in doc:
                name = "::".join([*scopes, result[1]]).removeprefix("weir::")
                fine = head.rstrip().endswith("override") or says_cancel(file, line, result[0])
                yield file, line, name, fine


def check_awaitables(repository, report):
    said = "\n".join(file.text for path, file in repository.files.items() if SWEEP.search(path))
    cases = re.findall(r'SweepCase\{\s*"([^"]*)"', said)
    used = set()
    for file, line, name, documented in awaitables(repository):
        if not documented:
            report(file, line, "cancel", f"{name}: what does it do when it is cancelled?")
        instead = [pattern for pattern in NOT_SWEPT if re.match(pattern, name)]
        used.update(instead)
        if not instead and not any(re.match(re.escape(name) + r"(?: |$)", case) for case in cases):
            report(file, line, "cancel", f"no case of tests/cancel_sweep*_test.cpp is of {name}")
    own = repository.files.get("tools/check/awaitables.py")
    for pattern in NOT_SWEPT if own else ():
        if pattern not in used:
            report(own, 1, "cancel", f"nothing is called {pattern} any more")


CHECKS = [check_awaitables]
