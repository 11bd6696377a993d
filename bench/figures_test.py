"""The statistics of the benchmarks."""

import unittest

import figures


def result(figure, errors=0):
    return {"figure": figure, "busy": 0.99, "rate": figure, "p50": 1000, "p99": 2000,
            "resident": 2**20, "errors": errors}


class FiguresTest(unittest.TestCase):
    def test_shares_are_of_the_best_in_the_same_round(self):
        rounds = [{"a": result(100), "b": result(50)}, {"a": result(10), "b": result(20)}]
        self.assertEqual(figures.shares(rounds, ["a", "b"]), {"a": [1.0, 0.5], "b": [0.5, 1.0]})

    def test_a_machine_that_changes_between_rounds_does_not_change_the_shares(self):
        rounds = [{"a": result(100 * speed), "b": result(80 * speed)} for speed in (1, 3, 7)]
        row = figures.summary(rounds, ["a", "b"])[1]
        self.assertAlmostEqual(row["share"], 0.8)
        self.assertAlmostEqual(row["share_low"], 0.8)
        self.assertAlmostEqual(row["share_high"], 0.8)

    def test_the_interval_holds_the_median_and_widens_with_the_spread(self):
        narrow = figures.median_interval([1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01, 0.99])
        wide = figures.median_interval([1.0, 1.5, 0.5, 1.0, 1.6, 0.4, 1.0, 1.4, 0.6])
        self.assertLessEqual(narrow[0], 1.0)
        self.assertGreaterEqual(narrow[1], 1.0)
        self.assertGreater(wide[1] - wide[0], narrow[1] - narrow[0])

    def test_failures_are_shown_and_never_dropped(self):
        rounds = [{"a": result(100), "b": result(0, errors=7)}]
        rows = figures.summary(rounds, ["a", "b"])
        self.assertEqual(rows[1], {"name": "b", "errors": 7})
        self.assertIn("| b | no figure |", figures.table(rows))
        self.assertTrue(figures.table(rows).splitlines()[-1].endswith("| 7 |"))

    def test_a_server_that_waited_is_marked(self):
        rounds = [{"a": result(100) | {"busy": 0.9}}]
        self.assertIn("not saturated", figures.table(figures.summary(rounds, ["a"])))


if __name__ == "__main__":
    unittest.main()
