"""Tests the verdicts on works inside one process."""

import types
import unittest

import inside

OPTIONS = types.SimpleNamespace(runs=9, server_cpu=0, load_cpu=1)


class InsideTest(unittest.TestCase):
    def test_ratios_are_judged_by_their_median_of_nine_rounds_or_more(self):
        self.assertEqual(inside.verdict([1.0] * 9, 1), "met (≥ 1)")
        self.assertEqual(inside.verdict([0.9] * 5 + [2.0] * 4, 1), "MISSED (≥ 1)")
        self.assertEqual(inside.verdict([2.0] * 8, 1), "not judged: 8 rounds")

    def test_a_task_needs_nine_rounds(self):
        def verdict(nanoseconds, count):
            rounds = [{"Task": {"all": nanoseconds}}] * count
            return inside.Tasks(OPTIONS).rows(rounds)[0]["verdict"]

        self.assertEqual(verdict(14.0, 9), "met (≤ 15 ns)")
        self.assertEqual(verdict(16.0, 9), "MISSED (≤ 15 ns)")
        self.assertEqual(verdict(14.0, 1), "not judged: 1 rounds")

    def test_round_trips_of_json_need_nine_rounds(self):
        def verdict(millions, count):
            rounds = [{"weir::json": {"millions": millions}}] * count
            return inside.Json(OPTIONS).rows(rounds)[0]["verdict"]

        self.assertEqual(verdict(10.5, 9), "met (≥ 10)")
        self.assertEqual(verdict(9.5, 9), "MISSED (≥ 10)")
        self.assertEqual(verdict(10.5, 8), "not judged: 8 rounds")

    def test_containers_that_walk_differently_are_no_figure(self):
        row = dict.fromkeys(inside.RadixTree.operations, 1.0)
        rounds = [{"weir::RadixTree": row | {"sum": 1}, "std::map": row | {"sum": 2}}] * 9
        with self.assertRaises(inside.Failure):
            inside.RadixTree(OPTIONS).rows(rounds)

    def test_hops_and_messages_need_nine_rounds(self):
        def hop(nanoseconds, count):
            times = {"one way": 1, "there and back": nanoseconds}
            return inside.Hops(OPTIONS, "epoll").rows([{"loop that is awake": times}] * count)[0]

        def mail(millions, count):
            figures = {"millions a second": millions, "wakes a million": 1}
            beside = {"millions a second": 1, "wakes a million": 1}
            return inside.Messages(OPTIONS, "uring").rows(
                [{"Mailbox": figures, inside.Messages.baseline: beside}] * count)[0]

        self.assertEqual(hop(900, 9)["verdict"], "met (≤ 1,000 ns)")
        self.assertEqual(hop(1100, 9)["verdict"], "MISSED (≤ 1,000 ns)")
        self.assertEqual(hop(900, 8)["verdict"], "not judged: 8 rounds")
        self.assertEqual(mail(10, 9)["verdict"], "met (≥ 10)")
        self.assertEqual(mail(4, 9)["verdict"], "MISSED (≥ 10)")
        self.assertEqual(mail(4, 9)["ratio"]["verdict"], "MISSED (≥ 5)")
        self.assertEqual(mail(10, 3)["verdict"], "not judged: 3 rounds")

    def test_datagrams_are_compared_with_the_matching_plain_loop(self):
        def row(ratio, count):
            same = dict.fromkeys(inside.Datagrams.figures_of, 1.0)
            rounds = {"weir, many at once": same | {"one peer": ratio, "16 peers": 2.0},
                      "weir, one by one": same} | dict.fromkeys(
                          inside.Datagrams.baselines.values(), same)
            section = inside.Datagrams(OPTIONS, "epoll")
            rows = section.rows([rounds] * count)
            self.assertIn("| weir, one by one | 1.00 |", section.table(rows))
            return rows[0]["ratios"]

        self.assertEqual(row(0.96, 9)["one peer"]["verdict"], "met (≥ 0.95)")
        self.assertEqual(row(0.90, 9)["one peer"]["verdict"], "MISSED (≥ 0.95)")
        self.assertEqual(row(0.90, 9)["16 peers"]["verdict"], "met (≥ 0.95)")
        self.assertEqual(row(0.96, 8)["one peer"]["verdict"], "not judged: 8 rounds")

    def test_a_hop_to_the_pool_is_compared_with_all_built_libraries(self):
        def ratios(count, **others):
            times = {"one": 100, "sixty-four": 50}
            one = {"Weir": times, "Weir, four threads": times, **others}
            return inside.PoolHops(OPTIONS).rows([one] * count)

        slow, quick = {"one": 200, "sixty-four": 51}, {"one": 99, "sixty-four": 40}
        rows = ratios(9, libuv=slow, asio=quick)
        beside = rows[0]["beside"]
        self.assertEqual(beside["libuv"]["one"]["verdict"], "met (≥ 1)")
        self.assertEqual(beside["libuv"]["sixty-four"]["verdict"], "met (≥ 1)")
        self.assertEqual(beside["asio"]["one"]["verdict"], "MISSED (≥ 1)")
        self.assertEqual(beside["asio"]["sixty-four"]["verdict"], "MISSED (≥ 1)")
        self.assertEqual(len(rows[0]["targets"]), 4)
        self.assertEqual(rows[1]["beside"], {}, "shown, not judged")
        self.assertEqual(ratios(8, libuv=slow)[0]["beside"]["libuv"]["one"]["verdict"],
                         "not judged: 8 rounds")
        self.assertEqual(ratios(9)[0]["beside"], {}, "no other library was built")
        self.assertIn("libuv / Weir", inside.PoolHops(OPTIONS).table(rows))

    def test_coroutines_have_a_rate_a_ratio_and_a_memory(self):
        def coroutine(millions, grown=0):
            return {"millions": millions, "grown KiB": grown, "peak KiB": 1, "cores": 1}

        def row(millions, bare, grown, count=9):
            one = {"Weir, one loop": coroutine(millions), "bare": coroutine(bare)}
            last = {"Weir, one loop": coroutine(millions, grown), "bare": coroutine(bare)}
            return inside.Coroutines(OPTIONS).rows([one] * (count - 1) + [last])[0]

        good = row(30, 60, 64)
        self.assertEqual(good["verdict"], "met (≥ 30)")
        self.assertEqual(good["beside"]["bare"]["verdict"], "met (≥ 0.5)")
        self.assertEqual(good["flat"], "met (≤ 64 KiB)")
        bad = row(29, 60, 65)
        self.assertEqual(bad["verdict"], "MISSED (≥ 30)")
        self.assertEqual(bad["beside"]["bare"]["verdict"], "MISSED (≥ 0.5)")
        self.assertEqual(bad["flat"], "MISSED (≤ 64 KiB)", "one round is enough")
        few = row(31, 60, 0, count=8)
        self.assertEqual({few["verdict"], few["beside"]["bare"]["verdict"], few["flat"]},
                         {"not judged: 8 rounds"})

    def test_uncontended_operations_and_timers_need_nine_rounds(self):
        def uncontended(each, count):
            rounds = [{"Mutex": {"each": each}, "std::mutex": {"each": 1}}] * count
            return inside.Uncontended(OPTIONS).rows(rounds)

        def timers(total, count):
            times = {"start": 1, "cancel": 1, "fire": 1, "all": total}
            rounds = [{"TimerWheel": times, "std::multimap": times}] * count
            return inside.Timers(OPTIONS).rows(rounds)

        def metrics(each, beside, count):
            names = {"Weir, counter": each, "Weir, native": each, "prometheus-cpp, counter": beside}
            rounds = [{name: dict.fromkeys(inside.Metrics.parts, figure)
                       for name, figure in names.items()}] * count
            return inside.Metrics(OPTIONS).rows(rounds)

        self.assertEqual(metrics(5, 6, 9)[0]["verdict"], "met (≤ 5 ns)")
        self.assertEqual(metrics(6, 5, 9)[0]["verdict"], "MISSED (≤ 5 ns)")
        self.assertEqual(metrics(6, 5, 9)[0]["beside"]["alone"]["verdict"], "MISSED (≥ 1)")
        self.assertEqual(metrics(5, 6, 8)[0]["beside"]["together"]["verdict"],
                         "not judged: 8 rounds")
        self.assertEqual(metrics(5, 6, 9)[1]["beside"], {})
        self.assertEqual(uncontended(10, 9)[0]["verdict"], "met (≤ 10 ns)")
        self.assertEqual(uncontended(10.1, 9)[0]["verdict"], "MISSED (≤ 10 ns)")
        self.assertEqual(uncontended(9, 8)[0]["verdict"], "not judged: 8 rounds")
        self.assertNotIn("verdict", uncontended(9, 9)[1])
        self.assertEqual(timers(100, 9)[0]["verdict"], "met (≤ 100 ns)")
        self.assertEqual(timers(101, 9)[0]["verdict"], "MISSED (≤ 100 ns)")
        self.assertEqual(timers(9, 8)[0]["verdict"], "not judged: 8 rounds")
        self.assertNotIn("verdict", timers(9, 9)[1])

    def test_a_program_that_fails_is_an_error(self):
        section = inside.Tasks(OPTIONS)
        section.rounds = lambda: (_ for _ in ()).throw(inside.Failure("crashed"))
        outcome = section.run(lambda _: None)
        self.assertEqual((outcome["errors"], outcome["markdown"]), (1, "No figure: crashed"))


if __name__ == "__main__":
    unittest.main()
