"""Tests the command: the selection of sections, and the outcome of a failed section."""

import contextlib
import io
import sys
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

    def test_a_failed_section_is_an_error_and_does_not_end_the_run(self):
        for reason in (Failure("does not serve"), verify.VerificationError("answers 404"),
                       OSError("no port")):
            outcome = run.outcome_of(section(reason))
            self.assertEqual((outcome["kind"], outcome["errors"]), ("failed", 1))
            self.assertEqual(outcome["markdown"], f"No figure: {reason}")

    def test_a_successful_section_keeps_its_outcome(self):
        self.assertEqual(run.outcome_of(section())["errors"], 0)


class NamedTest(unittest.TestCase):
    def named(self, *only, **more):
        arguments = ["run.py", "--build", ".", "--out", "."]
        for name in only:
            arguments += ["--only", name]
        with (mock.patch.object(sys, "argv", arguments + list(more.get("options", ()))),
              contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())):
            identities, servers = run.named(run.parse_arguments())
        return identities, [server.name for server in servers]

    def test_runs_everything_without_a_name(self):
        identities, servers = self.named()
        self.assertIn("hop-uring", identities)
        self.assertIn("nginx", servers)

    def test_works_and_parts_of_servers_names(self):
        self.assertEqual(self.named("B2", "uring"), (["B2"], ["limit-uring", "weir-uring",
                                                                "weir-uring-awake",
                                                                "weir-uring-plain",
                                                                "weir-uring-http1"]))
        self.assertEqual(self.named("net-http")[1], ["go-net-http"])

    def test_refuses_an_unknown_name_beside_known_names(self):
        for names in (("nonsense",), ("B2", "nonsense"), ("B2", "e"), ("weir", "B99")):
            with self.assertRaisesRegex(SystemExit, f"^unknown name: {names[-1]}$"):
                self.named(*names)

    def test_peers_are_built_only_for_works_that_have_them(self):
        self.assertNotIn("nginx", self.named("task", "B5", "B4")[1])
        self.assertIn("nginx", self.named("task", "B2")[1])
        self.assertNotIn("nginx", self.named("B2", options=["--peers=none"])[1])

    def test_numbers_have_ranges(self):
        for options in (["--runs", "0"], ["--runs", "-3"], ["--seconds", "nan"],
                        ["--seconds", "0"], ["--seconds", "inf"], ["--warm-up", "-1"],
                        ["--run", "9"]):
            with self.assertRaises(SystemExit) as ended:
                self.named(options=options)
            self.assertEqual(ended.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
