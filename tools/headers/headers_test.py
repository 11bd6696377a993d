"""Tests that headers with warnings or missing includes are found, and the table."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import headers

HEADER = "// A header.\n#pragma once\n"


class HeadersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, path, text=HEADER):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def run_it(self, *arguments):
        return subprocess.run(
            [sys.executable, headers.__file__, "--root", str(self.root), *arguments],
            capture_output=True, text=True)

    def test_public_headers_are_outside_detail_and_test(self):
        for path in ("weir/http.hpp", "weir/loop/loop.hpp", "weir/sim/world.hpp",
                     "weir/task/test/cancel_injection_fixture.hpp", "weir/loop/detail/inbox.hpp",
                     "weir/loop/detail/uring/ring.hpp", "weir/loop/loop.cpp", "bench/other.hpp"):
            self.write(path)
        self.assertEqual(headers.public_headers(self.root),
                         ["weir/http.hpp", "weir/loop/loop.hpp", "weir/sim/world.hpp"])

    def test_a_correct_header(self):
        self.write("weir/a.hpp")
        ran = self.run_it()
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("| weir/a.hpp |", ran.stdout)
        self.assertIn("headers: 1, 0 faults", ran.stdout)

    def test_a_warning_fails_with_either_compiler(self):
        self.write("weir/a.hpp", HEADER + "inline char narrowed(int wide) { return wide; }\n")
        ran = self.run_it()
        self.assertEqual(ran.returncode, 1)
        for compiler in headers.COMPILERS:
            self.assertIn(f"weir/a.hpp, by {compiler}:", ran.stderr)
        self.assertIn("conversion", ran.stderr)

    def test_a_header_that_needs_another(self):
        self.write("weir/a.hpp", HEADER + "std::string text();\n")
        self.assertEqual(self.run_it().returncode, 1)

    def test_only_some(self):
        self.write("weir/a.hpp")
        self.write("weir/b.hpp", "#error never asked for\n")
        self.assertEqual(self.run_it("--only", "/a").returncode, 0)
        self.assertNotEqual(self.run_it("--only", "/c").returncode, 0)

    def test_the_table(self):
        times = {"weir/a.hpp": {"clang": 0.1, "gcc": 0.2}, "weir/b.hpp": {"clang": 2.5, "gcc": 0.4}}
        self.assertEqual(headers.table(times),
                         "| header | clang, ms | gcc, ms |\n"
                         "|---|---|---|\n"
                         "| weir/b.hpp | **2500** | 400 |\n"
                         "| weir/a.hpp | 100 | 200 |\n")

    def test_the_page(self):
        self.write("weir/a.hpp")
        page = self.root / "page.md"
        self.assertEqual(self.run_it("--publish", str(page)).returncode, 0)
        self.assertIn("Each of 1 headers alone", page.read_text())
        self.assertIn("0 take more than 2 s", page.read_text())


if __name__ == "__main__":
    unittest.main()
