"""Tests of whole runs of the tool, on a small repository with two floors."""

import contextlib
import fcntl
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import mutate  # noqa: E402
import runner  # noqa: E402
import tree as trees  # noqa: E402

FILES = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.25)
project(sample LANGUAGES CXX)
find_package(GTest REQUIRED)
foreach(floor base os)
  add_executable(weir_${floor}_test ${WEIR_TEST_MAIN} weir/${floor}/limit_test.cpp
    weir/base/limit.cpp)
  target_include_directories(weir_${floor}_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(weir_${floor}_test PRIVATE GTest::gtest)
  set_target_properties(weir_${floor}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY
    ${PROJECT_BINARY_DIR}/tests)
endforeach()
add_executable(simulate EXCLUDE_FROM_ALL simulate.cpp weir/base/limit.cpp)
target_include_directories(simulate PRIVATE ${PROJECT_SOURCE_DIR})
set_target_properties(simulate PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
""",
    "CMakePresets.json": json.dumps({"version": 6, "configurePresets": [
        {"name": name, "generator": "Ninja", "cacheVariables": {
            "CMAKE_CXX_COMPILER": "clang++-19", "CMAKE_CXX_FLAGS": f"-std=c++2b {flags}"}}
        for name, flags in (("asan", ""), ("tsan", "-fsanitize=thread"))]}),
    ".gitignore": "build/\n",
    "tools/sample/double.py": "def double(number):\n    return number + number\n",
    "tools/sample/double_test.py": """import unittest
import double


class DoubleTest(unittest.TestCase):
    def test_two(self):
        self.assertEqual(double.double(2), 4)
""",
    "simulate.cpp": """#include "weir/base/limit.hpp"
int main() { return fits(8) && !fits(9) && is_even(2) ? 0 : 1; }
""",
    "weir/base/limit.hpp": """#pragma once
bool fits(int size);
bool is_even(int number);
int wait(int rounds);
int unseen(int value);
void count();
""",
    "weir/base/limit.cpp": """#include "weir/base/limit.hpp"

#include <mutex>

static std::mutex mutex;
static int counted;

void count() {
  const std::lock_guard lock(mutex);
  ++counted;
}

static void count_down(int& number, int step) { number -= step; }

bool fits(int size) { return size <= 8; }
bool is_even(int number) { return number % 2 == 0; }
int wait(int rounds) {
  while (rounds != 0) count_down(rounds, 1);
  return rounds;
}
int unseen(int value) {
  value = value > 4 ? 4 : value;
  return value + 7;
}
""",
    "weir/base/limit_test.cpp": """#include "weir/base/limit.hpp"

#include <gtest/gtest.h>

#include <thread>

TEST(Limit, ThreadsCount) {
  std::thread other(count);
  count();
  other.join();
}
TEST(Limit, EightFits) { EXPECT_TRUE(fits(8)); }
TEST(Limit, NineDoesNotFit) { EXPECT_FALSE(fits(9)); }
TEST(Limit, TheWaitEnds) { EXPECT_EQ(wait(3), 0); }
TEST(Limit, FailsAlways) { EXPECT_TRUE(fits(9)); }
""",
    "weir/os/limit.cpp": "#include \"weir/base/limit.hpp\"\n",
    "weir/os/limit_test.cpp": """#include "weir/base/limit.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

TEST(Limit, TwoIsEven) { EXPECT_TRUE(is_even(2) && !is_even(3)); }
class Again : public testing::TestWithParam<int> {};
TEST_P(Again, RunsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::exit(0), testing::ExitedWithCode(0), "");
}
INSTANTIATE_TEST_SUITE_P(All, Again, testing::Range(0, 8));  // in each of at most 8 parallel parts
""",
}


def write_files(root):
    for path, content in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)


class SessionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.root = pathlib.Path(scratch.name)
        write_files(cls.root)
        git = ["git", "-C", str(cls.root), "-c", "user.name=a", "-c", "user.email=a@b"]
        for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "begin"]):
            subprocess.run([*git, *command], check=True)
        least, runner.LEAST_SECONDS = runner.LEAST_SECONDS, 1
        cls.addClassCleanup(setattr, runner, "LEAST_SECONDS", least)
        cls.first = cls.run_tool("--seed", "5", "--count", "100")
        cls.results = json.loads((cls.root / "build/mutate/results.json").read_text())

    @classmethod
    def run_tool(cls, *arguments, room="base", expected=0):
        """Returns what the tool prints."""
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()) as errors:
            status = mutate.main(cls.root, ["--room", room, *arguments])
        cls.errors = errors.getvalue()
        assert status == expected, cls.errors
        return text.getvalue()

    def line(self, pattern):
        found = [each for each in self.first.splitlines() if re.search(pattern, each)]
        self.assertEqual(len(found), 1, f"{pattern} in {self.first}")
        return found[0]

    def test_faults_in_code_that_no_test_reaches_survive(self):
        self.assertRegex(self.line(r"constant: 7 -> 7 [+] 1"),
                         r"^survived [0-9a-f]{12} weir/base/limit.cpp:23: constant: .*"
                         r"floor: no test reaches it; above: no test reaches it")

    def test_faults_that_a_test_of_the_floor_sees_do_not_survive(self):
        self.assertNotIn("size <= 8", self.first)

    def test_a_fault_that_hangs_is_found(self):
        self.assertNotIn("count_down(rounds, 1);", self.first)

    def test_a_fault_that_only_the_thread_sanitizer_sees_is_found(self):
        self.assertNotIn("lock_guard", self.first)
        self.assertTrue((self.root / "build/mutate/tree/build/tsan/tests/weir_base_test").exists())

    def test_faults_that_only_higher_floors_see_are_listed_apart(self):
        self.assertRegex(self.line("number % 2 == 0 -> number % 2 != 0"),
                         r"^found above .*tests/weir_os_test: status 1")

    def test_the_scores_count_floor_and_all_tests(self):
        own, every, total = 0, 0, 0
        for each in self.results.values():
            own += each["found"] == "own"
            every += each["found"] in ("own", "above")
            total += each["found"] != "uncounted"
        self.assertGreater(total, 8)
        self.assertIn(f"weir/base: {total} mutants, seed 5: {own / total:.2f} found by the tests "
                      f"of the floor, {every / total:.2f} by all tests", self.first)

    def test_faults_without_effect_do_not_count(self):
        self.line(r"not counted: \d+ same object code")

    def test_faults_that_do_not_compile_do_not_count(self):
        self.line(r"not counted: 1 do not compile")  # count_down(1, rounds)

    def test_the_repository_stays_as_it_is(self):
        for path, content in FILES.items():
            self.assertEqual((self.root / path).read_text(), content)

    def test_a_second_run_takes_the_results_of_the_first(self):
        results = self.root / "build/mutate/results.json"
        written = results.stat().st_mtime_ns
        binary = self.root / "build/mutate/tree/build/asan/tests/weir_base_test"
        binary.chmod(0)  # no run could succeed
        self.addCleanup(binary.chmod, 0o755)
        with unittest.mock.patch.object(trees.Tree, "write", side_effect=AssertionError):
            again = self.run_tool("--seed", "5", "--count", "100")
        self.assertEqual(again, self.first)
        self.assertGreaterEqual(results.stat().st_mtime_ns, written)

    def test_the_number_of_drawn_faults_is_printed(self):
        count = len(self.results)
        self.assertIn(f"weir/base: {count} mutants, {count} drawn with seed 5", self.first)
        self.assertIn(f"weir/base: {count} mutants, 3 drawn with seed 5",
                      self.run_tool("--seed", "5", "--count", "3", "--floor-only"))

    def test_the_simulation_finds_faults_alone(self):
        keys = [self.line("number % 2 == 0 -> number % 2 != 0").split()[2],
                self.line(r"constant: 7 -> 7 [+] 1").split()[1]]
        text = self.run_tool("--only", *keys, "--seed", "5", "--by", "simulate")
        self.assertIn("2 mutants, seed 5: 0.50 found by ./dev simulate --seeds 20 alone", text)
        self.assertRegex(text, f"survived {keys[1]} .*simulate does not reach it")

    def test_faults_in_scripts_are_found_by_their_unit_tests(self):
        text = self.run_tool("--seed", "5", room="tools/sample")
        self.assertIn("tools/sample: 1 mutants, seed 5: 1.00 found by the tests of the floor", text)
        with unittest.mock.patch.object(runner, "run", side_effect=AssertionError):
            self.assertEqual(self.run_tool("--seed", "5", room="tools/sample"), text)

    def test_a_second_run_at_the_same_time_is_refused(self):
        with open(self.root / "build/mutate/lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertEqual(self.run_tool("--list", expected=1), "")
        self.assertIn("another run uses", self.errors)

    def test_the_time_of_a_run_is_limited(self):
        self.assertIn("stopped after 0 minutes",
                      self.run_tool("--by", "simulate", "--minutes", "0"))

    def test_a_room_that_does_not_exist_is_named(self):
        with self.assertRaisesRegex(SystemExit, "no such room: bas"):
            self.run_tool(room="bas")

    def test_a_build_that_fails_ends_the_run(self):
        test = self.root / "weir/base/limit_test.cpp"
        self.addCleanup(test.write_text, test.read_text())
        test.write_text("#error no tests\n")
        key = self.line(r"constant: 7 -> 7 [+] 1").split()[1]
        self.run_tool("--only", key, "--floor-only", expected=1)
        self.assertIn("mutate: the build failed: errors outside mutants: "
                      "[(('weir/base/limit_test.cpp', 1, 2),)]", self.errors)

    def test_a_seed_and_a_count_draw_the_same_faults(self):
        drawn = self.run_tool("--seed", "7", "--count", "3", "--list").splitlines()
        self.assertEqual(len(drawn), 3)
        more = self.run_tool("--seed", "7", "--count", "5", "--list").splitlines()
        self.assertEqual(more[:3], drawn)
        rest = self.run_tool("--seed", "7", "--skip", "3", "--count", "2", "--list").splitlines()
        self.assertEqual(rest, more[3:])

    def test_changed_lines_limit_the_faults(self):
        path = self.root / "weir/base/limit.cpp"
        old = path.read_text()
        self.addCleanup(path.write_text, old)
        path.write_text(old.replace("size <= 8", "size <= 16"))
        drawn = self.run_tool("--since", "HEAD", "--list")
        self.assertRegex(drawn, r"limit.cpp:15: comparison: size <= 16 -> size < 16")
        self.assertNotIn("count_down", drawn)

    def test_tests_that_fail_without_a_fault_are_named_and_left_out(self):
        (self.root / "build/mutate/results.json").unlink()
        self.run_tool("--seed", "5", "--count", "100", "--floor-only")
        self.assertIn("weir_base_test: left out, they fail without a mutant: Limit.FailsAlways",
                      self.errors)

    def test_a_changed_file_leaves_the_faults_of_the_others_in_the_build(self):
        changed = self.root / "weir/base/limit.hpp"
        self.addCleanup(changed.write_text, changed.read_text())
        changed.write_text(changed.read_text() + "// The end.\n")
        rendered = self.root / "build/mutate/tree/weir/base/limit.cpp"
        before = rendered.read_bytes(), rendered.stat().st_mtime_ns
        key = self.line(r"constant: 7 -> 7 [+] 1").split()[1]
        self.assertIn(f"survived {key}", self.run_tool("--only", key, "--floor-only"))
        self.assertEqual((rendered.read_bytes(), rendered.stat().st_mtime_ns), before)
        wrong = next(each.split()[-1] for each, verdict in self.results.items()
                     if verdict["how"] == "do not compile")
        self.assertIn("not counted: 1 do not compile",
                      self.run_tool("--only", key, wrong, "--floor-only"))

    def test_an_explained_survivor_leaves_the_score(self):
        key = self.line(r"constant: 7 -> 7 [+] 1").split()[1]
        (self.root / "docs").mkdir(exist_ok=True)
        page = self.root / "docs/mutants.md"
        page.write_text(f"| `{key}` | limit.cpp: 5 | test |\n")
        self.addCleanup(page.unlink)
        text = self.run_tool("--only", key)
        self.assertIn("(explained: test)", text)
        self.assertNotIn("without the", text)
        above = self.line("number % 2 == 0 -> number % 2 != 0").split()[2]
        self.assertIn("without the 1 that docs/mutants.md explains: 0.00 found by the tests of the "
                      "floor, 1.00 by all tests", self.run_tool("--only", key, above))

    def test_survivors_are_listed_in_the_order_of_their_file(self):
        lines = [int(each) for each in re.findall(r"survived .*limit.cpp:(\d+)", self.first)]
        self.assertGreater(len(lines), 1)
        self.assertEqual(lines, sorted(lines))

    def test_rooms_without_fuzzers_have_no_faults_for_fuzzers(self):
        for finder, room, count in (("fuzz", "base", 2), ("fuzz", "os", 0),
                                    ("simulate", "tools/sample", 0)):
            drawn = self.run_tool("--by", finder, "--count", "2", "--list", room=room)
            self.assertEqual(len(drawn.splitlines()), count)

    def test_all_floors_and_tools_are_tested_by_default(self):
        with self.assertRaisesRegex(SystemExit, "no such room: tools/weir"):
            mutate.main(self.root, ["--list"])  # the sample lacks the tools


class PoolTest(unittest.TestCase):
    def test_a_build_holds_the_pool_of_a_draw(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            write_files(root)
            subprocess.run(["git", "init", "-q", folder], check=True)
            patches = [unittest.mock.patch.object(trees.Tree, "configure"),
                       unittest.mock.patch.object(trees.Tree, "compile", return_value=set())]
            arguments = ["--room", "base", "--seed", "3", "--floor-only"]
            with contextlib.ExitStack() as stack:
                for each in patches:
                    stack.enter_context(each)
                recorded = stack.enter_context(unittest.mock.patch.object(
                    runner, "recorded", return_value=([], [], [])))
                output = stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
                stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
                mutate.main(root, [*arguments, "--count", "6", "--list"])
                drawn = [each.split()[0] for each in output.getvalue().splitlines()]
                tree = trees.Tree(root, root / "build/mutate/tree", 1)
                mutate.main(root, [*arguments, "--count", "1", "--pool", "5"])
                held = {each.key: number for each, number in tree.held().items()}
                self.assertEqual(set(held), set(drawn[:5]))
                self.assertEqual(sorted(held.values()), [0, 1, 2, 3, 4])
                mutate.main(root, [*arguments, "--count", "1", "--skip", "2"])
                self.assertEqual(recorded.call_args.args[-1], 1800)
                self.assertEqual({each.key for each in tree.held()}, set(held))
                mutate.main(root, ["--room", "base", "--only", drawn[5], "--floor-only"])
                self.assertEqual({each.key for each in tree.held()}, {drawn[5]})


class CommandTest(unittest.TestCase):
    def test_the_command_works_on_its_repository(self):
        done = subprocess.run(
            ["/usr/bin/python3", "-B", mutate.__file__, "--room", "nothing"], cwd="/",
            capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "mutate: no such room: nothing\n"))

    def test_the_command_finds_the_repository_of_its_file(self):
        with tempfile.TemporaryDirectory() as folder:
            tools = pathlib.Path(folder) / "root/tools"
            source = pathlib.Path(mutate.__file__).parent
            shutil.copytree(source, tools / "mutate")
            shutil.copytree(source.parent / "check", tools / "check")
            subprocess.run(["git", "init", "-q", str(tools.parent)], check=True)
            done = subprocess.run(
                ["/usr/bin/python3", "-B", str(tools / "mutate/mutate.py"), "--room",
                 "tools/mutate", "--list"], cwd="/", capture_output=True, text=True, check=True)
        self.assertEqual(len(done.stdout.splitlines()), 50)


class InterruptTest(unittest.TestCase):
    def test_an_interrupt_leaves_the_repository_as_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            write_files(root)
            subprocess.run(["git", "init", "-q", folder], check=True)
            code = ("import pathlib, sys; sys.path.insert(0, sys.argv[1]); import mutate; "
                    "sys.exit(mutate.main(pathlib.Path(sys.argv[2]), ['--room', 'base']))")
            tool = subprocess.Popen(
                ["/usr/bin/python3", "-c", code, str(pathlib.Path(mutate.__file__).parent), folder],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                # A test runner in the background ignores the signal, and so would the tool.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
            while not (root / "build/mutate/tree/weir").exists() and tool.poll() is None:
                time.sleep(0.01)
            os.kill(tool.pid, signal.SIGINT)
            self.assertIn("interrupted", tool.communicate(timeout=60)[1])
            self.assertEqual(tool.returncode, 130)
            for path, content in FILES.items():
                self.assertEqual((root / path).read_text(), content)


if __name__ == "__main__":
    unittest.main()
