#!/usr/bin/env python3
"""Tests that a seed gives the same run in every process: each scenario's trace is equal in two
processes with other addresses of stack, heap and program.

    processes_test.py --simulate PROGRAM [--sanitized]

Sanitizers put the heap at the same address in each process, so the comparison cannot find an order
by heap addresses. `./dev test --all` also runs the comparison without a sanitizer. One of three
scenarios runs, chosen anew, if the environment variable WEIR_SWEEP_SECONDS is below 60.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
import unittest

NOT_RANDOMISED = 0x0040000  # ADDR_NO_RANDOMIZE in <sys/personality.h>
SECONDS_MAX = 100


def output_of(*arguments):
    return subprocess.run([str(given.simulate), *arguments], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL, timeout=SECONDS_MAX, check=True).stdout


def is_randomised():
    setting = pathlib.Path("/proc/sys/kernel/randomize_va_space").read_text(encoding="ascii")
    personality = pathlib.Path("/proc/self/personality").read_text(encoding="ascii")
    return int(setting) == 2 and not int(personality, 16) & NOT_RANDOMISED


def scenarios():
    return re.findall(r"^  (\w+) ", output_of("--help"), re.MULTILINE)


class Processes(unittest.TestCase):
    # Without this, the comparison below would not prove that no address decides anything.
    def test_addresses_are_randomised(self):
        if not is_randomised():
            self.skipTest("off for this process: see kernel.randomize_va_space and setarch")
        one, other = (dict(part.split("=") for part in output_of("--addresses").split())
                      for _ in range(2))
        self.assertEqual(one.keys(), {"stack", "heap", "program"})
        same = {place for place in one if one[place] == other[place]}
        self.assertEqual(same, {"heap"} if given.sanitized else set())

    def test_one_seed_gives_one_run_in_every_process(self):
        names = scenarios()
        self.assertGreater(len(names), 10)
        if float(os.environ.get("WEIR_SWEEP_SECONDS", "3600")) < 60:
            names = random.sample(names, len(names) // 3)
        runs = [("--trace", "--only", name, "--seed", str(random.getrandbits(64)))
                for name in names]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            first = pool.map(lambda run: output_of(*run), runs)
            second = pool.map(lambda run: output_of(*run), runs)
            for run, one, other in zip(runs, first, second):
                with self.subTest(run=" ".join(run)):
                    self.assertIn(" turns, order hash ", one)
                    self.assertTrue(one == other, "the traces differ")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulate", type=pathlib.Path, required=True)
    parser.add_argument("--sanitized", action="store_true")
    return parser.parse_known_args()


if __name__ == "__main__":
    given, rest = parse()
    unittest.main(argv=[sys.argv[0], *rest])
