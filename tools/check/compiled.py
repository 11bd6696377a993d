"""Checks that need tools: formatting, self-contained headers, files without a target."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading

import floors

CLANG = "clang++-19"
CLANG_FORMAT = "clang-format-19"
FORMAT_BATCH = 20
# `./dev bench` builds the peers, and tests/*_test.py build the projects of users.
UNTARGETED_FOLDERS = ("bench/peers/", "tests/consumer/", "tests/embed/", "contrib/conan/")
HEADER_FLAGS = ["-std=c++2b", "-fsyntax-only", "-Wall", "-Wextra", "-Wconversion", "-Wshadow",
                "-Wnon-virtual-dtor", "-Werror"]
# Headers that many files include, the most expensive first: see PrecompiledHeaders.
PRECOMPILED_SETS = (("weir/app.hpp",), ("weir/http.hpp",), ("gtest/gtest.h", "weir/loop/loop.hpp"),
          ("gtest/gtest.h",), ("weir/http/router/detail/route_snapshot.hpp",),
          ("weir/runtime/pool/detail/shared_pool.hpp",), ("weir/task/task.hpp",),
          ("weir/loop/loop.hpp",), ("weir/loop/contract/detail/backend.hpp",),
          ("functional", "string"), ("weir/base/result.hpp",), ("memory", "string", "vector"),
          ("memory", "string"), ("string", "vector"), ("string",), ("memory",), ("string_view",))


BATCHED = re.compile(r'^#include "(.+)"$', re.MULTILINE)  # sources of a batch (weir_batch)


class PassedCache:
    """Fingerprints of passed files, so that another run skips them."""

    def __init__(self, folder):
        self._path = pathlib.Path(folder) / "check_passed.json"
        self._known = set()
        self._used = set()
        if self._path.exists():
            self._known = set(json.loads(self._path.read_text()))

    def has(self, key):
        known = key in self._known
        if known:
            self._used.add(key)
        return known

    def add(self, key):
        self._used.add(key)

    def save(self):
        self._path.parent.mkdir(parents=True, exist_ok=True)
        scratch = self._path.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps(sorted(self._used)))
        scratch.replace(self._path)


def fingerprint(*parts):
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def check_format(repository, report, passed):
    style = repository.files.get(".clang-format")
    style_bytes = style.bytes if style else b""
    waiting = {}
    for file in repository.cxx:
        key = fingerprint("format", CLANG_FORMAT, style_bytes, file.bytes)
        if not passed.has(key):
            waiting[file.path] = (file, key)
    if not waiting:
        return
    subprocess.run([CLANG_FORMAT, "--version"], check=True, stdout=subprocess.DEVNULL)
    listed = list(waiting.values())
    batches = [listed[i:i + FORMAT_BATCH] for i in range(0, len(listed), FORMAT_BATCH)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda batch: misformatted([file for file, _ in batch]), batches)
        for batch, lines in zip(batches, results):
            for file, key in batch:
                if file.path in lines:
                    report(file, lines[file.path], "format", "not formatted: run ./dev format")
                else:
                    passed.add(key)


def misformatted(files):
    """Returns {path: first line that the formatter would change}."""
    paths = [file.absolute for file in files]
    result = subprocess.run([CLANG_FORMAT, "--dry-run", "--Werror", *paths], capture_output=True,
                            text=True)
    if result.returncode == 0:
        return {}
    if len(files) > 1:
        return {path: line for file in files for path, line in misformatted([file]).items()}
    first = re.search(r":(\d+):\d+: (?:warning|error):", result.stderr)
    return {files[0].path: int(first[1]) if first else 1}


def compile_alone(repository, file, *precompiled):
    command = [CLANG, *HEADER_FLAGS, f"-I{repository.root}", *precompiled, "-include", file.path,
               "-x", "c++", "/dev/null"]
    return subprocess.run(command, cwd=repository.root, capture_output=True, text=True)


class PrecompiledHeaders:
    """Headers that many files include, compiled once for all of them.

    A file may be checked with a precompiled header of headers that it includes, directly or not:
    the code after its includes sees the same declarations, and each included header is also
    checked alone.
    """

    def __init__(self, repository):
        self._repository = repository
        self._folder = tempfile.TemporaryDirectory()
        self._lock = threading.Lock()
        self._made = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def flags(self, file):
        """Returns the flags to compile `file` with the first header_set that it includes."""
        included = {path for each in self._repository.closure(file)
                    for _, _, path in each.includes} - {file.path}
        for header_set in PRECOMPILED_SETS:
            if included.issuperset(header_set):
                precompiled = self._precompile(header_set)
                return ["-include-pch", precompiled] if precompiled else []
        return []

    def _precompile(self, header_set):
        """Returns the precompiled header of a set; None if the set does not compile."""
        with self._lock:
            if header_set not in self._made:
                path = f"{self._folder.name}/{len(self._made)}.pch"
                includes = [flag for include in header_set for flag in ("-include", include)]
                flags = [flag for flag in HEADER_FLAGS if flag != "-fsyntax-only"]
                result = subprocess.run(
                    [CLANG, *flags, f"-I{self._repository.root}", *includes, "-x", "c++-header",
                     "/dev/null", "-o", path], cwd=self._repository.root, capture_output=True)
                self._made[header_set] = path if result.returncode == 0 else None
            return self._made[header_set]


def changed_since(root, commit):
    """Returns the paths that differ from a commit, or None if git does not know it."""
    ran = subprocess.run(["git", "-C", str(root), "diff", "--name-only", "--no-renames", "-z",
                          commit, "--"], capture_output=True, text=True)
    return set(ran.stdout.split("\0")[:-1]) if ran.returncode == 0 else None


def check_self_contained(repository, report, passed, changed=None):
    """Checks headers and examples alone: precompiled headers of targets hide missing includes.

    With `changed`, a set of paths, it checks those that a changed file is part of.
    """
    waiting = []
    for file in repository.cxx:
        if not (file.is_header or file.path.startswith("examples/")):
            continue
        closure = repository.closure(file)
        if changed is not None and changed.isdisjoint(each.path for each in closure):
            continue
        parts = [each.bytes for each in closure]
        key = fingerprint("header", CLANG, *HEADER_FLAGS, file.path, *parts)
        if not passed.has(key):
            waiting.append((file, key))
    with PrecompiledHeaders(repository) as pivots, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(
            lambda item: compile_alone(repository, item[0], *pivots.flags(item[0])), waiting)
        for (file, key), result in zip(waiting, results):
            if result.returncode == 0:
                passed.add(key)
            else:
                first = next((line for line in result.stderr.splitlines() if "error" in line), "")
                report(file, 1, "self-contained", f"does not compile alone: {first}")


def check_targets(repository, report, build):
    """Checks that a target compiles each source, and that a compiled file includes each header.

    Umbrellas are for users: check_self_contained() compiles them.
    """
    commands = pathlib.Path(build) / "compile_commands.json"
    compiled = set()
    for entry in json.loads(commands.read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if "batches" in path.parts:
            compiled.update(BATCHED.findall(path.read_text()))
        elif path.is_relative_to(repository.root):
            compiled.add(path.relative_to(repository.root).as_posix())
    reached = set()
    for path in compiled & repository.files.keys():
        reached.update(each.path for each in repository.closure(repository.files[path]))
    for file in repository.cxx:
        if file.path.startswith(UNTARGETED_FOLDERS):
            continue
        if file.is_source and file.path not in compiled:
            report(file, 1, "targets", "no target compiles it")
        elif file.is_header and file.path not in reached and not floors.is_umbrella(file.path):
            report(file, 1, "targets", "no compiled file includes it")
