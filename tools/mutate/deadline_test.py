"""Tests of the end of a run."""

import pathlib
import sys
import threading
import time
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import deadline  # noqa: E402
import mutate  # noqa: E402
import object_code  # noqa: E402
import runner  # noqa: E402
import tree as trees  # noqa: E402
from mutate_fixture import Sandbox  # noqa: E402


def never_end(job):
    threading.Event().wait(60)


class DeadlineTest(unittest.TestCase):
    def test_the_time_that_is_left_ends_at_the_deadline(self):
        end = deadline.Deadline()
        self.assertIsNone(end.left())
        with unittest.mock.patch("time.monotonic") as now:
            now.return_value = 100
            end.set(20)
            now.return_value = 115
            self.assertEqual(end.left(), 5)
            now.return_value = 120
            self.assertRaises(deadline.OutOfTime, end.left)

    def test_a_run_without_a_limit_has_no_deadline(self):
        end = deadline.Deadline()
        end.set(float("inf"))
        self.assertIsNone(end.left())


class CommandTest(Sandbox):
    """The commands of a run end at its deadline."""

    def setUp(self):
        super().setUp()
        self.addCleanup(deadline.OF_RUN.set, float("inf"))
        self.begun = time.monotonic()

    def expect_out_of_time(self, action, *arguments):
        with self.assertRaises(deadline.OutOfTime):
            action(*arguments)
        self.assertLess(time.monotonic() - self.begun, 20)

    def test_a_test_in_flight_ends(self):
        deadline.OF_RUN.set(0.2)
        self.expect_out_of_time(runner.run, ["sleep", "60"], 60, {})

    def test_no_test_begins_after_the_deadline(self):
        deadline.OF_RUN.set(0)
        self.expect_out_of_time(runner.run, ["touch", str(self.folder / "a")], 60, {})
        self.assertFalse((self.folder / "a").exists())

    def test_a_test_that_exceeds_its_own_limit_before_the_deadline_hangs(self):
        deadline.OF_RUN.set(60)
        self.assertIsNone(runner.run(["sleep", "60"], 0.1, {}))
        self.assertEqual(runner.run(["sh", "-c", "exit 3"], 60, {}), 3)

    def test_a_build_without_output_ends(self):
        ninja = self.program("ninja", "exec sleep 60")
        tree = trees.Tree(self.folder, self.folder / "copy", 1)
        deadline.OF_RUN.set(0.2)
        with unittest.mock.patch.dict("os.environ", PATH=f"{ninja.parent}:/usr/bin:/bin"):
            self.expect_out_of_time(tree.compile, ["all"], lambda text: None)

    def test_a_build_that_fails_before_the_deadline_is_reported(self):
        ninja = self.program("ninja", "exit 1")
        tree = trees.Tree(self.folder, self.folder / "copy", 1)
        deadline.OF_RUN.set(60)
        with unittest.mock.patch.dict("os.environ", PATH=f"{ninja.parent}:/usr/bin:/bin"):
            with self.assertRaises(trees.BuildFailed):
                tree.compile(["all"], lambda text: None)

    def test_a_comparison_of_object_code_ends(self):
        (self.folder / "base").mkdir()
        code = "int f(int a) { return a < 1; }\n"
        mutant = self.mutants(code, "base/a.cpp")[0]
        deadline.OF_RUN.set(0)
        self.expect_out_of_time(
            object_code.ObjectCode(self.folder, ["base/a.cpp"]).uncounted_because, mutant)

    def test_parsing_ends(self):
        (self.folder / "a.cpp").write_text("int f(int a) { return a < 1; }\n")
        deadline.OF_RUN.set(0.01)
        jobs = [(str(self.folder), "a.cpp", object_code.flags_of(self.folder))] * 200
        self.expect_out_of_time(list, mutate.parsed(jobs, 1))

    def test_the_last_file_ends_at_the_deadline(self):
        deadline.OF_RUN.set(0.5)
        with unittest.mock.patch.object(mutate, "find_in", never_end):
            self.expect_out_of_time(list, mutate.parsed([()], 1))

    def test_each_file_is_parsed_before_the_deadline(self):
        (self.folder / "a.cpp").write_text("int f(int a) { return a < 1; }\n")
        jobs = [(str(self.folder), "a.cpp", object_code.flags_of(self.folder))] * 3
        deadline.OF_RUN.set(60)
        self.assertEqual([path for path, _, _ in mutate.parsed(jobs, 2)], ["a.cpp"] * 3)


if __name__ == "__main__":
    unittest.main()
