"""Tests the statistics of the benchmarks and their verdicts."""

import unittest

import figures
import works
from programs import Peer, Server

A = Server("a", "")
LIMIT = Server("limit", "", canned=True)
PEER = Peer("peer", "", source="peer")
WORK = works.Workload("W", "a work", target=works.Target(0.9, 0.85))


def result(figure, errors=0, **more):
    return {"figure": figure, "busy": 0.99, "rate": figure, "p50": 1000, "p99": 2000,
            "resident": 2**20, "errors": errors} | more


class FiguresTest(unittest.TestCase):
    def test_shares_are_of_the_best_in_the_same_round(self):
        rounds = [{"a": result(100), "b": result(50)}, {"a": result(10), "b": result(20)}]
        self.assertEqual(figures.ratios(rounds, ["a", "b"]), {"a": [1.0, 0.5], "b": [0.5, 1.0]})
        self.assertEqual(figures.ratios(rounds, ["a"], others={"b"}), {"a": [2.0, 0.5]})

    def test_a_machine_that_changes_between_rounds_does_not_change_the_shares(self):
        rounds = [{"a": result(80 * speed), "limit": result(100 * speed)} for speed in (1, 3, 7)]
        share = figures.summary(rounds, [A, LIMIT], WORK)[0]["share"]
        for key in ("median", "low", "high"):
            self.assertAlmostEqual(share[key], 0.8)

    def test_the_interval_holds_the_median_and_widens_with_the_spread(self):
        narrow = figures.median_interval([1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01, 0.99])
        wide = figures.median_interval([1.0, 1.5, 0.5, 1.0, 1.6, 0.4, 1.0, 1.4, 0.6])
        self.assertLessEqual(narrow[0], 1.0)
        self.assertGreaterEqual(narrow[1], 1.0)
        self.assertGreater(wide[1] - wide[0], narrow[1] - narrow[0])

    def test_failures_are_shown_and_never_dropped(self):
        rounds = [{"a": result(0, errors=7), "limit": result(100)}]
        rows = figures.summary(rounds, [A, LIMIT], WORK)
        self.assertEqual(rows[0]["errors"], 7)
        self.assertIn("| a | no figure |", figures.table(rows))
        self.assertTrue(figures.table(rows).splitlines()[-2].endswith("| 7 |"))

    def test_marks_an_unsaturated_server(self):
        rounds = [{"a": result(100, busy=0.9)}]
        self.assertIn("(waits)", figures.table(figures.summary(rounds, [A], WORK)))


class VerdictTest(unittest.TestCase):
    def verdict(self, ours, limit=100, rounds=9, work=WORK, **more):
        each = {"a": result(ours, **more), "limit": result(limit)}
        return figures.summary([each] * rounds, [A, LIMIT], work)[0]["verdict"]

    def test_uses_the_median_and_the_lower_end(self):
        self.assertTrue(self.verdict(91).startswith("met"))
        self.assertTrue(self.verdict(89).startswith("MISSED"))
        unsteady = [{"a": result(ours), "limit": result(100)}
                    for ours in (50, 60, 70, 80, 91, 92, 93, 94, 95)]
        rows = figures.summary(unsteady, [A, LIMIT], WORK)
        self.assertTrue(rows[0]["verdict"].startswith("MISSED"))

    def test_needs_nine_rounds_a_busy_server_and_no_errors(self):
        self.assertEqual(self.verdict(95, rounds=8), "not judged: 8 rounds")
        self.assertEqual(self.verdict(95, busy=0.9), "not judged: saturated in 0 rounds")
        self.assertEqual(self.verdict(95, errors=1), "missed: errors")

    def test_leaves_out_rounds_with_an_unsaturated_server(self):
        good = {"a": result(95), "limit": result(100)}
        for waiting in ({"a": result(150, busy=0.9), "limit": result(100)},
                        {"a": result(95), "limit": result(60, busy=0.9)}):
            row = figures.summary([good] * 9 + [waiting] * 10, [A, LIMIT], WORK)[0]
            self.assertEqual(row["verdict"], "met (0.90)")
            self.assertEqual((row["reached"]["pairs"], row["reached"]["max"]), (9, 0.95))
            row = figures.summary([good] * 8 + [waiting] * 10, [A, LIMIT], WORK)[0]
            self.assertEqual(row["verdict"], "not judged: saturated in 8 rounds")

    def test_may_be_against_the_limit_servers_alone(self):
        work = works.Workload("W", "a work", target=works.Target(0.9, to="limit"))
        each = {"a": result(91), "limit": result(100), "peer": result(150)}
        row = figures.summary([each] * 9, [A, LIMIT, PEER], work)[0]
        self.assertAlmostEqual(row["share"]["median"], 0.91)
        self.assertTrue(row["verdict"].startswith("met"))

    def test_a_peer_that_leads_in_the_few_rounds_it_joins_decides(self):
        alone = {"a": result(95), "limit": result(100)}
        joined = alone | {"peer": result(120)}
        row = figures.summary([alone] * 5 + [joined] * 4, [A, LIMIT, PEER], WORK)[0]
        self.assertEqual(row["verdict"], "MISSED (0.90), beside peer")
        self.assertEqual((row["reached"]["of"], row["reached"]["pairs"]), ("peer", 4))
        behind = alone | {"peer": result(50)}
        row = figures.summary([alone] * 5 + [behind] * 4, [A, LIMIT, PEER], WORK)[0]
        self.assertEqual(row["verdict"], "met (0.90)")

    def test_ignores_an_unsaturated_peer(self):
        each = {"a": result(95), "limit": result(100), "peer": result(120, busy=0.9)}
        row = figures.summary([each] * 9, [A, LIMIT, PEER], WORK)[0]
        self.assertEqual(row["verdict"], "met (0.90)")

    def test_reports_servers_faster_than_the_limit_servers(self):
        each = {"a": result(95), "limit": result(100), "peer": result(120)}
        rows = figures.summary([each] * 9, [A, LIMIT, PEER], WORK)
        self.assertEqual(figures.faster_peers(rows, [each] * 9), {"peer": 1.2})

    def test_as_good_as_the_best_peer_is_not_ahead(self):
        work = works.Workload("W", "a work", saturates=False, target=works.Target(1, to="peers"))
        for ours in ({"p50": 999, "p99": 1999}, {"rate": 120, "p99": 1999}):
            each = {"a": result(100) | ours, "peer": result(100)}
            row = figures.summary([each] * 9, [A, PEER], work)[0]
            self.assertTrue(row["verdict"].startswith("MISSED"), row["verdict"])
            self.assertEqual(row["reached"]["of"], "the best peer")

    def test_needs_every_figure_better_than_the_peers(self):
        work = works.Workload("W", "a work", saturates=False, target=works.Target(1, to="peers"))

        def verdict(**ours):
            each = {"a": result(100) | ours, "peer": result(100)}
            return figures.summary([each] * 9, [A, PEER], work)[0]["verdict"]

        self.assertTrue(verdict(rate=120, p50=900, p99=1900).startswith("met"))
        self.assertTrue(verdict(rate=90, p50=900, p99=1900).startswith("MISSED"))
        self.assertTrue(verdict(rate=120, p50=900, p99=3000).startswith("MISSED"))


if __name__ == "__main__":
    unittest.main()
