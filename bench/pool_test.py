"""Tests the load on pools, the statistics of their operations, and the drawing."""

import types
import unittest
import xml.dom.minidom

import pool
import pool_figures
import pool_plot
import pool_work
from pool_figures import AUTOMATIC


def operation(arrived_ms, took_ms):
    return {"arrived_ns": int(arrived_ms * 1e6), "took_ns": int(took_ms * 1e6)}


def result(makespan, average=None, size=4, **more):
    return {"min": 1, "average": average or makespan / 2, "max": makespan, "makespan": makespan,
            "average_since_start": average or makespan / 2, "throughput": 10, "size": size,
            "cheap_us": None, "cheap_idle_us": 100, **more}


class FiguresTest(unittest.TestCase):
    def test_times_count_from_sending_the_request(self):
        # Two requests of two operations; the server read the second request 30 ms late.
        sent = [0, 10_000_000]
        operations = [operation(40, 20), operation(1, 9), operation(40, 30), operation(1, 19)]
        self.assertEqual(pool_figures.times(sent, operations), [10, 20, 50, 60])

    def test_the_makespan_is_from_the_first_request_to_the_last_end(self):
        reports = [{"size": 2, "reason": "a"}, {"size": 9, "reason": "b"}, {"size": 4,
                                                                          "reason": "a"}]
        found = pool_figures.outcome([5_000_000], [operation(6, 4), operation(6, 14)], reports)
        self.assertEqual((found["makespan"], found["min"], found["max"]), (15, 5, 15))
        self.assertEqual((found["average"], found["average_since_start"]), (10, 10))
        self.assertAlmostEqual(found["throughput"], 2000 / 15)
        self.assertEqual((found["size"], found["reasons"]), (9, ["a", "b"]))

    def test_a_late_answer_counts_from_the_start(self):
        # The client sent its second request only after 100 ms, when the first was answered.
        found = pool_figures.outcome([0, 100_000_000], [operation(0, 10), operation(100, 10)],
                                     [{"size": 2, "reason": "a"}])
        self.assertEqual((found["average"], found["average_since_start"]), (10, 60))

    def test_the_best_size_has_the_best_median_and_is_compared_in_the_same_round(self):
        rounds = [{"4": result(100), "8": result(50), AUTOMATIC: result(110)},
                  {"4": result(300), "8": result(400), AUTOMATIC: result(330)},
                  {"4": result(200), "8": result(400), AUTOMATIC: result(220)}]
        best, ratios = pool_figures.against_best(rounds, "makespan")
        self.assertEqual(best, "4")
        for ratio in ratios:
            self.assertAlmostEqual(ratio, 1.1)

    def test_blocked_work_has_time_to_find_its_size(self):
        rounds = [{"1024": result(1000), AUTOMATIC: result(1290)}] * 9
        [line] = pool_figures.judged("sleep", "case-3", rounds)
        self.assertEqual(line["verdict"], "met")
        [line] = pool_figures.judged("mix", "case-3", [{"4": result(1000),
                                                        AUTOMATIC: result(1310)}] * 9)
        self.assertEqual(line["verdict"], "MISSED")

    def test_computing_is_judged_by_makespan_and_average_from_nine_rounds_on(self):
        rounds = [{"4": result(1000, 500), AUTOMATIC: result(1040, 560)}]
        makespan, average = pool_figures.judged("cpu", "case-1", rounds * 9)
        self.assertEqual((makespan["verdict"], average["verdict"]), ("met", "MISSED"))
        makespan, _ = pool_figures.judged("cpu", "case-1", rounds * 8)
        self.assertIn("not judged: 8", makespan["verdict"])

    def test_without_an_automatic_pool_nothing_is_judged(self):
        self.assertEqual(pool_figures.judged("cpu", "case-1", [{"4": result(1)}] * 9), [])
        self.assertEqual(pool_figures.judged("cpu", "case-1", []), [])

    def test_the_cheap_endpoint_may_take_three_times_as_long_or_a_millisecond(self):
        for idle, busy, verdict in ((100, 999, "met"), (100, 1001, "MISSED"), (500, 1499, "met"),
                                    (500, 1501, "MISSED")):
            rounds = [{AUTOMATIC: result(1, cheap_idle_us=idle, cheap_us=busy)}]
            lines = pool_figures.cheap_lines({"weir": rounds, "node": []})
            self.assertEqual(lines["weir"]["verdict"], verdict)
            self.assertNotIn("node", lines)

    def test_rows_are_medians_and_unmeasured_figures_are_left_out(self):
        row = pool_figures.row([result(3), result(1), result(2, size=7)])
        self.assertEqual((row["makespan"], row["makespan_min"], row["makespan_max"]), (2, 1, 3))
        self.assertEqual((row["runs"], row["size"]), (3, 7))
        self.assertNotIn("cheap_us", row)
        shown = pool_figures.table({("weir", AUTOMATIC): row})
        self.assertIn("| weir | auto (to 7) | 2 |", shown)
        widths = {line.count("|") for line in shown.splitlines()}
        self.assertEqual(len(widths), 1, shown)


class WorkTest(unittest.TestCase):
    def test_the_cases_have_the_operations_of_b6(self):
        self.assertEqual([case.operations for case in pool_work.CASES], [150, 150, 750])

    def test_processors_or_threads_bound_the_least_time(self):
        case = pool_work.CASES[-1]

        def least(kind, size):
            return pool_work.least_seconds(kind, case, size, 0.004, 2)

        self.assertAlmostEqual(least("cpu", 4), 1.5)
        self.assertAlmostEqual(least("cpu", None), 1.5)
        self.assertAlmostEqual(least("sleep", 5), 7.5)
        self.assertAlmostEqual(least("sleep", 1024), 0.05)
        self.assertAlmostEqual(least("sleep", None), 0.05)
        self.assertAlmostEqual(least("mix", None), 0.75)
        self.assertAlmostEqual(least("mix", 10), (375 * 0.05 + 375 * 0.004) / 10)

    def test_iterations_grow_with_the_time_that_is_asked_for(self):
        short, long = (pool_work.iterations_for(seconds, 1) for seconds in (0.5, 50))
        self.assertGreater(long, 10 * short)

    def test_finds_the_length_of_a_body_in_any_case(self):
        self.assertEqual(pool_work.length_of(b"HTTP/1.1 202 X\r\ncontent-LENGTH: 12"), 12)
        self.assertEqual(pool_work.length_of(b"HTTP/1.1 202 X"), 0)


class PlanTest(unittest.TestCase):
    def plan(self, runs, *only, sizes=pool.SIZES):
        options = types.SimpleNamespace(runs=runs, sizes=sizes, wants=pool.name_filter(only))
        programs = [pool.Program("weir", ("lab", "--pool", "{size}"), pool.SIZES),
                    pool.Program("node", ("node",), pool.SIZES[:-1], ("cpu",))]
        programs = [program for program in programs if options.wants(program.name)]
        return list(pool.Laboratory(options, programs, 100, 0.001).plan())

    def test_each_round_has_every_size_and_begins_at_another(self):
        plan = self.plan(2, "cpu", "case-1", "weir")
        sizes = [[size for number, *_, size in plan if number == each] for each in (0, 1)]
        self.assertEqual([sorted(each) for each in sizes], [sorted(pool.SIZES)] * 2)
        self.assertNotEqual(sizes[0][0], sizes[1][0])

    def test_peers_join_every_third_round_with_their_kinds(self):
        plan = self.plan(6, "case-1", sizes=["4", AUTOMATIC])
        others = [(number, kind, size) for number, kind, _, program, size in plan
                  if program.name == "node"]
        self.assertEqual(others, [(0, "cpu", "4"), (3, "cpu", "4")])

    def test_each_name_narrows_only_its_group(self):
        wants = pool.name_filter(("cpu", "case-1", "case-3"))
        self.assertTrue(wants("cpu") and wants("case-3") and wants("node"))
        self.assertFalse(wants("mix") or wants("case-2"))

    def test_the_size_is_put_into_the_command(self):
        program = pool.Program("node", ("env", "UV_THREADPOOL_SIZE={size}", "node"), ("4",))
        self.assertEqual(program.command("4"), ["env", "UV_THREADPOOL_SIZE=4", "node"])


class PlotTest(unittest.TestCase):
    def test_draws_sizes_as_a_line_and_the_automatic_size_across(self):
        rows = {("weir", size): {"makespan": 100 * number + 1}
                for number, size in enumerate(("4", "8", "16", AUTOMATIC))}
        rows["node", "4"] = {"makespan": 5}
        report = {"machine": {"processor": "A & B", "processors": 2, "kernel": "6", "date": "now"}}
        drawing = pool_plot.drawing(report, {"cpu, case-1": rows, "mix <1>": rows})
        document = xml.dom.minidom.parseString(drawing)
        lines = document.getElementsByTagName("polyline")
        self.assertEqual([len(each.getAttribute("points").split()) for each in lines],
                         [3, 1, 3, 1])
        dashed = [each for each in document.getElementsByTagName("line")
                  if each.getAttribute("stroke-dasharray")]
        self.assertEqual(len(dashed), 2)
        height = float(document.documentElement.getAttribute("height"))
        for circle in document.getElementsByTagName("circle"):
            self.assertTrue(0 < float(circle.getAttribute("cy")) < height)

    def test_an_axis_holds_a_single_value(self):
        low, high = pool_plot.decades([7, 7])
        self.assertTrue(low < 7 < high and high / low >= 2)


if __name__ == "__main__":
    unittest.main()
