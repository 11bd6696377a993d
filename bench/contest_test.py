#!/usr/bin/env python3
"""Tests of contests: turns, ratios, targets, and entries that fail."""

import pathlib
import types
import unittest

import contest
from contest import Entry, Target
from serving import Failure


class Race(contest.Contest):
    targets = (Target("limit", 0.9), Target("peer", 1))

    def __init__(self, figures, runs=9):
        options = types.SimpleNamespace(runs=runs, peers="all", seconds=1, warm_up=0, server_cpu=0,
                                        build=pathlib.Path("build/release"))
        super().__init__("R1", "a race", options)
        self.figures = figures
        self.order = []

    def entries(self):
        kinds = {"weir": "weir", "limit": "limit"}
        return [Entry(name, kinds.get(name, "peer")) for name in self.figures]

    def measure(self, entry, place):
        self.order.append(entry.name)
        figure = self.figures[entry.name]
        if not figure:
            return {"figure": 0, "errors": 1, "reason": "is broken"}
        return {"figure": figure, "rate": figure / 2, "busy": 0.5, "errors": 0}


def outcome_of(race):
    return race.run(lambda text: None)


def verdicts(outcome):
    return {line["of"]: line["verdict"] for row in outcome["summary"] for line in row["targets"]}


class ContestTest(unittest.TestCase):
    def test_judges_the_ratio_to_the_limit_and_to_the_best_peer(self):
        found = verdicts(outcome_of(Race({"weir": 95, "limit": 100, "one": 50, "two": 96})))
        self.assertEqual(found, {"weir / limit": "met (≥ 0.9)", "weir / peer": "MISSED (≥ 1)"})

    def test_judges_nothing_after_few_rounds_or_without_the_other(self):
        found = verdicts(outcome_of(Race({"weir": 95, "limit": 100}, runs=8)))
        self.assertEqual(found, {"weir / limit": "not judged: 8 rounds",
                                 "weir / peer": "not judged: 0 rounds"})

    def test_an_entry_that_fails_has_no_figure(self):
        outcome = outcome_of(Race({"weir": 0, "limit": 100, "one": 0}))
        self.assertEqual(outcome["errors"], 9)  # not those of the peer
        self.assertIn("| weir | no figure", outcome["markdown"])

    def test_entries_take_turns(self):
        race = Race({"weir": 1, "limit": 1, "one": 1}, runs=2)
        outcome_of(race)
        self.assertEqual(race.order, ["weir", "limit", "one", "limit", "one", "weir"])

    def test_a_server_that_does_not_start_is_an_error(self):
        race = Race({"weir": 1})

        def load(entry, running):
            raise Failure("never called")

        race.load = load
        result = contest.Contest.measure(race, Entry("weir", "weir", ("false",)), "")
        self.assertEqual((result["figure"], result["errors"]), (0, 1))
        self.assertIn("does not serve", result["reason"])


if __name__ == "__main__":
    unittest.main()
