"""Compares the object code of a source with and without a mutant."""

import os
import pathlib
import re
import tempfile

import effects
import runner
import schema

HEADERS_OF_CLANG = "/usr/lib/llvm-19/lib/clang/19/include"
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
SECONDS_MAX = 600  # of a compilation
SAMPLES_MAX = 4  # sources that are compiled to compare the object code of a header's mutant


def flags_of(root):
    return ["-std=c++2b", "-D_GLIBCXX_ASSERTIONS", '-DWEIR_VERSION="0"', f"-I{root}",
            f"-I{HEADERS_OF_CLANG}", "-w"]


class ObjectCode:
    """Compiles sources of a repository alone, at -O2. `files` are the paths of all its files."""

    def __init__(self, root, files):
        self._root = root
        self._files = files
        self._includes = None  # of each source

    def uncounted_because(self, mutant):
        """Returns why a mutant that no test finds does not count; None if it does. Compiles it
        alone, at -O2."""
        if mutant.operator in ("order", "release") and (
                effects.independent_neighbours(self._root, mutant, flags_of(self._root))):
            return "independent neighbours"
        code = (self._root / mutant.path).read_bytes()
        planted = schema.plant(code, mutant)
        with tempfile.TemporaryDirectory() as folder:
            target = pathlib.Path(folder) / mutant.path
            target.parent.mkdir(parents=True)
            for source in self._samples(mutant.path):
                objects = []
                for content in (code, planted):
                    target.write_bytes(content)
                    objects.append(self._object(folder, source))
                if objects[1] is None:  # the compiler evaluates the code, too
                    return "do not compile"
                if objects[0] != objects[1]:
                    return None
        return "same object code"

    def _samples(self, path):
        """Returns sources whose object code depends on a file, the nearest first."""
        if path.endswith(".cpp"):
            return [path]
        using = [each for each in self._users(path) if each.endswith(".cpp")]
        using.sort(key=lambda each: (-len(os.path.commonprefix([each, path])), each))
        return using[:SAMPLES_MAX]

    def _users(self, path):
        """Returns the files that include a header, also through other headers."""
        if self._includes is None:
            self._includes = {
                each: set(INCLUDE.findall((self._root / each).read_text()))
                for each in self._files if each.endswith((".cpp", ".hpp"))}
        users, added = {path}, {path}
        while added:
            added = {each for each, includes in self._includes.items()
                     if includes & added} - users
            users |= added
        return users

    def _object(self, folder, source):
        name = pathlib.Path(folder) / source
        if not name.exists():
            name = self._root / source
        output = pathlib.Path(folder) / "object.o"
        command = ["clang++-19", "-O2", "-c", f"-I{folder}", *flags_of(self._root), str(name), "-o",
                   str(output)]
        return output.read_bytes() if runner.run(command, SECONDS_MAX, {}) == 0 else None
