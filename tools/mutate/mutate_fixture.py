"""A folder for the sources of a test, and the mutants of its files."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import mutate  # noqa: E402
import object_code  # noqa: E402

# A coroutine type; needs <coroutine>.
COROUTINE_TASK = """struct Task {
  struct promise_type {
    Task get_return_object();
    std::suspend_always initial_suspend();
    std::suspend_always final_suspend() noexcept;
    void return_void();
    void unhandled_exception();
  };
};
"""


class Sandbox(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def program(self, path, script):
        """Writes a program. Returns its name."""
        name = self.folder / path
        name.parent.mkdir(parents=True, exist_ok=True)
        name.write_text("#!/bin/sh\n" + script)
        name.chmod(0o755)
        return name

    def mutants(self, code, path="sample.cpp"):
        (self.folder / path).write_text(code)
        flags = object_code.flags_of(self.folder)
        _, found, error = mutate.find_in((str(self.folder), path, flags))
        self.assertIsNone(error)
        return found

    def changes(self, code, operator):
        """Returns the (before, after) of the mutants of an operator."""
        return [(each.before, each.after) for each in self.mutants(code)
                if each.operator == operator]
