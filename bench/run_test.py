"""The command: which sections run, and what becomes of one that fails."""

import types
import unittest
from unittest import mock

import run
import verify
from serving import Failure


def section(raised=None):
    def fail(_say):
        if raised:
            raise raised
        return {"title": "t", "errors": 0}

    return types.SimpleNamespace(id="W", title="a work", run=fail)


class OutcomeTest(unittest.TestCase):
    def setUp(self):
        quiet = mock.patch.object(run, "say")
        quiet.start()
        self.addCleanup(quiet.stop)

    def test_a_section_that_cannot_run_is_an_error_and_not_the_end(self):
        for reason in (Failure("does not serve"), verify.Flaw("answers 404"), OSError("no port")):
            outcome = run.outcome_of(section(reason))
            self.assertEqual((outcome["kind"], outcome["errors"]), ("failed", 1))
            self.assertEqual(outcome["markdown"], f"No figure: {reason}")

    def test_one_that_runs_is_left_as_it_is(self):
        self.assertEqual(run.outcome_of(section())["errors"], 0)


if __name__ == "__main__":
    unittest.main()
