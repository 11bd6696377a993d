#!/usr/bin/env python3
"""The gate: instructions of small operations against the figures in the repository.

`./dev bench --gate` counts the operations of bench/gate/operations.cpp with callgrind. It fails if
an operation takes 5 % more instructions than its recorded figure (`--gate --record`). bench/gate/
has one file of figures for each compiler, C library and set of processor features. If no file
matches, the gate measures everything and never fails.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

GROWTH_MAX = 1.05
FIGURES = pathlib.Path(__file__).parent / "gate"
NAME = re.compile(r"c?fn=\((\d+)\)(?: (.*))?")


def called_costs(profile, caller):
    """Returns {callee: inclusive instructions} of all calls from the function `caller`.

    `profile` is callgrind's output: `fn=` opens a function, and `cfn=` with `calls=` names a
    callee. The next line ends with the cost. Each name is written in full only once.
    """
    names = {}

    def named(line):
        number, name = NAME.fullmatch(line).groups()
        if name is not None:
            names[number] = re.sub(r"\(anonymous namespace\)::", "", name)
        return names[number].split("(")[0].split("::")[-1]

    costs = {}
    inside = callee = None
    lines = iter(profile.splitlines())
    for line in lines:
        if line.startswith("fn="):
            inside = named(line)
        elif line.startswith("cfn="):
            callee = named(line)
        elif line.startswith("calls="):
            cost = int(next(lines).split()[-1])
            if inside == caller:
                costs[callee] = costs.get(callee, 0) + cost
    return costs


def count(program):
    """Returns the key of the figures, and {operation: instructions of one execution}."""
    with tempfile.TemporaryDirectory() as folder:
        profile = pathlib.Path(folder) / "callgrind"
        # The environment is empty, because its size moves the stack.
        ran = subprocess.run(
            ["env", "-i", "valgrind", "-q", "--tool=callgrind",
             f"--callgrind-out-file={profile}", str(program)],
            capture_output=True, text=True, timeout=300)
        if ran.returncode != 0:
            raise SystemExit(f"gate: callgrind failed\n{ran.stdout}{ran.stderr}")
        costs = called_costs(profile.read_text(), "measure")
    key = re.search(r"^key (\S+)$", ran.stdout, re.MULTILINE).group(1)
    counts = {}
    for name, times in re.findall(r"^operation (\S+) (\d+)$", ran.stdout, re.MULTILINE):
        if name not in costs:
            raise SystemExit(f"gate: callgrind reported no call of {name}")
        counts[name] = round(costs[name] / int(times), 1)
    return key, counts


def judge(counts, recorded):
    """Returns the lines to print, and the names of the operations that grew or are missing."""
    lines = []
    failed = []
    for name, now in counts.items():
        before = recorded.get(name)
        if before is None:
            lines.append(f"  {name:24} {now:9.1f}            not recorded yet")
            continue
        ratio = now / before
        verdict = ""
        if ratio > GROWTH_MAX:
            verdict = f"  GREW by more than {100 * (GROWTH_MAX - 1):.0f} %"
            failed.append(name)
        elif ratio < 1 / GROWTH_MAX:
            verdict = "  less: record it"
        lines.append(f"  {name:24} {now:9.1f} {100 * (ratio - 1):+8.1f} %{verdict}")
    for name in recorded.keys() - counts.keys():
        lines.append(f"  {name:24}         - RECORDED, but no longer measured")
        failed.append(name)
    return lines, failed


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev bench --gate",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--record", action="store_true",
                        help="record the current counts as the figures to compare with")
    return parser.parse_args()


def main():
    options = parse_arguments()
    key, counts = count(options.program)
    file = FIGURES / f"{key}.json"
    recorded = json.loads(file.read_text()) if file.exists() else {}
    print(f"gate: instructions per operation, {key}")
    if options.record:
        file.write_text(json.dumps(counts, indent=2) + "\n")
        print(f"gate: recorded in bench/gate/{file.name}")
    lines, failed = judge(counts, recorded)
    print("\n".join(lines))
    if options.record:
        return 0
    if not recorded:
        known = ", ".join(sorted(each.stem for each in FIGURES.glob("*.json"))) or "nothing"
        print(f"gate: WARNING: NOTHING WAS CHECKED: no figures for {key}, only for {known} "
              "(record them with ./dev bench --gate --record)", file=sys.stderr)
    elif failed:
        print(f"gate: FAILED: {', '.join(failed)} (if the growth is justified, run "
              "./dev bench --gate --record and give the reason in the commit)")
    else:
        print("gate: passed: no operation has grown")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
