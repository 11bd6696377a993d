#!/usr/bin/env python3
"""Runs the tests of tests/stress_test.cpp repeatedly with fresh seeds, and sums their counts.

Thousands of clients connect, pipeline, stall, reset and vanish. Meanwhile, routes are added and
removed, and the runtime is drained, stopped and restarted. It runs on every backend, under the
address and the thread sanitizer. The first failed run ends the program and prints its output.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import time

FILTER = "*Stress.*"
LINE = re.compile(r"^seed \d+: (.*)$", re.MULTILINE)
ENVIRONMENT = {"PATH": "/usr/lib/llvm-19/bin:/usr/bin:/bin",  # the sanitizers' symbolizer
               "TSAN_OPTIONS": "second_deadlock_stack=1"}


def add_up(output, sums):
    """Adds the counts of a test's output ("seed 7: 12 clients, 3 answers") to `sums`."""
    for counts in LINE.findall(output):
        for part in counts.split(", "):
            count, name = part.split(" ", 1)
            sums[name] = sums.get(name, 0) + int(count)


def in_words(sums):
    return ", ".join(f"{count:,} {name}" for name, count in sums.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True,
                        help="folder of the build trees")
    parser.add_argument("--trees", default="asan,tsan")
    parser.add_argument("--minutes", type=float, default=10, help="duration for all trees together")
    options = parser.parse_args()
    trees = options.trees.split(",")
    for tree in trees:
        until = time.monotonic() + options.minutes * 60 / len(trees)
        runs, sums = 0, {}
        while time.monotonic() < until:
            command = [options.build / tree / "tests/weir_system_test", f"--gtest_filter={FILTER}"]
            ran = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT,
                                 errors="replace")
            if ran.returncode != 0 or "[  PASSED  ]" not in ran.stdout:
                sys.stdout.write(ran.stdout)
                sys.stderr.write(ran.stderr)
                sys.exit(f"stress: {tree} failed in run {runs + 1}, with status {ran.returncode}")
            runs += 1
            add_up(ran.stdout, sums)
        print(f"stress: {tree}: {runs} runs on every backend, {in_words(sums)}: no report",
              flush=True)


if __name__ == "__main__":
    main()
