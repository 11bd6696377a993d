#!/usr/bin/env python3
"""Measures the compile time of each public header with each compiler.

    headers.py --root FOLDER [--only REGEX] [--runs N] [--publish FILE]

Compiles each public header alone, with all warnings, and prints a table of the compiler's CPU time,
the slowest header first. Fails if a header does not compile or gives a warning. Slow headers are
marked, but are no failure, because that depends on the machine. --publish writes the table to FILE.
"""

import argparse
import datetime
import os
import pathlib
import re
import subprocess
import sys

COMPILERS = ("clang++-19", "g++-12")
FLAGS = ("-std=c++2b", "-fsyntax-only", "-Wall", "-Wextra", "-Wconversion", "-Werror",
         "-DWEIR_KNOWS_GCC_12")  # suppresses Weir's note to users of GCC 12
SECONDS_MAX = 2.0
INTERNAL_FOLDERS = {"detail", "test"}  # as in tools/check/floors.py


def public_headers(root):
    """Returns the paths as users write them, such as "weir/http.hpp"."""
    found = (path.relative_to(root).as_posix() for path in (root / "weir").rglob("*.hpp"))
    return sorted(path for path in found if not INTERNAL_FOLDERS.intersection(path.split("/")))


def compile_alone(root, compiler, header):
    """Returns the CPU seconds, and the compiler's messages (empty if none)."""
    command = [compiler, *FLAGS, f"-I{root}", "-include", header, "-x", "c++", os.devnull]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True)
    messages = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 and not messages:
        messages = f"{compiler} ended with {process.returncode}"
    return used.ru_utime + used.ru_stime, messages


def table(times):
    """Returns Markdown of {header: {compiler: seconds}}, the slowest header first."""
    compilers = sorted({compiler for each in times.values() for compiler in each})
    lines = ["| header | " + " | ".join(f"{each}, ms" for each in compilers) + " |",
             "|---" * (1 + len(compilers)) + "|"]
    slowest_first = sorted(times, key=lambda header: (-max(times[header].values()), header))
    for header in slowest_first:
        cells = []
        for compiler in compilers:
            seconds = times[header].get(compiler)
            cell = "–" if seconds is None else f"{1000 * seconds:.0f}"
            cells.append(f"**{cell}**" if seconds is not None and seconds > SECONDS_MAX else cell)
        lines.append(f"| {header} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def page(root, times, runs):
    commit = subprocess.run(["git", "-C", str(root), "rev-parse", "--short", "HEAD"],
                            capture_output=True, text=True).stdout.strip()
    slow = sum(max(each.values()) > SECONDS_MAX for each in times.values())
    return (f"# Compile times of the public headers\n\n{datetime.date.today()}, commit {commit}, "
            f"written by `./dev headers --publish`. Each of {len(times)} headers alone, by "
            f"`{' '.join(FLAGS)}`: CPU time of the compiler, "
            f"{'once' if runs == 1 else f'the best of {runs} runs'}. Of these, "
            f"{slow} take more than {SECONDS_MAX:.0f} s.\n\n{table(times)}")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev headers", description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--only", type=re.compile, default=re.compile(""), metavar="REGEX",
                        help="only headers that match")
    parser.add_argument("--runs", type=int, default=1, help="the best of N (1)")
    parser.add_argument("--publish", type=pathlib.Path, metavar="FILE",
                        help="also write the table to FILE")
    return parser.parse_args()


def main():
    options = parse_arguments()
    root = options.root.resolve()
    times = {}
    faults = []
    for header in public_headers(root):
        if not options.only.search(header):
            continue
        for compiler in COMPILERS:
            tries = [compile_alone(root, compiler, header) for _ in range(options.runs)]
            times.setdefault(header, {})[compiler] = min(seconds for seconds, _ in tries)
            if tries[0][1]:
                faults.append(f"{header}, by {compiler}:\n{tries[0][1]}")
    if not times:
        raise SystemExit("headers: no header matches --only")
    print(table(times), end="")
    for fault in faults:
        print(f"headers: {fault}", file=sys.stderr)
    print(f"headers: {len(times)}, {len(faults)} faults")
    if options.publish:
        options.publish.write_text(page(root, times, options.runs))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
