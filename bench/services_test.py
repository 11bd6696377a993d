"""Tests the verdicts on works of services and events."""

import types
import unittest

import services

OPTIONS = types.SimpleNamespace(runs=9, server_cpu=0, load_cpu=1)


def verdicts(section, rounds):
    return {(row["name"], each["of"]): each["verdict"]
            for row in section.rows(rounds) for each in row["judged"]}


class ServicesTest(unittest.TestCase):
    def test_events_have_a_rate_a_memory_and_a_latency(self):
        def found(millions, each, nanoseconds, count=9):
            one = {"pushed, then drained": {"millions": millions, "bytes each": each},
                   "to one handler": {"one after the other": nanoseconds,
                                      "a thousand at a time": 1.0}}
            return list(verdicts(services.Events(OPTIONS), [one] * count).values())

        self.assertEqual(found(50, 32, 15), ["met (≥ 50 M/s)", "met (≤ 32 bytes)",
                                             "met (≤ 15 ns)", "met (≤ 15 ns)"])
        self.assertEqual(found(49, 33, 16)[:3], ["MISSED (≥ 50 M/s)", "MISSED (≤ 32 bytes)",
                                                 "MISSED (≤ 15 ns)"])
        self.assertEqual(set(found(50, 32, 15, 8)), {"not judged: 8 rounds"})

    def test_too_much_memory_in_one_round_misses_the_target(self):
        good = {"by constructor": {"millions": 3.5, "grown bytes": 0},
                "by factory": {"millions": 3.5, "grown bytes": 0}}
        bad = {**good, "by factory": {"millions": 1.0, "grown bytes": 16}}
        found = verdicts(services.Cycles(OPTIONS), [good] * 8 + [bad])
        self.assertEqual(found["by constructor", "grown bytes"], "met (≤ 0 bytes)")
        self.assertEqual(found["by factory", "grown bytes"], "MISSED (≤ 0 bytes)")
        self.assertEqual(found["by factory", "millions"], "met (≥ 3 M/s)", "a median")

    def test_eight_apps_have_their_share_of_the_processors(self):
        def found(eight, processors, counts):
            app = {"milliseconds": 19, "bytes each": 500}
            one = {"by factory": app, "by constructor": app, "with start() and stop()": app,
                   "eight apps in eight threads": {"milliseconds": eight, "one": 10,
                                                   "processors": processors},
                   "growth": {"time": 1.1, "memory": 1.03}}
            section = services.Services(OPTIONS)
            section.exponent_of_instructions = lambda: counts
            self.assertIn("| growth | memory |", section.table(section.rows([one] * 9)))
            return verdicts(section, [one] * 9)

        two = found(45, 2, 1.01)
        self.assertEqual(two["eight apps in eight threads", "of its share"], "met (≤ 1.15)")
        self.assertEqual(two["growth", "instructions"], "met (≤ 1.02)")
        self.assertEqual(two["growth", "memory"], "MISSED (≤ 1.02)")
        self.assertEqual(two["growth", "time"], "met (≤ 1.15)")
        self.assertEqual(two["by factory", "milliseconds"], "met (≤ 20 ms)")
        four = found(45, 4, None)
        self.assertEqual(four["eight apps in eight threads", "of its share"], "MISSED (≤ 1.15)")
        self.assertNotIn(("growth", "instructions"), four, "not counted")
        self.assertEqual(found(11, 16, 1.03)["growth", "instructions"], "MISSED (≤ 1.02)")

    def test_a_file_that_does_not_compile_has_no_figure(self):
        section = services.Compiling(OPTIONS)
        section.rounds = lambda: (_ for _ in ()).throw(services.Failure("error: oh"))
        self.assertEqual(section.run(lambda _: None)["errors"], 1)
        rounds = [{"twenty services": {"seconds": 4.5}}] * 9
        self.assertEqual(list(verdicts(section, rounds).values()), ["met (≤ 5 s)"])


if __name__ == "__main__":
    unittest.main()
