"""Tests of the faults in Python scripts."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import deadline  # noqa: E402
import runner  # noqa: E402
import scripts  # noqa: E402
import tree as trees  # noqa: E402


def changes(code, operator):
    """Returns the (before, after) of the mutants of an operator."""
    return [(each.before, each.after) for each in scripts.Finder("a.py", code).mutants()
            if each.operator == operator]


class FinderTest(unittest.TestCase):
    def test_comparisons_change_their_bound_or_their_sense(self):
        code = "f(a < b, a <= b, a > b, a >= b, a == b, a != b)\nf(a in b, a not in b, a is b)\n"
        self.assertEqual(changes(code, "comparison"), [
            ("a < b", "(a <= b)"), ("a <= b", "(a < b)"), ("a > b", "(a >= b)"),
            ("a >= b", "(a > b)"), ("a == b", "(a != b)"), ("a != b", "(a == b)"),
            ("a in b", "(a not in b)"), ("a not in b", "(a in b)"), ("a is b", "(a is not b)")])

    def test_chains_of_comparisons_stay_as_they_are(self):
        self.assertEqual(changes("x = a < b < c\n", "comparison"), [])

    def test_code_inside_of_other_code_changes(self):
        self.assertEqual(changes("x = f(1) < 2 or g(3) and h(4 + k(5))\n", "constant"),
                         [("1", "2"), ("2", "3"), ("3", "4"), ("4", "5"), ("5", "6")])
        self.assertEqual(changes("x = [1] if f(2) else g(3)\n", "constant"),
                         [("1", "2"), ("2", "3"), ("3", "4")])

    def test_conditions_lose_each_part_in_turn(self):
        self.assertEqual(changes("x = a and b and c\n", "condition"), [
            ("a and b and c", "(a and b)"), ("a and b and c", "(a and c)"),
            ("a and b and c", "(b and c)")])
        self.assertEqual(changes("x = a or b\n", "condition"), [("a or b", "(a)"),
                                                               ("a or b", "(b)")])

    def test_conditions_are_negated_unless_they_compare(self):
        code = "if a:\n  f()\nwhile b:\n  f()\nx = 1 if c else 2\nif d > 0:\n  f()\n"
        self.assertEqual(changes(code, "negation"), [
            ("a", "(not (a))"), ("b", "(not (b))"), ("c", "(not (c))")])

    def test_statements_are_dropped_in_every_block(self):
        code = ('"""Text."""\nf()\nif a:\n  x = 1\nelse:\n  x += 2\ntry:\n  del y\nfinally:\n'
                "  raise z\n")
        self.assertEqual([before for before, _ in changes(code, "dropped statement")],
                         ["f()", "x = 1", "x += 2", "del y", "raise z"])

    def test_checks_that_leave_are_dropped(self):
        code = "def f(a):\n  if a:\n    return 1\n  if a:\n    return 2\n  else:\n    g()\n"
        code += "  if a:\n    g()\n"
        self.assertEqual([before for before, _ in changes(code, "error check")],
                         ["if a:\n    return 1"])

    def test_numbers_and_bools_change(self):
        self.assertEqual(changes("f(7, True, False, 'a', 1.5)\n", "constant"),
                         [("7", "8"), ("True", "False"), ("False", "True")])

    def test_sums_differences_and_extrema_change(self):
        self.assertEqual(changes("f(a + b, a - b, a * b)\n", "arithmetic"),
                         [("a + b", "(a - b)"), ("a - b", "(a + b)")])
        self.assertEqual(changes("f(min(a), max(b))\n", "extremum"),
                         [("min", "max"), ("max", "min")])

    def test_neighbouring_arguments_change_places(self):
        self.assertEqual(changes("m.f(1, 2)\n", "arguments"), [])
        self.assertEqual(changes("f(a, a, min(b, c))\n", "arguments"), [])
        self.assertEqual(changes("f(a, b.c, d.e, 1)\n", "arguments"),
                         [("f(a, b.c, d.e, 1)", "f(a, d.e, b.c, 1)")])

    def test_a_fault_is_planted_at_its_place_after_other_alphabets(self):
        code = "x = 'é'; y = a < b; z = 1\n"
        mutant = scripts.Finder("a.py", code).mutants()[1]
        planted = scripts.plant(code.encode(), mutant).decode()
        self.assertIn(planted, {"x = 'é'; y = (a <= b); z = 1\n", "x = 'é'; pass; z = 1\n"})


SCRIPT = "def double(number):\n    return number + number\n\n\ndef unseen():\n    return 3\n"
TEST = """import pathlib, sys, unittest
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sample


class SampleTest(unittest.TestCase):
    def test_double(self):
        self.assertEqual(sample.double(%d), %d)
"""


class ScriptsTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name) / "root"
        (self.root / "tools/a").mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        (self.root / ".gitignore").write_text("build/\n")
        (self.root / "tools/a/sample.py").write_text(SCRIPT)
        (self.root / "tools/a/sample_test.py").write_text(TEST % (4, 8))

    def judge(self):
        """Returns {(before, after): verdict} of all faults of the script."""
        mutants = scripts.find(self.root, "tools/a/sample.py")
        copies = scripts.Scripts(self.root, self.root / "build", 2)
        return {(each.before, each.after): verdict
                for each, verdict in copies.judge("tools/a", mutants)}

    def test_unit_tests_find_the_faults_of_what_they_call(self):
        verdicts = self.judge()
        self.assertEqual(verdicts["number + number", "(number - number)"],
                         {"found": "own", "how": "sample_test.py: status 1"})
        self.assertEqual(verdicts["3", "4"], {"found": "no", "how": "the unit tests pass"})
        self.assertEqual((self.root / "tools/a/sample.py").read_text(), SCRIPT)

    def test_a_copy_holds_no_fault_of_an_earlier_judgement(self):
        self.judge()
        for number in range(2):
            copy = self.root / f"build/scripts-{number}/tools/a/sample.py"
            self.assertEqual(copy.read_text(), SCRIPT)

    def test_each_copy_is_a_repository(self):
        scripts.Scripts(self.root, self.root / "build", 2)
        found = subprocess.run(
            ["git", "-C", str(self.root / "build/scripts-1"), "rev-parse", "--show-toplevel"],
            check=True, capture_output=True, text=True).stdout
        self.assertEqual(found, f"{(self.root / 'build/scripts-1').resolve()}\n")

    def test_a_copy_that_cannot_be_a_repository_is_an_error(self):
        git = self.root / "git"
        git.write_text('#!/bin/sh\n[ "$1" = init ] && exit 1\nexec /usr/bin/git "$@"\n')
        git.chmod(0o755)
        with unittest.mock.patch.dict("os.environ", PATH=f"{self.root}:/usr/bin:/bin"):
            with self.assertRaises(subprocess.CalledProcessError):
                scripts.Scripts(self.root, self.root / "build", 1)

    def test_tests_may_take_three_times_as_long_and_twenty_seconds_more(self):
        limits = []

        def record(command, limit, environment, folder):
            limits.append(limit)
            clock.return_value += 2
            return 0

        with unittest.mock.patch("time.monotonic", return_value=100) as clock:
            with unittest.mock.patch.object(runner, "run", side_effect=record):
                mutants = scripts.find(self.root, "tools/a/sample.py")[:1]
                copies = scripts.Scripts(self.root, self.root / "build", 1)
                self.assertEqual(len(list(copies.judge("tools/a", mutants))), 1)
        self.assertEqual(limits, [600, 26])

    def test_tests_that_fail_without_a_fault_end_the_run(self):
        (self.root / "tools/a/sample_test.py").write_text(TEST % (4, 9))
        with self.assertRaisesRegex(trees.BuildFailed,
                                    "sample_test.py fails without a mutant: status 1"):
            self.judge()

    def test_the_judgement_ends_when_the_time_is_over(self):
        deadline.OF_RUN.set(0.01)
        self.addCleanup(deadline.OF_RUN.set, float("inf"))
        with self.assertRaises(deadline.OutOfTime):
            self.judge()

    def test_a_hang_finds_the_fault(self):
        least, runner.LEAST_SECONDS = runner.LEAST_SECONDS, 0.5
        self.addCleanup(setattr, runner, "LEAST_SECONDS", least)
        (self.root / "tools/a/sample.py").write_text(
            "def double(number):\n    while number < 8:\n        number += 4\n    return number\n")
        self.assertEqual(self.judge()["number += 4", "pass"],
                         {"found": "own", "how": "sample_test.py: hang"})


if __name__ == "__main__":
    unittest.main()
