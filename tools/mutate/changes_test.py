"""Tests of the lines that have changed."""

import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import changes  # noqa: E402
from mutate_fixture import Sandbox  # noqa: E402


class ChangesTest(Sandbox):
    def git(self, *arguments):
        subprocess.run(["git", "-C", str(self.folder), "-c", "user.name=a", "-c", "user.email=a@b",
                        *arguments], check=True)

    def test_changed_lines_are_those_of_the_new_files(self):
        for name in ("a", "b", "c"):
            (self.folder / name).write_text("1\n2\n3\n4\n5\n6\n")
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "begin")
        (self.folder / "a").write_text("1\nnew\n3\n4\nnew\nnew\n6\n")
        (self.folder / "b").write_text("1\n6\n")
        (self.folder / "c").unlink()
        self.assertEqual(changes.changed_lines(self.folder, "HEAD"),
                         {"a": {2, 5, 6}, "b": {1, 2}})

    def test_all_lines_of_a_new_file_are_changed(self):
        self.git("init", "-q")
        self.git("commit", "-q", "--allow-empty", "-m", "begin")
        (self.folder / "new.cpp").write_text("1\n2")
        (self.folder / "old.log").write_text("1\n")
        (self.folder / ".git/info/exclude").write_text("*.log\n")
        self.assertEqual(changes.changed_lines(self.folder, "HEAD"), {"new.cpp": {1, 2}})

    def test_an_unknown_commit_is_an_error(self):
        self.git("init", "-q")
        self.git("commit", "-q", "--allow-empty", "-m", "begin")
        with self.assertRaises(subprocess.CalledProcessError):
            changes.changed_lines(self.folder, "unknown")


if __name__ == "__main__":
    unittest.main()
