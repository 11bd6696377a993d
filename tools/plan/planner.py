"""Plans what proves a change: which steps, with which tests, and why."""

import collections
import pathlib
import re
import sys
from functools import cached_property

import tables  # first: it lets tools/check be found
import floors
import graph
import suites
from steps import Plan, Selection, Step, counted

sys.path.append(str(tables.TOOLS.parent / "tests"))

import guide_test  # noqa: E402

CHECK_REASON = "always: the format and the rules of tools/check"
# How a test relates to a changed file, from the nearest relation to the widest.
CHANGED, OWN, ROOM, USER = range(4)


def relations(path, tests):
    """Returns the reason for the tests near a changed file, in words: {test: relation}."""
    counts = collections.Counter(tests.values())
    parts = ["changed"] * counts[CHANGED] + ["its own test"] * counts[OWN]
    if counts[ROOM]:
        parts.append(f"{counted(counts[ROOM], 'test file')} of its room")
    if counts[USER]:
        parts.append(f"{counted(counts[USER], 'test file')} including its header")
    return f"{path}: {', '.join(parts)}"


class Planner:
    def __init__(self, root, paths):
        self.root = pathlib.Path(root)
        self.paths = paths
        self.graph = graph.Graph(root)
        self.asan = Selection("asan")
        self.release = Selection("release")
        self.lanes = {"gcc": Selection("gcc"), "tsan": Selection("tsan")}
        self.scripts = {}  # steps that run a script, by title
        self.toolchain = []  # reasons to configure everything
        self.gate = []  # reasons
        self.pages = {}  # reasons to run pages of the guide
        self.skipped = collections.defaultdict(set)  # tests that include a changed header
        self.left = []

    def plan(self):
        for path in self.paths:
            self._add(path)
        self._add_guide()
        self._add_left_suites()
        check = Step("check", ["./dev", "check"], [CHECK_REASON])
        steps = [check, *self.scripts.values(), *self._configuring(), self.asan.step(),
                 self.release.step(), self._guide_step(), self._gate_step(),
                 *(lane.step() for lane in self.lanes.values())]
        left = list(dict.fromkeys(self.left))
        return Plan([step for step in steps if step], left)

    def _add(self, path):
        """Adds what one changed path needs, by the first folder that knows it."""
        if tables.TOOLCHAIN.match(path):
            self.toolchain.append(f"{path}: can change each build")
        if tables.on_request_path(path):
            self.gate.append(f"{path}: is on the request path" if path.startswith("weir/") else
                             f"{path}: belongs to the gate")
        kinds = (("fuzz/", self._add_fuzz), ("examples/", self._add_program),
                 ("contrib/", self._add_program), ("bench/", self._add_bench),
                 ("weir/", self._add_unit), ("tests/", self._add_system_test),
                 ("tools/", self._add_tool), ("docs/guide/", self._add_page),
                 ("README.md", self._add_page))
        for beginning, add in kinds:
            if path.startswith(beginning):
                add(path)
                return
        if path in ("dev", ".ci/run"):
            self._add_script(f"syntax of {path}", ["bash", "-n", path], f"{path}: changed")

    def _add_script(self, title, command, reason):
        step = self.scripts.setdefault(title, Step(title, command, [], quiet=True))
        step.reasons.append(reason)

    # ---- C++ files with unit tests ---------------------------------------------------------------

    def _narrow_tests(self, path):
        """Returns {test: relation} of the tests nearest to a changed C++ file."""
        if path in self.graph.tests:
            return {path: CHANGED}
        if path.endswith("_test.cpp"):
            return {}  # it was deleted
        found = {test: USER for header in self.graph.headers_of(path)
                 for test in self.graph.tests_that_include(header)}
        own = self.graph.test_of(path)
        # These folders have many slow tests, so the nearest ones must do.
        crowded = path.startswith(("tools/simulate/", "tests/"))
        if not crowded or not (found or own):
            found |= dict.fromkeys(self.graph.tests_of_room(path), ROOM)
        if own:
            found[own] = OWN
        return self._in_few_binaries(path, found)

    def _in_few_binaries(self, path, found):
        """Leaves out tests of all but a few binaries, beside the one of the file's own floor."""
        own = tables.binary_of(path)
        tests = self.graph.tests
        others = sorted({tests[test] for test in found} - {own}, key=tables.rank_of)
        kept = [binary for binary in others if binary not in tables.TEST_BINARIES.values()]
        kept = {own, *kept[:tables.OTHER_BINARIES_MAX]}
        for binary in set(others) - kept:
            self.skipped[binary].update(test for test in found if tests[test] == binary)
        return {test: relation for test, relation in found.items() if tests[test] in kept}

    def _suites(self, test):
        return suites.suites_in(self.graph.files[test].text)

    def _add_tests(self, path, tests):
        """Adds the suites of tests near a changed path: {test: relation}."""
        for test in tests:
            self.asan.suites[self.graph.tests[test]].update(self._suites(test))
        if tests:
            self.asan.reasons.append(relations(path, tests))

    def _add_unit(self, path):
        if not path.endswith((".cpp", ".hpp")):
            return
        tests = self._narrow_tests(path)
        self._add_tests(path, tests)
        file, own = self.graph.files.get(path), tables.binary_of(path)
        if not any(self.graph.tests[test] == own for test in tests):
            return
        code = file.code if file else ""  # a deleted file has none
        threads = tables.THREADS.search(code)
        if threads or tables.in_table(tables.THREAD_ROOMS, path):
            why = f"has {threads[0]}" if threads else "belongs to a room with threads"
            self._add_lane("tsan", own, tests, f"{path}: {why}")
        found = tables.COROUTINES.search(code)
        if found and not tables.is_test(path):
            self._add_lane("gcc", own, tests, f"{path}: has {found[0]}")

    def _add_lane(self, preset, binary, tests, reason):
        lane = self.lanes[preset]
        for test in tests:
            if self.graph.tests[test] == binary:
                lane.suites[binary].update(self._suites(test))
        lane.reasons.append(reason)

    def _add_left_suites(self):
        """Names what the floors that the change reaches have beside the planned suites."""
        for binary in sorted(self.skipped, key=tables.rank_of):
            rest = [test for test in self.skipped[binary] if not
                    self.asan.suites.get(binary, set()).issuperset(self._suites(test))]
            if rest:
                self.left.append(f"{binary}: {counted(len(rest), 'test file')} including a changed "
                                 f"header")
        reached = {floor for path in self.paths for floor in self.graph.floors_reached(path)}
        counts = {}
        for test, binary in self.graph.tests.items():
            if floors.floor_of(test) in reached:
                rest = set(self._suites(test)) - self.asan.suites.get(binary, set())
                counts.setdefault(binary, set()).update(rest)
        parts = [f"{len(counts[binary])} of {suites.name_of(binary)}"
                 for binary in sorted(counts, key=tables.rank_of) if counts[binary]]
        if parts:
            self.left.append(f"other suites of the floors that the change reaches: "
                             f"{', '.join(parts)}")
        if any(path.startswith("weir/") and not tables.is_test(path) for path in self.paths):
            self.left.append("the system tests, the simulated services and the fuzz targets")

    # ---- Files outside weir/ ---------------------------------------------------------------------

    @cached_property
    def _script_tests(self):
        cmake = self.graph.files.get("cmake/WeirTargets.cmake")
        return suites.script_tests(cmake.text) if cmake else []

    def _add_script_tests(self, reason, script=None, target=None):
        """Adds the tests of ctest that run a script or start a program; returns their number."""
        found = [test for test in self._script_tests if script == test.script or
                 target in test.targets]
        for test in found:
            self.asan.add_test(test.name, test.targets, reason)
        return len(found)

    def _programs_of(self, path):
        """Returns (folder, name) of the programs that a C++ file belongs to."""
        folder = next((each for each in tables.PROGRAMS if path.startswith(f"{each}/")), None)
        is_program = path.endswith(".cpp") and path.rpartition("/")[0] == folder
        users = [path] if is_program else sorted(self.graph.users(path.replace(".cpp", ".hpp")))
        return [(folder, pathlib.PurePath(user).stem) for user in users
                if user.endswith(".cpp") and user.rpartition("/")[0] == folder and
                user in self.graph.files]

    def _add_program(self, path):
        """Adds what runs an example or a contribution: its tests and the pages that show it."""
        for folder, name in self._programs_of(path):
            target = tables.PROGRAMS[folder] + name
            reason = f"{path}: belongs to {target}"
            runs = self._add_script_tests(reason, target=target)
            if folder == "examples":
                runs += self._add_pages(name) + self._add_tests_that_name(name)
            if not runs:
                self.release.add_targets([target], reason)

    def _add_pages(self, example):
        """Adds the pages whose shell lines run an example; returns their number."""
        pages = [page for page, names in self._examples_by_page.items() if example in names]
        self.pages.update((page, f"{page}: runs examples/{example}.cpp") for page in pages)
        return len(pages)

    def _add_tests_that_name(self, name):
        """Adds the system tests with a literal that is or names a file; returns their number."""
        literal = re.compile(rf'["/]{re.escape(name)}"')
        tests = [test for test in self.graph.tests if test.startswith("tests/") and
                 literal.search(self.graph.files[test].text)]
        for test in tests:
            self.asan.suites[self.graph.tests[test]].update(self._suites(test))
            self.asan.reasons.append(f"{test}: names {name}")
        return len(tests)

    def _add_fuzz(self, path):
        parts = path.split("/")
        if parts[1] == "corpus":
            names = parts[2:3]
        elif path.startswith("fuzz/replay/"):
            names = sorted(pathlib.PurePath(each).stem for each in self.graph.files
                           if re.fullmatch(r"fuzz/\w+\.cpp", each))
        else:
            users = [path] if path.endswith(".cpp") else self.graph.includers[path]
            names = [pathlib.PurePath(user).stem for user in users]
        for name in names:
            if f"fuzz/{name}.cpp" in self.graph.files:
                self.asan.add_test(f"fuzz_{name}_replay", [f"fuzz_{name}"],
                                   f"{path}: belongs to the fuzz target {name}")

    def _add_bench(self, path):
        if path.endswith(".py"):
            self._add_self_tests("bench", path)
            return
        for folder, name in self._programs_of(path):
            if folder != "bench/gate":  # the gate builds it
                self.release.add_targets([tables.PROGRAMS[folder] + name], f"{path}: changed")
        if path.startswith("bench/peers/"):
            self.left.append(f"{path}: ./dev bench builds it")

    def _add_self_tests(self, folder, path):
        # Debian's interpreter: another python3 in the path lacks Debian's bindings of clang.
        python = "/usr/bin/python3" if folder == "tools/mutate" else "python3"
        command = [python, "-m", "unittest", "discover", "-s", folder, "-p", "*_test.py"]
        self._add_script(f"self tests of {folder}", command, f"{path}: changed")

    def _add_tool(self, path):
        folder = "/".join(path.split("/")[:2])
        name = path.rpartition("/")[2]
        if path.endswith((".cpp", ".hpp")):
            self._add_tests(path, self._narrow_tests(path))
            for programs, stem in self._programs_of(path):
                target = tables.PROGRAMS[programs] + stem
                if not self._add_script_tests(f"{path}: belongs to {target}", target=target):
                    self.asan.add_targets([target], f"{path}: belongs to {target}")
        elif path.endswith(".py") and not self._add_script_tests(f"{path}: changed", script=name):
            if any(each.startswith(folder + "/") and each.endswith("_test.py")
                   for each in self.graph.files):
                self._add_self_tests(folder, path)

    def _add_system_test(self, path):
        name = path.rpartition("/")[2]
        if (path.startswith(("tests/consumer/", "tests/embed/")) or
                name in ("install_test.py", "hardened_test.py", "embed_test.py")):
            self.left.append(f"{path}: ./dev test --ci runs it")
        elif name in ("conan_test.py", "vcpkg_port_test.py"):
            self.left.append(f"{path}: ./dev test --all runs it")
        elif path.endswith((".cpp", ".hpp")):
            self._add_tests(path, self._narrow_tests(path))
        elif name == "guide_test.py":
            self.pages.update((page, f"{path}: changed") for page in self._examples_by_page)
        elif name == "compile_errors_test.py":
            self._add_script("compile errors", ["python3", path], f"{path}: changed")
        elif path.endswith(".py"):
            self._add_script_tests(f"{path}: changed", script=name)
        elif not self._add_tests_that_name(name):
            self.left.append(f"{path}: no test names it")

    # ---- The guide, the gate, the configuration --------------------------------------------------

    @cached_property
    def _examples_by_page(self):
        """{page: examples that its shell lines run}, of pages that have such lines."""
        found = {}
        for path, file in self.graph.files.items():
            if path == "README.md" or re.fullmatch(r"docs/guide/\w[\w-]*\.md", path):
                examples = {example for _, example, _, _ in guide_test.blocks(file.text)}
                if examples:
                    found[path] = examples
        return found

    def _add_page(self, path):
        if path in self._examples_by_page:
            self.pages[path] = f"{path}: changed"

    def _add_guide(self):
        for page, reason in self.pages.items():
            targets = [f"example_{name}" for name in self._examples_by_page[page]]
            self.release.add_targets(targets, reason)

    def _guide_step(self):
        if not self.pages:
            return None
        return Step("shell lines of the guide",
                    ["python3", "tests/guide_test.py", "--build", "build/release",
                     *sorted(self.pages)], list(self.pages.values()))

    def _gate_step(self):
        if not self.gate:
            return None
        return Step("gate", ["./dev", "bench", "--gate"], self.gate)

    def _configuring(self):
        if not self.toolchain:
            return []
        self.left.append("all tests: a file of the toolchain changed")
        command = f"for preset in {' '.join(tables.PRESETS)}; do cmake --preset $preset; done"
        return [Step("configure all presets", ["bash", "-ec", command], self.toolchain, quiet=True)]
