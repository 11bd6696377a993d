"""Tests the verdict on the gain of a second core."""

import pathlib
import types
import unittest

import programs
import scaling

OURS = programs.weir("epoll")
OPTIONS = types.SimpleNamespace(server_cpu=0, load_cpu=1)
SCALING = scaling.Scaling([OURS], OPTIONS)


def shape(figure, busy=0.99, errors=0):
    return {"figure": figure, "busy": busy, "errors": errors}


def rounds_of(two, count=9):
    return [{f"{OURS.name} one": shape(100), f"{OURS.name} pair": shape(100),
             f"{OURS.name} workers": shape(100), f"{OURS.name} two": two}] * count


class VerdictTest(unittest.TestCase):
    def verdicts(self, two, count=9):
        return [row["verdict"] for row in SCALING.rows_of(OURS, rounds_of(two, count))]

    def test_uses_the_median(self):
        self.assertEqual(self.verdicts(shape(98)), ["met (≥ 0.95)"] + ["met (≥ 0.97)"] * 2)
        self.assertEqual(self.verdicts(shape(96)), ["met (≥ 0.95)"] + ["MISSED (≥ 0.97)"] * 2)

    def test_needs_nine_rounds_busy_servers_and_no_errors(self):
        self.assertEqual(self.verdicts(shape(98), count=8),
                         ["not judged: saturated in 8 rounds"] * 3)
        rows = SCALING.rows_of(OURS, rounds_of(shape(98, busy=0.9)))
        self.assertNotIn("ratio", rows[0])
        self.assertEqual(self.verdicts(shape(98, errors=1)), ["missed: errors"] * 3)

    def test_leaves_out_an_unsaturated_round(self):
        rounds = rounds_of(shape(98), 9) + rounds_of(shape(150, busy=0.5), 1)
        rows = SCALING.rows_of(OURS, rounds)
        self.assertEqual(rows[0]["verdict"], "met (≥ 0.95)")
        self.assertEqual((rows[0]["busy"], rows[0]["ratio"]["max"]), (0.99, 0.98))

    def test_an_unknown_processor_time_is_a_failure(self):
        with self.assertRaises(scaling.Failure):
            scaling.total([{"responses_per_second": 1}], 1)

    def test_leaves_out_rounds_without_a_figure(self):
        failed = {"figure": 0, "errors": 1, "reason": "does not serve"}
        rows = SCALING.rows_of(OURS, rounds_of(failed))
        self.assertNotIn("ratio", rows[0])
        self.assertEqual(rows[0]["errors"], 9)

    def test_logic_elsewhere_is_compared_and_not_judged(self):
        elsewhere = scaling.Elsewhere([OURS, *programs.LIMITS], OPTIONS)
        rounds = [{f"{OURS.name} here": shape(200), f"{OURS.name} elsewhere": shape(100)}] * 9
        self.assertEqual(elsewhere.servers, [OURS])
        row, = elsewhere.rows_of(OURS, rounds)
        self.assertEqual(row["ratio"]["median"], 0.5)
        self.assertNotIn("verdict", row)


class CommandTest(unittest.TestCase):
    def test_workers_belong_to_one_server_on_both_processors(self):
        options = types.SimpleNamespace(server_cpu=0, load_cpu=1, build=pathlib.Path("build"))
        service = scaling.Scaling([OURS], options)
        service.response_bytes = 190
        (command, processors), = service.commands(OURS, "workers")
        self.assertEqual(processors, [0, 1])
        self.assertEqual(command[command.index("--cores") + 1], "2")
        self.assertEqual(command[-2:], ["--processes", "2"])


if __name__ == "__main__":
    unittest.main()
