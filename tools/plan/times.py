#!/usr/bin/env python3
"""Prints what a run of CI did, and for how long.

    times.py --steps FILE --tests FILE

The first file has a line `step, seconds, compiled objects` for each step, separated by tabs. The
second one is the output of ctest.
"""

import argparse
import pathlib
import re

SLOWEST = 10
TEST = re.compile(r"^ *\d+/\d+ Test +#\d+: (.+?) \.+ *\**[A-Z][^0-9\n]* +([0-9.]+) sec",
                  re.MULTILINE)
TOTAL = re.compile(r"^Total Test time \(real\) = +([0-9.]+) sec", re.MULTILINE)


def steps(text):
    """Returns (step, seconds, objects) of each line; the objects are a text."""
    rows = [line.split("\t") for line in text.splitlines()]
    return [(name, int(seconds), objects) for name, seconds, objects in rows]


def tests(text):
    """Returns (name, seconds) of each test that ended."""
    return [(name, float(seconds)) for name, seconds in TEST.findall(text)]


def table(step_text, test_text):
    rows = [(name, seconds, objects, "") for name, seconds, objects in steps(step_text)]
    ran = tests(test_text)
    total = TOTAL.search(test_text)
    if total:
        rows.append(("tests", round(float(total.group(1))), "", str(len(ran))))
    lines = [f"{'step':24} {'seconds':>8} {'objects':>8} {'tests':>6}"]
    lines += [f"{name:24} {seconds:8} {objects:>8} {count:>6}"
              for name, seconds, objects, count in rows]
    lines.append(f"{'sum':24} {sum(row[1] for row in rows):8}")
    lines.append("")
    lines.append(f"the {SLOWEST} slowest tests")
    slowest = sorted(ran, key=lambda each: -each[1])[:SLOWEST]
    lines += [f"{name:56} {seconds:8.1f} s" for name, seconds in slowest]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=pathlib.Path, required=True)
    parser.add_argument("--tests", type=pathlib.Path, required=True)
    options = parser.parse_args()
    print("\n" + table(options.steps.read_text(), options.tests.read_text()) + "\n", flush=True)


if __name__ == "__main__":
    main()
