"""Tests of what a run parses, and of the faults that it draws."""

import contextlib
import io
import pathlib
import subprocess
import sys
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import independence  # noqa: E402
import mutate  # noqa: E402
import operators  # noqa: E402
from mutate_fixture import Sandbox  # noqa: E402


class ParsingTest(Sandbox):
    """Runs that only draw, on a repository with two sources and a header."""

    def setUp(self):
        super().setUp()
        subprocess.run(["git", "init", "-q", str(self.folder)], check=True)
        (self.folder / ".gitignore").write_text("build/\n")
        self.write("a.hpp", "inline int f(int a) { return a + 7; }\n")
        self.write("b.cpp", "int g(int a) { return a + 8; }\n")
        self.write("c.cpp", "int h(int a) { return a + 9; }\n")

    def write(self, name, code):
        (self.folder / "weir/base").mkdir(parents=True, exist_ok=True)
        (self.folder / "weir/base" / name).write_text(code)

    def draw(self, *arguments):
        """Returns the paths that a run parses, and the texts of the faults that it draws."""
        parsed = []

        def record(jobs, processes):
            parsed.extend(pathlib.Path(path).name for _, path, _ in jobs)
            return map(mutate.find_in, jobs)

        output, self.errors = io.StringIO(), io.StringIO()
        with unittest.mock.patch.object(mutate, "parsed", side_effect=record):
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(self.errors):
                self.assertEqual(
                    mutate.main(self.folder, ["--room", "base", "--list", *arguments]), 0)
        return parsed, sorted(line.split("/")[-1] for line in output.getvalue().splitlines())

    ALL = ["a.hpp", "b.cpp", "c.cpp"]

    def test_only_changed_sources_are_parsed_again(self):
        self.assertEqual(self.draw()[0], self.ALL)
        parsed, drawn = self.draw()
        self.assertEqual(parsed, [])
        self.assertEqual(drawn, [
            f"{name}:1: {change}" for name, number in zip(self.ALL, "789")
            for change in (f"arithmetic: a + {number} -> a - {number}",
                           f"constant: {number} -> {number} + 1")])
        self.write("c.cpp", "int h(int a) { return a + 6; }\n")
        parsed, drawn = self.draw()
        self.assertEqual(parsed, ["c.cpp"])
        self.assertEqual(drawn[-1], "c.cpp:1: constant: 6 -> 6 + 1")

    def test_a_changed_header_makes_all_sources_parsed_again(self):
        self.draw()
        self.write("a.hpp", "// Text.\n")
        parsed, drawn = self.draw()
        self.assertEqual(parsed, self.ALL)
        self.assertEqual({each[:5] for each in drawn}, {"b.cpp", "c.cpp"})

    def test_changed_operators_make_all_sources_parsed_again(self):
        self.draw()
        other = self.folder / "other.py"
        other.write_text("# Another module.\n")
        for module in (operators, independence):
            with unittest.mock.patch.object(module, "__file__", str(other)):
                self.assertEqual(self.draw()[0], self.ALL)
                self.assertEqual(self.draw()[0], [])

    def test_a_source_with_an_error_is_left_out_and_parsed_again(self):
        self.write("b.cpp", "int g(int a) { return b + 8; }\n")
        for parsed in (self.ALL, ["b.cpp"]):
            found, drawn = self.draw()
            self.assertEqual(found, parsed)
            self.assertEqual({each[:5] for each in drawn}, {"a.hpp", "c.cpp"})
            self.assertRegex(self.errors.getvalue(),
                             "mutate: weir/base/b.cpp is left out: .*use of undeclared")

    def test_sources_that_were_parsed_before_the_end_of_the_run_are_kept(self):
        def parse_one(jobs, processes):
            yield mutate.find_in(jobs[0])
            raise mutate.deadline.OutOfTime

        output = io.StringIO()
        with unittest.mock.patch.object(mutate, "parsed", side_effect=parse_one):
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                self.assertEqual(mutate.main(self.folder, ["--room", "base", "--list"]), 0)
        self.assertEqual(self.draw()[0], ["b.cpp", "c.cpp"])

    def test_each_file_is_counted_while_it_is_parsed(self):
        with unittest.mock.patch.object(mutate, "progress") as progress:
            self.draw()
        self.assertEqual([call.args for call in progress.call_args_list],
                         [(f"mutate: [{each}/3] parsing",) for each in (1, 2, 3)])

    def test_only_files_with_changed_lines_are_parsed(self):
        git = ["git", "-C", str(self.folder), "-c", "user.name=a", "-c", "user.email=a@b"]
        for command in (["add", "."], ["commit", "-q", "-m", "begin"]):
            subprocess.run([*git, *command], check=True)
        self.write("c.cpp", "int h(int a) { return a + 9; }\nint k() { return 5; }\n")
        self.assertEqual(self.draw("--since", "HEAD"),
                         (["c.cpp"], ["c.cpp:2: constant: 5 -> 5 + 1"]))

    def test_a_folder_that_no_test_binary_covers_is_no_room(self):
        (self.folder / "weir/other").mkdir()
        (self.folder / "weir/other/d.cpp").write_text("int k() { return 1; }\n")
        for room in ("other", "base/nothing"):
            with self.assertRaisesRegex(SystemExit, f"^mutate: no such room: {room}$"):
                mutate.main(self.folder, ["--room", "base", room, "--list"])


if __name__ == "__main__":
    unittest.main()
