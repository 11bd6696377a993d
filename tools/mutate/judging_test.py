"""Tests of how a run judges its faults, with tests that only pretend to be built and to run."""

import contextlib
import io
import pathlib
import re
import subprocess
import sys
import threading
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import mutate  # noqa: E402
import object_code  # noqa: E402
import runner  # noqa: E402
import tree as trees  # noqa: E402
from mutate_fixture import Sandbox  # noqa: E402

FILES = {
    ".gitignore": "build/\n",
    "weir/base/a.cpp": """namespace std {
struct lock_guard {
  explicit lock_guard(int& mutex);
};
}
int mutex, count;
void add() {
  const std::lock_guard lock(mutex);
  ++count;
}
int next() { return count + 3; }
""",
    "weir/os/b.cpp": "bool even(int number) { return number % 2 == 0; }\n",
    "weir/os/b_test.cpp": "",
    "tools/sample/double.py": "def double(number):\n    return number + number\n",
    "tools/sample/double_test.py": "",
}
# The faults of the room base, in the order of its file.
OPERATORS = ["lock", "dropped statement", "arithmetic", "constant"]


class JudgingTest(Sandbox):
    def setUp(self):
        super().setUp()
        for path, content in FILES.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(content)
        subprocess.run(["git", "init", "-q", str(self.folder)], check=True)
        self.tree = trees.Tree(self.folder, self.folder / "build/mutate/tree", 1)
        self.builds, self.calls = [], []  # what is built; which faults are tested, and how

    def judge(self, *arguments, fails=lambda binary, operator: "", errors=(), room=("base",),
              status=0, uncounted=None):
        """Runs the tool. `fails` returns how the tests of a binary, such as asan/weir_base_test,
        fail with a fault. `errors` are those of each build in turn. Returns the printed lines."""
        errors = [*errors]

        def compile_tree(tree, targets, progress):
            self.assertEqual((tree.root, tree.folder), (self.folder, self.tree.folder))
            self.builds.append((tree.build.name, targets))
            found = errors.pop(0) if errors else set()
            return {self.place_of(each) if isinstance(each, str) else each for each in found}

        def recorded(build, binary, count, jobs, limit):
            self.count = count
            return [runner.Test(binary, "A.B", 0.5, frozenset(range(count)))], [], []

        def fail(build, binary, number, tests):
            if number is None:
                return ""
            operator = {each: held.operator for held, each in self.tree.held().items()}[number]
            binary = f"{build.name}/{pathlib.Path(binary).name}"
            self.calls.append((binary, operator))
            return fails(binary, operator)

        output, messages = io.StringIO(), io.StringIO()
        patches = [
            unittest.mock.patch.object(
                trees.Tree, "configure", autospec=True,
                side_effect=lambda tree: tree.build.mkdir(parents=True, exist_ok=True)),
            unittest.mock.patch.object(trees.Tree, "compile", autospec=True,
                                       side_effect=compile_tree),
            unittest.mock.patch.object(runner, "recorded", side_effect=recorded),
            unittest.mock.patch.object(runner, "fails", side_effect=fail),
            unittest.mock.patch.object(object_code.ObjectCode, "uncounted_because",
                                       side_effect=uncounted or (lambda mutant: None)),
            unittest.mock.patch.object(mutate, "progress"),
            contextlib.redirect_stdout(output), contextlib.redirect_stderr(messages)]
        with contextlib.ExitStack() as stack:
            self.progress = [stack.enter_context(each) for each in patches][-3]
            self.assertEqual(mutate.main(self.folder, ["--room", *room, "--seed", "1", *arguments]),
                             status, messages.getvalue())
        self.messages = messages.getvalue()
        return output.getvalue().splitlines()

    def place_of(self, operator):
        """Returns the place of a fault in the copy, as an error of the compiler has it."""
        for mutant, number in self.tree.held().items():
            if mutant.operator == operator:
                lines = (self.tree.folder / mutant.path).read_text().splitlines()
                for line, text in enumerate(lines, 1):
                    if f"/*<{number}*/" in text:
                        return ((mutant.path, line, text.index(f"/*<{number}*/") + 1),)
        raise AssertionError(operator)

    def survivors(self, lines):
        return [re.search(r":\d+: ([a-z ]+): ", each)[1] for each in lines
                if each.startswith("survived")]

    def test_all_faults_survive_tests_that_pass(self):
        lines = self.judge("--floor-only")
        self.assertEqual(lines[0], "mutate: weir/base: 4 mutants, 4 drawn with seed 1")
        self.assertEqual(self.survivors(lines), OPERATORS)
        self.assertEqual(lines[-1], "weir/base: 4 mutants, seed 1: 0.00 found by the tests of the "
                                    "floor")
        self.assertEqual(self.count, 4)

    def test_faults_that_a_test_finds_are_only_counted(self):
        lines = self.judge("--floor-only", fails=lambda binary, operator: (
            "status 1" if operator in ("lock", "constant") else ""))
        self.assertEqual(self.survivors(lines), ["dropped statement", "arithmetic"])
        self.assertEqual(len(lines), 4)
        self.assertTrue(lines[-1].endswith(": 0.50 found by the tests of the floor"))

    def test_only_surviving_faults_of_threads_are_tested_under_the_thread_sanitizer(self):
        def fails(binary, operator):
            return "status 66" if binary.startswith("tsan/") else ""

        self.assertEqual(self.survivors(self.judge("--floor-only", fails=fails)), OPERATORS[1:])
        self.assertEqual(self.builds, [("asan", ["weir_base_test"]), ("tsan", ["weir_base_test"])])
        self.assertEqual([each for each in self.calls if each[0].startswith("tsan/")],
                         [("tsan/weir_base_test", "lock")])

    def test_faults_of_threads_that_the_floor_finds_need_no_thread_sanitizer(self):
        self.judge("--floor-only", fails=lambda binary, operator: "status 1")
        self.assertEqual(self.builds, [("asan", ["weir_base_test"])])

    def test_the_thread_sanitizer_finds_for_the_floor_what_only_the_tests_above_find(self):
        for found_by_tsan in (False, True):
            lines = self.judge(fails=lambda binary, operator: "status 1" if (
                binary == "asan/weir_os_test" or found_by_tsan and binary[:4] == "tsan") else "")
            above = [re.search(r":\d+: ([a-z ]+): ", each)[1] for each in lines
                     if each.startswith("found above")]
            self.assertEqual(above, OPERATORS[found_by_tsan:])
            self.assertEqual(lines[-1], f"weir/base: 4 mutants, seed 1: {found_by_tsan / 4:.2f} "
                                        "found by the tests of the floor, 1.00 by all tests")
            (self.folder / "build/mutate/results.json").unlink()

    def test_at_most_five_errors_of_a_build_are_printed(self):
        errors = {(("weir/os/b.cpp", line, 1),) for line in range(1, 7)}
        shown = sorted(errors)[:5]
        self.judge(errors=[errors], status=1)
        self.assertEqual(self.messages,
                         f"mutate: the build failed: errors outside mutants: {shown}\n")
        self.judge("--floor-only", errors=[set(), errors], status=1)
        self.assertEqual(self.messages, "mutate: the build failed: errors under the thread "
                                        f"sanitizer: {shown}\n")

    def test_a_fault_that_does_not_compile_is_left_out_of_the_next_build(self):
        lines = self.judge("--floor-only", errors=[{"arithmetic"}])
        self.assertEqual(self.survivors(lines), ["lock", "dropped statement", "constant"])
        self.assertEqual(lines[-1], "  not counted: 1 do not compile")
        self.assertEqual([each[0] for each in self.builds], ["asan", "asan", "tsan"])
        code = (self.tree.folder / "weir/base/a.cpp").read_text()
        self.assertNotIn("count - 3", code)
        self.assertIn("3 + 1", code)

    def test_faults_that_do_not_compile_are_known_to_later_runs(self):
        self.judge("--floor-only", errors=[{"arithmetic", "constant"}])
        (self.folder / "build/mutate/results.json").unlink()
        self.builds.clear()
        lines = self.judge("--floor-only", "--count", "4")
        self.assertEqual(self.builds[0][0], "asan")
        self.assertEqual(self.builds[1][0], "tsan")
        self.assertEqual(lines[-1], "  not counted: 2 do not compile")

    def test_a_fault_that_does_not_compile_stays_left_out_beside_new_faults(self):
        first, *others = [re.search(r":\d+: ([a-z ]+): ", each)[1] for each in self.judge("--list")]
        lines = self.judge("--floor-only", "--count", "2", "--pool", "2", errors=[{first}])
        self.assertEqual([each[0] for each in self.builds].count("asan"), 3)
        held = {mutant.operator for mutant, number in self.tree.held().items()
                if number is not None}
        self.assertEqual(held, {*others[:2]})
        self.assertEqual(lines[-1], "  not counted: 1 do not compile")

    def test_the_first_faults_of_a_draw_can_be_left_out(self):
        drawn = [each.split()[0] for each in self.judge("--list")]
        lines = self.judge("--floor-only", "--skip", "3")
        self.assertEqual([each.split()[1] for each in lines if each.startswith("survived")],
                         drawn[3:])

    def test_a_run_without_a_fault_that_compiles_has_no_score(self):
        lines = self.judge("--floor-only", errors=[{*OPERATORS}])
        self.assertEqual(len(lines), 1)
        self.assertEqual(self.calls, [])

    def test_a_single_fault_has_one_byte_in_the_recording(self):
        lines = self.judge("--floor-only", "--count", "1")
        self.assertEqual(lines[0], "mutate: weir/base: 4 mutants, 1 drawn with seed 1")
        self.assertEqual((self.count, len(self.survivors(lines))), (1, 1))

    def test_faults_without_effect_are_replaced_by_others(self):
        lines = self.judge("--floor-only", "--count", "3", uncounted=lambda mutant: (
            "same object code" if mutant.operator != "lock" else None))
        self.assertEqual(self.survivors(lines), ["lock"])
        self.assertEqual(lines[-1], "  not counted: 3 same object code")

    def test_an_interrupt_leaves_out_the_faults_that_are_not_tested_yet(self):
        def interrupt(binary, operator):
            if len(self.calls) == 1:
                raise KeyboardInterrupt
            threading.Event().wait(1)
            return ""

        with unittest.mock.patch.object(mutate, "parallel_tests", return_value=1):
            self.judge("--floor-only", fails=interrupt, status=130)
        self.assertLessEqual(len(self.calls), 2)
        self.assertEqual(self.messages, "\nmutate: interrupted\n")

    def test_the_end_of_a_run_prints_what_is_known(self):
        def end(binary, operator):
            if len(self.calls) > 2:
                raise mutate.deadline.OutOfTime
            return ""

        with unittest.mock.patch.object(mutate, "parallel_tests", return_value=1):
            lines = self.judge("--floor-only", "--minutes", "1.5", fails=end)
        self.assertIn(": 0.00 found by the tests of the floor", lines[-2])
        self.assertEqual(lines[-1], "mutate: stopped after 1.5 minutes")

    def test_the_progress_of_the_tests_is_shown(self):
        self.judge("--floor-only", "--count", "2", fails=lambda binary, operator: "status 1")
        told = [each.args[0] for each in self.progress.call_args_list]
        self.assertEqual(told[-3:], ["mutate: recording weir_base_test",
                                     "mutate: [1/2] tested, 0 min left",
                                     "mutate: [2/2] tested, 0 min left"])

    def test_scripts_and_sources_are_judged_in_one_run(self):
        lines = self.judge("--floor-only", room=("tools/sample", "base"))
        self.assertEqual([each for each in lines if "found by" in each], [
            "tools/sample: 1 mutants, seed 1: 0.00 found by the tests of the floor",
            "weir/base: 4 mutants, seed 1: 0.00 found by the tests of the floor"])
        self.assertEqual(self.builds[0], ("asan", ["weir_base_test"]))
        self.assertIn("mutate: [1/1] tools/sample tested",
                      [each.args[0] for each in self.progress.call_args_list])

    def test_the_simulation_alone_does_not_use_the_thread_sanitizer(self):
        with unittest.mock.patch.object(runner, "run", return_value=0):
            lines = self.judge("--by", "simulate")
        self.assertEqual(self.survivors(lines), OPERATORS)
        self.assertEqual(self.builds, [("asan", ["simulate"])])

    def test_explained_survivors_are_left_out_of_a_second_score(self):
        lines = self.judge("--floor-only", "--count", "4",
                           fails=lambda binary, operator: "status 1" if operator == "lock" else "")
        keys = [each.split()[1] for each in lines if each.startswith("survived")]
        self.assertNotIn("without", lines[-1])
        (self.folder / "docs").mkdir()
        (self.folder / "docs/mutants.md").write_text(
            f"| `{keys[0]}`, `{keys[2]}` | a.cpp | a reason |\n")
        lines = self.judge("--floor-only", "--count", "4")
        self.assertEqual(lines[-2:], [
            "weir/base: 4 mutants, seed 1: 0.25 found by the tests of the floor",
            "  without the 2 that docs/mutants.md explains: 0.50 found by the tests of the floor"])
        reasons = [each.split(" (")[-1] for each in lines if each.startswith("survived")]
        self.assertEqual(reasons, ["explained: a reason)", "1 tests reach it)",
                                   "explained: a reason)"])


if __name__ == "__main__":
    unittest.main()
