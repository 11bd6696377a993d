"""Checks that need a build tree or a tool: formatting, files without a target."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess

import floors

CLANG_FORMAT = "clang-format-19"
FORMAT_BATCH = 20
# `./dev bench` builds the peers, and tests/*_test.py build the projects of users.
UNTARGETED_FOLDERS = ("bench/peers/", "tests/consumer/", "tests/embed/", "contrib/conan/")
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


def check_targets(repository, report, build):
    """Checks that a target compiles each source, and that a compiled file includes each header.

    Umbrellas are for users: self_contained.py compiles them.
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
