"""Tests reading the reports of perf and the generator, and the verdict on system calls."""

import json
import unittest

import calls
from serving import Failure

REPORT = f"150300,,{calls.ALL},1,100.00,,\n{{}},,{calls.ENTER},1,100.00,,\n"


def count(every, enter, busy=0.99):
    return {calls.ALL: every * calls.REQUESTS, calls.ENTER: enter * calls.REQUESTS, "busy": busy}


class CallsTest(unittest.TestCase):
    def test_reads_the_counts_of_the_events(self):
        self.assertEqual(calls.counts_of("noise\n" + REPORT.format(12)),
                         {calls.ALL: 150300, calls.ENTER: 12})

    def test_a_missing_count_is_a_failure(self):
        for absent in (REPORT.format("<not counted>"), REPORT.splitlines()[0]):
            with self.assertRaisesRegex(Failure, calls.ENTER):
                calls.counts_of(absent)

    def test_a_report_without_busy_time_is_a_failure(self):
        self.assertEqual(calls.busy_of(json.dumps({"server": {"busy": 0.5}})), 0.5)
        for report in ("", "{}", '{"server": null}'):
            with self.assertRaises(Failure):
                calls.busy_of(report)

    def test_every_round_must_reach_the_target_with_a_busy_server(self):
        def verdict(*counts):
            return calls.row_of("weir-uring", counts)["verdict"]

        fine = count(0.2, 0.05)
        self.assertTrue(verdict(fine, fine, fine).startswith("met"))
        self.assertTrue(verdict(fine, fine, count(0.3, 0.11)).startswith("MISSED"))
        idle = count(0.2, 0.05, busy=0.5)
        self.assertEqual(verdict(fine, idle, idle), "not judged: not saturated")
        self.assertNotIn("verdict", calls.row_of("peer", [fine] * 3))


if __name__ == "__main__":
    unittest.main()
