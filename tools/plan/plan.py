#!/usr/bin/env python3
"""Looks at what changed, plans the narrow tests that prove it, and runs them.

    plan.py verify [--since COMMIT] [--plan]    ./dev verify: runs the plan, or only prints it
    plan.py lanes [--since COMMIT]              for CI: the test binaries of the presets release,
                                                gcc and tsan that the change reaches, and the
                                                tests of scripts that it does not reach

A change is everything since the merge base with COMMIT, with the working tree. Without --since,
COMMIT is origin/main if it exists. Otherwise the change is that of the working tree or, if the tree
is clean, the last commit.

`lanes` prints a line `PRESET BINARY...` for each preset with work, a line `left TEST...` for tests
that need not run, and its reasons to the standard error output. If COMMIT is unknown or a file of
the toolchain changed, it prints all binaries.
"""

import argparse
import pathlib
import sys

import changed
import lanes
import planner
import runner

ROOT = pathlib.Path(__file__).resolve().parents[2]


def verify(options):
    try:
        change = changed.find(ROOT, options.since)
    except changed.UnknownCommit as error:
        print(f"weir: verify: {error}", file=sys.stderr)
        return 2
    if not change.paths:
        print(f"weir: verify: nothing changed since {change.since} (--since COMMIT looks at more)")
        return 0
    plan = planner.Planner(ROOT, change.paths).plan()
    print("\n".join(runner.describe(change, plan)), flush=True)
    return 0 if options.plan else runner.Runner(ROOT).run(plan)


def choose_lanes(options):
    chosen, left = lanes.since(ROOT, options.since)
    for line in lanes.reasons(chosen, lanes.candidates(ROOT), left):
        print(f"weir: lanes: {line}", file=sys.stderr)
    for line in lanes.lines(chosen, left):
        print(line)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, program, function, meaning in (
            ("verify", "./dev verify", verify,
             "run the tests, checks and builds that prove the change"),
            ("lanes", "plan.py lanes", choose_lanes,
             "print what CI runs in part: test binaries of release, gcc and tsan")):
        verb = verbs.add_parser(name, prog=program, help=meaning, description=meaning)
        verb.add_argument("--since", metavar="COMMIT", help="what changed since this commit")
        verb.set_defaults(run=function)
        if name == "verify":
            verb.add_argument("--plan", action="store_true", help="print the plan; run nothing")
    options = parser.parse_args()
    try:
        return options.run(options)
    except KeyboardInterrupt:
        return 130  # as shells say


if __name__ == "__main__":
    sys.exit(main())
