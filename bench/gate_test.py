"""Tests that the gate can fail, and that it reads callgrind's output."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import gate

PROFILE = """\
events: Ir

fn=(1) (below main)
0 5
cfn=(2) main
calls=1 0
0 9000

fn=(2)
+3 10
cfn=(3) weir::gate::(anonymous namespace)::warm_up(weir::gate::(anonymous namespace)::Op const&)
calls=1 7
* 4000
cfn=(4) weir::gate::(anonymous namespace)::measure(weir::gate::(anonymous namespace)::Op const&)
calls=1 9
* 2000

fn=(3)
7 1
cfn=(5) weir::gate::(anonymous namespace)::parse(unsigned int)
calls=1 20
7 3900

fn=(4)
9 1
cfi=(2) other.cpp
cfn=(5)
calls=1 20
+1 1200
cfn=(6) weir::gate::(anonymous namespace)::hop(unsigned int)
calls=2 30
-1 700
"""


class GateTest(unittest.TestCase):
    def test_counts_only_calls_from_the_measuring_function(self):
        self.assertEqual(gate.called_costs(PROFILE, "measure"), {"parse": 1200, "hop": 700})
        self.assertEqual(gate.called_costs(PROFILE, "warm_up"), {"parse": 3900})

    def test_growth_beyond_five_per_cent_fails_and_less_does_not(self):
        recorded = {"a": 100.0, "b": 100.0, "c": 100.0}
        lines, failed = gate.judge({"a": 105.1, "b": 104.9, "c": 50.0}, recorded)
        self.assertEqual(failed, ["a"])
        self.assertIn("GREW", lines[0])
        self.assertIn("less", lines[2])

    def test_a_missing_operation_fails(self):
        self.assertEqual(gate.judge({"a": 1.0}, {"a": 1.0, "b": 1.0})[1], ["b"])

    def test_a_new_operation_does_not_fail(self):
        lines, failed = gate.judge({"a": 1.0, "b": 1.0}, {"a": 1.0})
        self.assertEqual(failed, [])
        self.assertIn("not recorded", lines[1])


class GateCommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.figures = pathlib.Path(folder.name)

    def run_gate(self, counts, *options):
        arguments = ["gate.py", "--program", "unused", *options]
        with (mock.patch.object(gate, "FIGURES", self.figures),
              mock.patch.object(gate, "count", lambda program: ("some-key", counts)),
              mock.patch.object(sys, "argv", arguments),
              contextlib.redirect_stdout(io.StringIO()) as printed,
              contextlib.redirect_stderr(printed)):
            return gate.main(), printed.getvalue()

    def test_recorded_figures_pass_until_they_grow(self):
        self.assertEqual(self.run_gate({"a": 100.0}, "--record")[0], 0)
        self.assertEqual(json.loads((self.figures / "some-key.json").read_text()), {"a": 100.0})
        self.assertEqual(self.run_gate({"a": 101.0})[0], 0)
        status, printed = self.run_gate({"a": 106.0})
        self.assertEqual(status, 1)
        self.assertIn("FAILED: a", printed)

    def test_an_unknown_compiler_or_processor_passes_with_a_hint(self):
        status, printed = self.run_gate({"a": 100.0})
        self.assertEqual(status, 0)
        self.assertIn("NOTHING WAS CHECKED", printed)
        self.assertIn("--gate --record", printed)
        self.assertEqual(list(self.figures.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
