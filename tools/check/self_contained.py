"""Checks that headers and examples compile alone: precompiled headers of targets hide missing
includes."""

import concurrent.futures
import os
import subprocess
import tempfile
import threading

from compiled import fingerprint

CLANG = "clang++-19"
FLAGS = ["-std=c++2b", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wnon-virtual-dtor",
         "-Werror"]
# Approximate lines of a header of another project. Headers of the standard library include many of
# the same files.
FOREIGN_LINES = {"gtest/gtest.h": 25000, "gmock/gmock.h": 25000}
FOREIGN_LINES_DEFAULT = 700
# Writing a precompiled header takes about as long as reading its lines twice.
COST_OF_PRECOMPILING = 2


class Closures:
    """What each file of the repository includes, directly or not, and how many lines that has."""

    def __init__(self, repository):
        self._repository = repository
        self._includes, self._lines = {}, {}

    def has(self, path):
        return path in self._repository.files

    def includes(self, path):
        """Returns the names of a file and of all that it includes."""
        if path not in self._includes:
            names = {path}
            for file in self._repository.closure(self._repository.files[path]):
                names.update(name for _, _, name in file.includes)
            self._includes[path] = names
        return self._includes[path]

    def lines(self, path):
        if path not in self._lines:
            self._lines[path] = sum(self._lines_alone(name) for name in self.includes(path))
        return self._lines[path]

    def _lines_alone(self, name):
        file = self._repository.files.get(name)
        return len(file.lines) if file else FOREIGN_LINES.get(name, FOREIGN_LINES_DEFAULT)


def choose_pivots(closures, paths):
    """Chooses headers to precompile for the check of the files `paths`. It takes the header that
    saves the most lines, again and again, until none saves more than it costs.

    A file may be checked with any header that it includes, directly or not: the code after its
    includes sees the same declarations, and each included header is also checked alone. Headers
    include without conditions, and before all code.

    Returns: {path: the header to precompile for it}.
    """
    users = {}
    for path in paths:
        for name in closures.includes(path) - {path}:
            if name.endswith(".hpp") and closures.has(name):
                users.setdefault(name, []).append(path)
    chosen = {}

    def saved(pivot):
        lines = closures.lines(pivot)
        before = (closures.lines(chosen[path]) if path in chosen else 0 for path in users[pivot])
        return sum(max(0, lines - each) for each in before) - COST_OF_PRECOMPILING * lines

    while users:
        pivot = max(users, key=saved)
        if saved(pivot) <= 0:
            break
        for path in users.pop(pivot):
            if path not in chosen or closures.lines(chosen[path]) < closures.lines(pivot):
                chosen[path] = pivot
    return chosen


class PrecompiledHeaders:
    """Headers that many files include, compiled once for all of them."""

    def __init__(self, repository):
        self._repository = repository
        self._folder = tempfile.TemporaryDirectory()
        self._lock = threading.Lock()
        self._locks, self._made = {}, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def flags(self, header):
        """Returns the flags to compile with a precompiled header; none if it does not compile."""
        with self._lock:
            lock = self._locks.setdefault(header, threading.Lock())
        with lock:
            if header not in self._made:
                path = f"{self._folder.name}/{header.replace('/', '%2F')}.pch"
                made = compile_header(self._repository, header, "-fpch-instantiate-templates",
                                      "-x", "c++-header", "-o", path)
                self._made[header] = ["-include-pch", path] if made.returncode == 0 else []
            return self._made[header]


def compile_header(repository, path, *flags):
    command = [CLANG, *FLAGS, f"-I{repository.root}", *flags, "-include", path, "/dev/null"]
    return subprocess.run(command, cwd=repository.root, capture_output=True, text=True)


def check_self_contained(repository, report, passed, changed=None):
    """Checks headers and examples alone.

    With `changed`, a set of paths, it checks those that a changed file is part of.
    """
    waiting = {}
    for file in repository.cxx:
        if not (file.is_header or file.path.startswith("examples/")):
            continue
        closure = repository.closure(file)
        if changed is not None and changed.isdisjoint(each.path for each in closure):
            continue
        key = fingerprint("header", CLANG, *FLAGS, file.path, *(each.bytes for each in closure))
        if not passed.has(key):
            waiting[file.path] = key
    pivots = choose_pivots(Closures(repository), waiting)

    with PrecompiledHeaders(repository) as precompiled, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:

        def compile_alone(path):
            flags = precompiled.flags(pivots[path]) if path in pivots else []
            return compile_header(repository, path, *flags, "-fsyntax-only", "-x", "c++")

        for (path, key), result in zip(waiting.items(), pool.map(compile_alone, waiting)):
            if result.returncode == 0:
                passed.add(key)
            else:
                first = next((line for line in result.stderr.splitlines() if "error" in line), "")
                report(repository.files[path], 1, "self-contained",
                       f"does not compile alone: {first}")
