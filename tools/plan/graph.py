"""The include graph of the repository: which tests see a file, and which floors it reaches."""

import collections
from functools import cached_property

import tables  # first: it lets tools/check be found
import floors
import repository


class Graph:
    """Includes are edges. They may name files that do not exist, as a change may delete them."""

    def __init__(self, root):
        self.repository = repository.Repository(root)
        self.files = self.repository.files
        self.includers = collections.defaultdict(set)  # direct ones, by the path that they include
        for file in self.repository.cxx:
            for _, _, path in file.includes:
                self.includers[path].add(file.path)

    @cached_property
    def tests(self):
        """The files of test binaries: {path: binary}."""
        found = {}
        for path in self.files:
            if path.endswith("_test.cpp") and (binary := tables.binary_of(path)):
                found[path] = binary
        return found

    def included(self, path):
        """Returns the files of this repository that a file includes directly."""
        if path not in self.files:
            return []
        return [each.path for _, each in self.repository.own_includes(self.files[path])]

    def headers_of(self, path):
        """Returns the headers that say what a file is for: its own path, the header of its unit,
        or, if the unit has no header, the headers beside it that it includes."""
        if path.endswith(".hpp"):
            return [path]
        own = tables.unit_of(path) + ".hpp"
        if own in self.files or own in self.includers:
            return [own]
        folder = path.rpartition("/")[0]
        return [each for each in self.included(path) if each.rpartition("/")[0] == folder]

    def test_of(self, path):
        """Returns the test of a file's unit, if it exists."""
        test = tables.unit_of(path) + "_test.cpp"
        return test if test in self.tests else None

    def tests_of_room(self, path):
        """Returns the tests in the room of a file under weir/; in its folder for other files."""
        place = floors.place_of(path)
        if place is not None:
            if place[1] is None:
                return []
            return [test for test in self.tests if floors.place_of(test) == place]
        folder = path.rpartition("/")[0]
        return [test for test in self.tests if test.rpartition("/")[0] == folder]

    def users(self, path):
        """Returns the files that include a header, directly or not."""
        seen, waiting = set(), [path]
        while waiting:
            new = self.includers[waiting.pop()] - seen
            seen |= new
            waiting.extend(new)
        return seen

    def tests_that_include(self, path):
        """Returns the tests that include a header directly. A header for tests also counts if
        other files for tests include it for them."""
        if not tables.is_test(path):
            return sorted(self.includers[path] & self.tests.keys())
        seen, waiting = {path}, [path]
        while waiting:
            for user in self.includers[waiting.pop()] - seen:
                if tables.is_test(user):
                    seen.add(user)
                    waiting.append(user)
        return sorted(seen & self.tests.keys())

    @cached_property
    def _sources_behind(self):
        """The sources that a program may link if it includes a header: {header: sources}. They are
        the sources of the header's room that include it, which is wide but safe."""
        behind = collections.defaultdict(set)
        for file in self.repository.cxx:
            if file.is_source and file.path.startswith("weir/") and file.path not in self.tests:
                place = floors.place_of(file.path)
                for header in {*self.headers_of(file.path), *self.included(file.path)}:
                    if floors.place_of(header) == place:
                        behind[header].add(file.path)
        return behind

    def _closure(self, beginning, enters):
        """Returns {path: file of the beginning that leads there}, over includes and the sources
        behind headers. It goes on from the files that `enters` accepts."""
        origin = {path: path for path in beginning}
        waiting = list(beginning)
        while waiting:
            path = waiting.pop()
            following = {*(each for _, _, each in self.files[path].includes),
                         *self._sources_behind[path]} if path in self.files else ()
            for each in sorted(following):
                if each not in origin and enters(each):
                    origin[each] = origin[path]
                    waiting.append(each)
        return origin

    @cached_property
    def _reach(self):
        """{floor: {path: file of the floor that uses it}}."""
        reach = {}
        for floor in floors.FLOORS:
            own = [path for path in self.files if floors.floor_of(path) == floor and
                   path.endswith((".cpp", ".hpp"))]
            libraries = [path for path in own if not tables.is_test(path)]
            found = self._closure(libraries, lambda path: not tables.is_test(path))
            # Of what tests use beside their floor, only the code for tests counts. What that code
            # uses of higher floors is left to the tests of those floors.
            for_tests = self._closure([path for path in own if tables.is_test(path)],
                                      lambda path: tables.is_test(path) or
                                      floors.floor_of(path) in floors.TEST_FLOORS)
            reach[floor] = for_tests | found
        return reach

    def floors_reached(self, path):
        """Returns {floor: file of the floor that uses the path}, from the lowest floor up.

        A floor is reached if one of its sources includes the file, or includes a header whose
        sources are or include the file, and so on. Only that can link the file: every source
        includes its own header or one beside it, see tools/check/content.py. Tests count with the
        test code that they include."""
        reached = {floor: users[path] for floor, users in self._reach.items() if path in users}
        own = floors.floor_of(path)
        if own in floors.FLOORS:
            reached.setdefault(own, path)  # a deleted file
        return {floor: reached[floor] for floor in floors.FLOORS if floor in reached}
