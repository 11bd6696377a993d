"""The verdict on what a second core adds."""

import unittest

import programs
import scaling

OURS = programs.weir("epoll")


def shape(figure, busy=0.99, errors=0):
    return {"figure": figure, "busy": busy, "errors": errors}


def rounds_of(two, count=9):
    return [{f"{OURS.name} one": shape(100), f"{OURS.name} pair": shape(100),
             f"{OURS.name} two": two}] * count


class VerdictTest(unittest.TestCase):
    def verdicts(self, two, count=9):
        return [row["verdict"] for row in scaling.rows_of(OURS, rounds_of(two, count))]

    def test_is_by_the_median(self):
        self.assertEqual(self.verdicts(shape(98)), ["met (≥ 0.95)", "met (≥ 0.97)"])
        self.assertEqual(self.verdicts(shape(96)), ["met (≥ 0.95)", "MISSED (≥ 0.97)"])

    def test_needs_nine_rounds_busy_servers_and_no_errors(self):
        self.assertEqual(self.verdicts(shape(98), count=8), ["not judged: 8 rounds"] * 2)
        self.assertEqual(self.verdicts(shape(98, busy=0.9)), ["not judged: not saturated"] * 2)
        self.assertEqual(self.verdicts(shape(98, errors=1)), ["missed: errors"] * 2)

    def test_one_round_that_waited_does_not_undo_the_others(self):
        rounds = rounds_of(shape(98), 8) + rounds_of(shape(98, busy=0.5), 1)
        rows = scaling.rows_of(OURS, rounds)
        self.assertEqual(rows[0]["verdict"], "met (≥ 0.95)")
        self.assertEqual(rows[0]["busy"], 0.99)

    def test_what_gave_no_figure_is_no_pair(self):
        failed = {"figure": 0, "errors": 1, "reason": "does not serve"}
        rows = scaling.rows_of(OURS, rounds_of(failed))
        self.assertNotIn("ratio", rows[0])
        self.assertEqual(rows[0]["errors"], 9)


if __name__ == "__main__":
    unittest.main()
