"""Checks that need tools: formatting, headers that stand alone, files that no target builds."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess

CLANG = "clang++-19"
CLANG_FORMAT = "clang-format-19"
# Of other libraries, which `./dev bench` builds; somebody else's project, which a test builds.
UNTARGETED_FOLDERS = ("bench/peers/", "tests/consumer/")
HEADER_FLAGS = ["-std=c++2b", "-fsyntax-only", "-Wall", "-Wextra", "-Wconversion", "-Wshadow",
                "-Wnon-virtual-dtor", "-Werror"]


class Passed:
    """Fingerprints of what passed before, so that a second call repeats nothing."""

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
    for file, key in waiting.values():
        result = subprocess.run([CLANG_FORMAT, "--dry-run", "-Werror", "--ferror-limit=1",
                                 file.absolute], capture_output=True, text=True)
        if result.returncode == 0:
            passed.add(key)
        else:
            where = result.stderr.split(":")[1] if result.stderr.count(":") > 1 else "1"
            line = int(where) if where.isdigit() else 1
            report(file, line, "format", "not formatted: run ./dev format")


def compile_alone(repository, header):
    command = [CLANG, *HEADER_FLAGS, f"-I{repository.root}", "-include", header.path,
               "-x", "c++", "/dev/null"]
    return subprocess.run(command, cwd=repository.root, capture_output=True, text=True)


def check_self_contained(repository, report, passed):
    waiting = []
    for header in repository.cxx:
        if not header.is_header:
            continue
        parts = [file.bytes for file in repository.closure(header)]
        key = fingerprint("header", CLANG, *HEADER_FLAGS, header.path, *parts)
        if not passed.has(key):
            waiting.append((header, key))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda item: compile_alone(repository, item[0]), waiting)
        for (header, key), result in zip(waiting, results):
            if result.returncode == 0:
                passed.add(key)
            else:
                first = next((line for line in result.stderr.splitlines() if "error" in line), "")
                report(header, 1, "self-contained", f"does not compile alone: {first}")


def check_targets(repository, report, build):
    """Every source is compiled by a target; every header is included, next to a compiled source."""
    commands = pathlib.Path(build) / "compile_commands.json"
    compiled = set()
    for entry in json.loads(commands.read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if path.is_relative_to(repository.root):
            compiled.add(path.relative_to(repository.root).as_posix())
    compiled_folders = {path.rpartition("/")[0] for path in compiled}
    included = {target.path for file in repository.cxx for _, target in
                repository.own_includes(file)}
    for file in repository.cxx:
        folder = file.path.rpartition("/")[0]
        if file.path.startswith(UNTARGETED_FOLDERS):
            continue
        if file.is_source and file.path not in compiled:
            report(file, 1, "targets", "no target compiles it")
        elif file.is_header and file.path not in included:
            report(file, 1, "targets", "nothing includes it")
        elif file.is_header and folder not in compiled_folders and folder != "weir":
            report(file, 1, "targets", f"no target compiles anything in {folder}/")
