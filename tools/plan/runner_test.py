"""Tests of running a plan."""

import sys
import unittest

import changed
import runner
from plan_fixture import PlanTestCase
from steps import Plan, Step


def step(title, code, **options):
    return Step(title, [sys.executable, "-c", code], [f"{title}: reason"], **options)


class RunnerTest(PlanTestCase):
    def run_plan(self, *steps, left=()):
        lines = []
        status = runner.Runner(self.root, lines.append).run(Plan(list(steps), list(left)))
        return status, lines

    def test_all_steps_run_in_the_folder_and_are_summed_up(self):
        status, lines = self.run_plan(step("one", "open('1', 'w')"), step("two", "open('2', 'w')"),
                                      left=["the rest"])
        self.assertEqual(status, 0)
        self.assertTrue((self.root / "1").exists() and (self.root / "2").exists())
        self.assertEqual(lines[:2], ["verify: step 1 of 2: one", "verify: step 2 of 2: two"])
        self.assertRegex(lines[2], r"^verify: ran in \d+ s:$")
        self.assertRegex(lines[3], r"^ +\d+\.\d s  passed: one$")
        self.assertEqual(lines[-2:], ["verify: left to ./dev test:", "  the rest"])

    def test_a_failure_ends_the_run_with_its_command(self):
        status, lines = self.run_plan(step("bad", "raise SystemExit(3)"),
                                      step("late", "open('late', 'w')"))
        self.assertEqual(status, 1)
        self.assertFalse((self.root / "late").exists())
        self.assertTrue(any(line.endswith("failed with exit status 3: bad") for line in lines))
        self.assertIn("  not run: late", lines)
        self.assertRegex(lines[-1], "^verify: FAILED: bad; this repeats the step: .*SystemExit")

    def test_a_quiet_step_shows_its_output_only_if_it_fails(self):
        _, lines = self.run_plan(step("good", "print('seen')", quiet=True))
        self.assertNotIn("seen", lines)
        _, lines = self.run_plan(step("bad", "print('seen'); raise SystemExit(1)", quiet=True))
        self.assertIn("seen", lines)

    def test_a_missing_program_is_a_failure(self):
        status, lines = self.run_plan(Step("absent", ["./absent"], []))
        self.assertEqual(status, 1)
        self.assertTrue(any("./absent does not start" in line for line in lines))

    def test_a_description_has_the_paths_the_steps_their_reasons_and_the_rest(self):
        lines = runner.describe(changed.Change("HEAD", ["a"]), Plan([step("one", "")], ["more"]))
        self.assertEqual(lines, ["verify: 1 path changed since HEAD:", "  a", "verify: the plan:",
                                 "  1. one", "       one: reason",
                                 "verify: left to ./dev test:", "  more"])

    def test_long_lists_are_shortened(self):
        many = [str(number) for number in range(runner.LINES_MAX + 3)]
        self.assertEqual(runner.shortened(many)[-1], "and 3 more")
        self.assertEqual(runner.shortened(many[:runner.LINES_MAX + 1]),
                         many[:runner.LINES_MAX + 1])
        self.assertEqual(runner.shortened(["a", "a"]), ["a"])


if __name__ == "__main__":
    unittest.main()
