"""Tests the choice of programs, the use of callgrind's counts, and the texts about the cost."""

import argparse
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import hardening
import programs
from serving import Failure, serving


def result(figure, busy=0.99):
    return {"figure": figure, "busy": busy}


def rounds_of(ratios, **more):
    return [{"weir-epoll hardened": result(1000 * ratio, **more),
             "weir-epoll plain": result(1000)} for ratio in ratios]


class VariantsTest(unittest.TestCase):
    def test_each_server_is_measured_from_both_trees(self):
        pair = hardening.variants(programs.weir("uring"), pathlib.Path("/trees/plain"))
        self.assertEqual([server.name for server in pair],
                         ["weir-uring hardened", "weir-uring plain"])
        work = hardening.works_by_id()["B2"]
        commands = [server.command(pathlib.Path("/trees/release"), work, 0)[0] for server in pair]
        self.assertEqual(commands, ["/trees/release/examples/example_bench",
                                    "/trees/plain/examples/example_bench"])

    def test_counts_instructions_of_all_backends_and_requests_of_the_fast_ones(self):
        options = argparse.Namespace(plain=pathlib.Path("/trees/plain"))
        sections = hardening.sections(programs.SERVERS, options)
        self.assertEqual(tuple(section.id for section in sections), hardening.IDS)
        self.assertEqual([pair[0].name for pair in sections[0].pairs],
                         ["weir-uring hardened", "weir-epoll hardened", "weir-poll hardened"])
        self.assertEqual([server.name for server in sections[1].servers],
                         ["weir-uring hardened", "weir-uring plain",
                          "weir-epoll hardened", "weir-epoll plain"])
        self.assertLessEqual(set(hardening.REQUESTS), set(hardening.works_by_id()))


class InstructionsTest(unittest.TestCase):
    def test_the_total_of_a_profile(self):
        summary = "version: 1\nsummary: 12345\nfn=(1) main\n1 2\n"
        self.assertEqual(hardening.total_of(summary), 12345)
        self.assertEqual(hardening.total_of("fn=(1) main\n1 2\ntotals: 99\n"), 99)
        with self.assertRaises(Failure):
            hardening.total_of("fn=(1) main\n1 2\n")

    def test_the_cost_of_a_request_is_the_difference_of_two_loads(self):
        asked = []

        def spent(requests):
            asked.append(requests)
            once = 5_000_000 if len(asked) == 1 else 70_000
            return once + 1500 * requests

        self.assertEqual(hardening.for_each(spent, 10, 30), [1500] * hardening.COUNTS)
        for few, many in hardening.REQUESTS.values():
            self.assertLess(few, many)

    def with_vgdb(self, script):
        """Returns a folder in which vgdb is this script."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        program = pathlib.Path(folder.name) / "vgdb"
        program.write_text(f"#!/bin/sh\ncd {folder.name}\n{script}\n")
        program.chmod(0o755)
        path = mock.patch.dict(os.environ, PATH=f"{folder.name}:{os.environ['PATH']}")
        path.start()
        self.addCleanup(path.stop)
        return pathlib.Path(folder.name)

    def test_each_dump_has_a_file_of_its_own(self):
        folder = self.with_vgdb('n=$(($(ls callgrind.* 2>/dev/null | wc -l) + 1))\n'
                                'echo "totals: ${n}00 $*" > callgrind.$n')
        counting = hardening.Counting(os.getpid(), folder)
        self.assertEqual([counting.since_last(), counting.since_last()], [100, 200])
        self.assertEqual((folder / "callgrind.2").read_text().split(" ", 2)[2],
                         f"--vgdb-prefix={folder}/vgdb --pid={os.getpid()} dump\n")

    def test_nothing_is_dumped_before_the_server_has_closed_its_connections(self):
        folder = self.with_vgdb("echo 'totals: 7' > callgrind.1")
        opened = iter([3, 19, 5, 3])
        with mock.patch.object(hardening.Counting, "open_descriptors", lambda _: next(opened)):
            self.assertEqual(hardening.Counting(os.getpid(), folder).since_last(), 7)
        self.assertEqual(list(opened), [])

    def test_reports_a_failed_dump(self):
        folder = self.with_vgdb("echo no such process >&2; exit 1")
        with self.assertRaisesRegex(Failure, "no such process"):
            hardening.Counting(os.getpid(), folder).since_last()

    def test_a_server_that_does_not_end_is_killed(self):
        stubborn = ("import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                    "print('listening on 127.0.0.1:1', flush=True)\ntime.sleep(600)\n")
        processor = min(os.sched_getaffinity(0))
        with serving([sys.executable, "-c", stubborn], [processor], stop_seconds=0.1) as running:
            self.assertEqual(running.port, 1)
        self.assertEqual(running.process.returncode, -9)

    def test_the_table(self):
        row = hardening.row_of("B2", "weir-epoll", {"hardened": [1010, 1030, 1020],
                                                    "plain": [1000, 1000, 1000]})
        said = hardening.instructions_markdown([row, row | {"cost": 1.041}])
        self.assertIn("| B2 | weir-epoll | 1,020.0 | 1,000.0 | 1.020 | 2.0 % |", said)
        self.assertIn("B3 (GET of 190 bytes), B13 (JSON ping)", said)
        self.assertIn("costs 2.0 % to 4.1 % of the instructions", said)


class VerdictTest(unittest.TestCase):
    def verdict(self, ratios, **more):
        row, = hardening.paired(rounds_of(ratios, **more))
        return row["verdict"]

    def test_ratios_are_of_one_round(self):
        rounds = rounds_of([0.98] * 8) + [{"weir-epoll hardened": result(98),
                                           "weir-epoll plain": result(100)}]
        row, = hardening.paired(rounds)
        self.assertEqual((row["name"], row["ratio"]["pairs"]), ("weir-epoll", 9))
        self.assertAlmostEqual(row["ratio"]["median"], 0.98)
        self.assertAlmostEqual(row["ratio"]["min"], 0.98)

    def test_nothing_is_refuted_confirmed_or_left_open(self):
        self.assertEqual(self.verdict([0.97, 0.98, 0.99] * 3), "refuted")
        self.assertEqual(self.verdict([0.995, 1.0, 1.005] * 3), "confirmed")
        self.assertEqual(self.verdict([0.97] * 5 + [1.02] * 4), "open")
        self.assertEqual(self.verdict([0.97] * 8), "not judged")

    def test_does_not_compare_unsaturated_servers(self):
        self.assertEqual(self.verdict([0.97] * 9, busy=0.5), "not judged")
        outcome = {"rounds": rounds_of([0.97] * 9, busy=0.5), "summary": []}
        said = hardening.served_markdown(outcome)
        self.assertIn("| weir-epoll | no figure | | | 0 |", said)
        self.assertIn("not judged for weir-epoll", said)

    def test_the_sentence(self):
        def row(name, verdict, median):
            return {"name": name, "verdict": verdict, "ratio": {"median": median}}

        self.assertEqual(
            hardening.sentence([row("a", "refuted", 0.988), row("b", "confirmed", 1.002),
                                row("c", "open", 0.979)]),
            "That hardening costs nothing is refuted for a, which it costs 1.2 %; confirmed for b, "
            "within 1.0 %; open for c: 2.1 %, but perhaps nothing.")

    def test_the_page_needs_a_full_run(self):
        machine = {"processor": "A", "processors": 2, "kernel": "6", "date": "2026-01-02",
                   "commit": "abc"}
        served = {"title": "GET", "kind": "served", "rounds": rounds_of([0.97] * 9), "summary": []}
        counted = {"title": "counts", "kind": "instructions", "markdown": "few"}
        report = {"machine": machine,
                  "works": {"instructions": counted, "B1": served, "B2": served}}
        page = hardening.page(report)
        for part in ("commit abc\n", "### instructions: counts\n\nfew\n", "### B2: GET\n",
                     "| weir-epoll | 0.970 | 0.970..0.970 | 0.970..0.970 | 9 |",
                     "**That hardening costs nothing is refuted for weir-epoll, which it costs "
                     "3.0 %.**"):
            self.assertIn(part, page)
        del report["works"]["B1"]
        with self.assertRaisesRegex(SystemExit, "B1 was not measured"):
            hardening.page(report)


if __name__ == "__main__":
    unittest.main()
