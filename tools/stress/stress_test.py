#!/usr/bin/env python3
"""Tests that soak and stress detect faults."""

import dataclasses
import unittest

import soak
import stress


def sample(**changes):
    usual = soak.Sample(minute=1, resident=30 << 20, anonymous=25 << 20, descriptors=14, threads=3,
                        connections=1, requests=1000)
    return dataclasses.replace(usual, **changes)


class Verdict(unittest.TestCase):
    def of(self, loaded, after=None):
        return soak.verdict(loaded + [after or sample()], sample())

    def test_flat(self):
        busy = [sample(descriptors=400, connections=380) for _ in range(10)]
        self.assertEqual(self.of(busy), [])

    def test_settled_memory_is_flat(self):
        loaded = [sample(anonymous=min(minute, 5) * 10 << 20) for minute in range(1, 11)]
        self.assertEqual(self.of(loaded), [])

    def test_growth(self):
        loaded = [sample(anonymous=minute * 10 << 20) for minute in range(1, 11)]
        self.assertIn("anonymous memory grows", self.of(loaded)[0])

    def test_leaks(self):
        loaded = [sample() for _ in range(10)]
        self.assertIn("descriptors", self.of(loaded, sample(descriptors=15))[0])
        self.assertIn("connections", self.of(loaded, sample(connections=2))[0])
        self.assertIn("threads", self.of(loaded, sample(threads=4))[0])

    def test_too_short(self):
        self.assertEqual(self.of([sample()]), ["too short for a verdict"])

    def test_a_row_is_as_wide_as_the_header(self):
        self.assertEqual(len(soak.row(sample())), len(soak.header()))


class Sums(unittest.TestCase):
    def test_adds_the_lines_of_all_backends(self):
        sums = {}
        stress.add_up("[ RUN ]\nseed 7: 12 clients, 3 answers\n[ OK ]\n"
                      "seed 7: 5 clients, 1 answers\n", sums)
        self.assertEqual(sums, {"clients": 17, "answers": 4})
        self.assertEqual(stress.in_words({"clients": 12345}), "12,345 clients")


if __name__ == "__main__":
    unittest.main()
