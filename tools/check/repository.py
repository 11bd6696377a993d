"""The files of the repository, read once for all checks."""

import os
import pathlib
import subprocess
from functools import cached_property

import classes
import cxx_text

IGNORED_FOLDERS = {".git", "build", "__pycache__", ".cache"}
CXX_FOLDERS = {"weir", "examples", "contrib", "tests", "bench", "fuzz", "tools"}
TEXT_SUFFIXES = {".cpp", ".hpp", ".py", ".cmake", ".md", ".json", ".txt", ".sh", ".toml", ".yml"}
TEXT_NAMES = {"dev", "run", "LICENSE", ".gitignore", ".clang-format", ".clang-tidy"}


class File:
    """One source file; `path` is relative to the repository's root, with forward slashes."""

    def __init__(self, root, path):
        self.path = path
        self.absolute = root / path
        self.name = path.rsplit("/", 1)[-1]
        self.is_header = path.endswith(".hpp")
        self.is_source = path.endswith(".cpp")
        self.is_cxx = self.is_header or self.is_source
        self.is_fixture = path.endswith("_fixture.hpp")
        self.is_test = (path.endswith("_test.cpp") or path.startswith("tests/") or
                        self.is_fixture)

    @cached_property
    def bytes(self):
        return self.absolute.read_bytes()

    @cached_property
    def text(self):
        return self.bytes.decode("utf-8", errors="replace")

    @cached_property
    def lines(self):
        return self.text.splitlines()

    @cached_property
    def code(self):
        return cxx_text.code_only(self.text)

    @cached_property
    def includes(self):
        return cxx_text.includes(self.text)


class Repository:
    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.files = {path: File(self.root, path) for path in sorted(self._walk())}

    def _walk(self):
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in IGNORED_FOLDERS]
            relative = pathlib.Path(folder).relative_to(self.root)
            for name in names:
                path = (relative / name).as_posix()
                if self._is_text(path, name):
                    yield path

    @staticmethod
    def _is_text(path, name):
        if path.endswith((".cpp", ".hpp")):
            return path.split("/", 1)[0] in CXX_FOLDERS or "/" not in path
        return os.path.splitext(name)[1] in TEXT_SUFFIXES or name in TEXT_NAMES

    @property
    def cxx(self):
        return [file for file in self.files.values() if file.is_cxx]

    @cached_property
    def types(self):
        return classes.Types(self)

    def own_includes(self, file):
        """Yields (line, file) of each include of a file of this repository."""
        for line, _, path in file.includes:
            if path in self.files:
                yield line, self.files[path]

    def closure(self, file):
        """Returns the file and all files of this repository that it includes, the file first."""
        seen = {file.path: file}
        waiting = [file]
        while waiting:
            for _, included in self.own_includes(waiting.pop()):
                if included.path not in seen:
                    seen[included.path] = included
                    waiting.append(included)
        return list(seen.values())


def changed_since(root, commit):
    """Returns the paths that differ from a commit, or None if git does not know it."""
    ran = subprocess.run(["git", "-C", str(root), "diff", "--name-only", "--no-renames", "-z",
                          commit, "--"], capture_output=True, text=True)
    return set(ran.stdout.split("\0")[:-1]) if ran.returncode == 0 else None
