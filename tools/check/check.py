"""Checks rules that the compiler does not: floors, edges, sizes, format, words and conventions.

    check.py --root FOLDER [--build FOLDER] [--since COMMIT]

Prints one line per fault, `path:line: rule: what is wrong`, and exits 1 if there was a fault. A
warning is printed as `path:line: warning: rule: what to look at`, and fails nothing. Some checks
need a build tree, which has compile_commands.json and the cache of passed files. They are left out
without it. With --since, or the environment variable WEIR_CHECK_SINCE, only headers that the change
since COMMIT reaches are compiled alone.
"""

import argparse
import os
import sys
import time

import awaitables
import compiled
import content
import coroutines
import edges
import floors
import pages
import self_contained
import sizes
import words
from repository import changed_since, Repository


def check(root, build, since=None):
    """Returns the faults and the warnings, each as sorted (path, line, rule, message), and the
    number of files."""
    repository = Repository(root)
    faults, warnings = set(), set()

    def report(file, line, rule, message, warning=False):
        (warnings if warning else faults).add((file.path, line, rule, message))

    for rules in (floors, edges, sizes, content, coroutines, awaitables, pages, words):
        for rule in rules.CHECKS:
            rule(repository, report)
    if build:
        passed = compiled.PassedCache(build)
        compiled.check_format(repository, report, passed)
        changed = changed_since(root, since) if since else None
        self_contained.check_self_contained(repository, report, passed, changed)
        compiled.check_targets(repository, report, build)
        passed.save()
    return sorted(faults), sorted(warnings), len(repository.files)


def main():
    parser = argparse.ArgumentParser(description="Checks Weir's sources.")
    parser.add_argument("--root", required=True)
    parser.add_argument("--build")
    parser.add_argument("--since", default=os.environ.get("WEIR_CHECK_SINCE"))
    options = parser.parse_args()
    start = time.monotonic()
    faults, warnings, files = check(options.root, options.build, options.since)
    for path, line, rule, message in warnings:
        print(f"{path}:{line}: warning: {rule}: {message}")
    for path, line, rule, message in faults:
        print(f"{path}:{line}: {rule}: {message}")
    seconds = time.monotonic() - start
    print(f"check: {files} files, {len(faults)} faults, {len(warnings)} warnings, {seconds:.1f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
