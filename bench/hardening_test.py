"""Which programs are compared, and what is made of callgrind's counts."""

import argparse
import pathlib
import unittest

import hardening
import programs
from serving import Failure


class HardeningTest(unittest.TestCase):
    def test_each_server_is_measured_from_both_trees(self):
        pair = hardening.variants(programs.weir("uring"), pathlib.Path("/trees/plain"))
        self.assertEqual([server.name for server in pair],
                         ["weir-uring hardened", "weir-uring plain"])
        work = hardening.works_by_id()["B2"]
        commands = [server.command(pathlib.Path("/trees/release"), work, 0)[0] for server in pair]
        self.assertEqual(commands, ["/trees/release/examples/example_bench",
                                    "/trees/plain/examples/example_bench"])

    def test_the_sections_are_of_uring_and_epoll(self):
        options = argparse.Namespace(plain=pathlib.Path("/trees/plain"))
        sections = hardening.sections(programs.SERVERS, options)
        self.assertEqual(tuple(section.id for section in sections), hardening.IDS)
        self.assertEqual([server.name for server in sections[1].servers],
                         ["weir-uring hardened", "weir-uring plain",
                          "weir-epoll hardened", "weir-epoll plain"])

    def test_the_total_of_a_profile(self):
        summary = "version: 1\nsummary: 12345\nfn=(1) main\n1 2\n"
        self.assertEqual(hardening.total_of(summary), 12345)
        self.assertEqual(hardening.total_of("fn=(1) main\n1 2\ntotals: 99\n"), 99)
        with self.assertRaises(Failure):
            hardening.total_of("fn=(1) main\n1 2\n")

    def test_a_request_costs_what_more_of_them_cost_more(self):
        counting = hardening.Instructions([], None)
        few, many = hardening.REQUESTS["B2"]
        counting.total = lambda server, work, requests: 1_000_000 + 1500 * requests
        self.assertEqual(counting.count(None, hardening.works_by_id()["B2"]), 1500)
        self.assertLess(few, many)

    def test_the_table(self):
        rows = [{"work": "B2", "name": "weir-epoll", "hardened": 1010.0, "plain": 1000.0}]
        self.assertEqual(hardening.table(rows).splitlines()[-1],
                         "| B2 | weir-epoll | 1010.0 | 1000.0 | +1.00 % |")


if __name__ == "__main__":
    unittest.main()
