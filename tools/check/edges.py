"""Checks the edges between floors: the includes, CMakeLists.txt and ARCHITECTURE.md agree.

A floor has an edge to each floor whose headers it includes itself. Includes of tests and fixtures
do not count. weir_floor(... DEPENDS ...) in CMakeLists.txt names all edges of a floor. The picture
in ARCHITECTURE.md, a block of the language `floors`, has a line for each floor. It leaves out the
edges that others imply: with `http -> tls` and `tls -> net` it has no `http -> net`.

The floors that weir_floor_tests() and weir_floor_fixtures() link are only checked in one direction:
they lead to all floors that the tests and fixtures include.
"""

import re

from floors import FLOORS, floor_of, is_for_tests

LISTS = "CMakeLists.txt"
DOCUMENT = "ARCHITECTURE.md"
KEYWORD = re.compile(r"\b(DEPENDS|LIBS|INCLUDES|PRECOMPILE)\b|\$\{\w+\}")
PICTURE = re.compile(r"^```floors\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# A floor, its edges, and what the floor is.
PICTURE_LINE = re.compile(r"^(\w+)(?: +-> (\w+(?:, \w+)*))?(?: {2,}\S.*)?$")


class Calls:
    """The calls of one function in CMakeLists.txt: for each floor its line, DEPENDS and
    PRECOMPILE."""

    def __init__(self, lists, function):
        self.lines, self.depends, self.precompiled = {}, {}, {}
        text = re.sub(r"#[^\n]*", "", lists.text)  # a comment may hold a bracket
        for match in re.finditer(rf"^ *{function}\(\s*(\w+)([^)]*)\)", text, re.MULTILINE):
            parts = KEYWORD.split(match[2])
            arguments = {key: names.split() for key, names in zip(parts[1::2], parts[2::2])}
            self.lines[match[1]] = text.count("\n", 0, match.start()) + 1
            self.depends[match[1]] = arguments.get("DEPENDS", [])
            self.precompiled[match[1]] = arguments.get("PRECOMPILE", [])


def reachable(edges, floors):
    """Returns the floors, and all floors to which edges lead from them."""
    reached, waiting = set(), list(floors)
    while waiting:
        floor = waiting.pop()
        if floor not in reached:
            reached.add(floor)
            waiting += edges.get(floor, ())
    return reached


def without_implied(edges, floor):
    """Returns the edges of the floor to which no longer path leads."""
    return {target for target in edges[floor]
            if target not in reachable(edges, [other for other in edges[floor] if other != target])}


def included_edges(repository):
    """Returns {floor: {other floor: (file, line, path) of its first include}}."""
    edges = {}
    for file in repository.cxx:
        own = floor_of(file.path)
        if own not in FLOORS or file.is_test or is_for_tests(file.path):
            continue
        found = edges.setdefault(own, {})
        for line, included in repository.own_includes(file):
            floor = floor_of(included.path)
            if floor in FLOORS and floor != own:
                found.setdefault(floor, (file, line, included.path))
    return edges


def check_lists(repository, report):
    """DEPENDS of a floor names exactly the floors that it includes."""
    lists = repository.files.get(LISTS)
    if lists is None:
        return
    calls, included = Calls(lists, "weir_floor"), included_edges(repository)
    for floor, line in calls.lines.items():
        if floor not in included:
            report(lists, line, "edges", f"{floor} is not a floor with files")
        for target in calls.depends[floor]:
            if target not in included.get(floor, ()):
                report(lists, line, "edges",
                       f"{floor} DEPENDS {target}, but no file of {floor} includes {target}")
    for floor, found in included.items():
        if floor not in calls.lines:
            report(lists, 1, "edges", f"lacks weir_floor({floor})")
            continue
        for target, (file, line, path) in found.items():
            if target not in calls.depends[floor]:
                report(file, line, "edges", f"{path}: weir_floor({floor} DEPENDS ...) lacks "
                                            f"{target}")


def check_picture(repository, report):
    """The picture has exactly the edges that no other edges imply."""
    document = repository.files.get(DOCUMENT)
    if document is None:
        return
    picture = PICTURE.search(document.text)
    if picture is None:
        report(document, 1, "edges", "has no picture of the floors: a block of language `floors`")
        return
    first = document.text.count("\n", 0, picture.start(1)) + 1
    edges, drawn = included_edges(repository), set()
    for number, text in enumerate(picture[1].splitlines(), first):
        line = PICTURE_LINE.match(text)
        if line is None or line[1] not in edges or line[1] in drawn:
            report(document, number, "edges", f"not a line `floor -> floor, floor` of the picture, "
                                              f"or not of a new floor: {text}")
            continue
        drawn.add(line[1])
        targets = set(line[2].split(", ")) if line[2] else set()
        needed = without_implied(edges, line[1])
        for target in sorted(targets - needed):
            why = "others imply it" if target in edges[line[1]] else "there is no such include"
            report(document, number, "edges", f"edge {line[1]} -> {target}: {why}")
        for target in sorted(needed - targets):
            report(document, number, "edges", f"lacks the edge {line[1]} -> {target}")
    for floor in sorted(edges.keys() - drawn):
        report(document, first, "edges", f"the picture lacks the floor {floor}")


def check_tests(repository, report):
    """Test binaries and libraries of fixtures link the floors that their files include."""
    lists = repository.files.get(LISTS)
    if lists is None:
        return
    edges = Calls(lists, "weir_floor").depends
    tests, fixtures = Calls(lists, "weir_floor_tests"), Calls(lists, "weir_floor_fixtures")

    def check_linked(calls, floor, file, line, found):
        also = [name.removesuffix("_fixtures") for name in calls.depends[floor]]
        linked = reachable(edges, [floor, *also])
        for path, target in found:
            if target not in linked:
                report(file, line, "edges", f"{path} leads to {target}, which the library or "
                                            f"binary of the tests of {floor} does not link")

    for file in repository.cxx:
        is_fixture = file.is_source and is_for_tests(file.path)
        is_test = file.path.endswith("_test.cpp")
        calls = tests if is_test else fixtures
        if (is_test or is_fixture) and floor_of(file.path) in calls.lines:
            for line, included in repository.own_includes(file):
                check_linked(calls, floor_of(file.path), file, line,
                             floors_behind(repository, included))
    for floor, paths in tests.precompiled.items():
        for path in paths:
            if path in repository.files:
                check_linked(tests, floor, lists, tests.lines[floor],
                             floors_behind(repository, repository.files[path]))
            else:
                report(lists, tests.lines[floor], "edges", f"{path} does not exist")


def floors_behind(repository, header):
    """Yields (path, floor) of the header and, if it is a fixture, of all that it includes."""
    seen, waiting = set(), [header]
    while waiting:
        header = waiting.pop()
        if header.path in seen:
            continue
        seen.add(header.path)
        if floor_of(header.path) in FLOORS:
            yield header.path, floor_of(header.path)
        if header.is_test or is_for_tests(header.path):
            waiting += [other for _, other in repository.own_includes(header)]


CHECKS = [check_lists, check_picture, check_tests]
