"""Tests of how tests and programs find mutants."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import rooms  # noqa: E402
import runner  # noqa: E402
from mutate_fixture import Sandbox  # noqa: E402


class RunnerTest(Sandbox):
    def binary(self, script):
        return self.program("binary", script).name

    def judge(self, script, reaches=(3,)):
        test = runner.Test(self.binary(script), "A.B", 0.0, frozenset(reaches))
        return runner.judge(self.folder, 3, [test])

    def test_a_failed_test_finds_the_mutant(self):
        self.assertTrue(self.judge('[ "$WEIR_MUTANT" = 3 ] && exit 1; exit 0').found)

    def test_a_crash_finds_the_mutant(self):
        self.assertTrue(self.judge("kill -SEGV $$").found)

    def test_a_passed_test_does_not_find_the_mutant(self):
        self.assertFalse(self.judge("exit 0").found)

    def test_a_hang_finds_the_mutant_and_ends(self):
        least, runner.LEAST_SECONDS = runner.LEAST_SECONDS, 0.2
        self.addCleanup(setattr, runner, "LEAST_SECONDS", least)
        begun = time.monotonic()
        verdict = self.judge("sleep 60")
        self.assertTrue(verdict.found)
        self.assertIn("hang", verdict.how)
        self.assertLess(time.monotonic() - begun, 30)

    def test_a_mutant_that_no_test_reaches_is_not_run(self):
        verdict = self.judge("exit 1", reaches=(2,))
        self.assertFalse(verdict.found)
        self.assertIn("no test reaches", verdict.how)

    def test_each_test_that_reaches_the_mutant_is_run(self):
        binary = self.binary('grep -q "T.41" "${1#--gtest_flagfile=}" && exit 1; exit 0')
        tests = [runner.Test(binary, f"T.{number}", number, frozenset([number % 2]))
                 for number in range(100)]
        self.assertTrue(runner.judge(self.folder, 1, tests).found)
        self.assertFalse(runner.judge(self.folder, 0, tests).found)
        self.assertFalse(runner.judge(self.folder, 1, tests, 400).found)  # 1 + 3 + ... + 39

    def test_all_binaries_are_run(self):
        tests = [runner.Test(name, "A.B", 0.0, frozenset([3])) for name in ("first", "second")]
        for name, status in (("first", 0), ("second", 4)):
            (self.folder / self.binary(f"exit {status}")).rename(self.folder / name)
        self.assertEqual(runner.judge(self.folder, 3, tests).how, "second: status 4")

    def test_a_command_ends_if_the_tool_is_killed(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        code = ("import sys; sys.path.insert(0, sys.argv[1]); import runner; "
                "runner.run(['sh', '-c', 'exec sleep 60 >' + sys.argv[2]], 60, {})")
        tool = subprocess.Popen([sys.executable, "-c", code,
                                 str(pathlib.Path(runner.__file__).parent), str(pipe)])
        with open(pipe, "rb") as output:  # opens when the command has started
            tool.kill()
            tool.wait()
            begun = time.monotonic()
            self.assertEqual(output.read(), b"")  # ends when the command has ended
        self.assertLess(time.monotonic() - begun, 30)

    def test_the_commands_that_a_command_has_started_end_with_it(self):
        runner.run(["sh", "-c", f"sleep 60 & echo $! >{self.folder}/number"], 60, {})
        number = (self.folder / "number").read_text().strip()
        state = pathlib.Path(f"/proc/{number}/stat")
        for _ in range(500):  # a process that was killed ends soon
            if not state.exists() or state.read_text().split()[2] == "Z":
                break
            time.sleep(0.01)
        else:
            self.fail("the command still runs")

    def test_a_command_has_ended_after_its_time_limit(self):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            self.assertIsNone(runner.run(["sleep", "60"], 0.1, {}))
        self.assertEqual([str(each.message) for each in warned], [])

    def judge_single(self, script, reaches=(3,)):
        """Returns how a test that runs alone in another build finds the mutant; None if not."""
        test = runner.Test(self.binary(script), "A.B", 0.0, frozenset(reaches))
        tests = runner.Tests(floor_only=True)
        room = rooms.Room("base", ["weir/base/list.hpp"])
        tests.recorded = {room.own: [test]}.get
        verdict = runner.SingleTests(tests).judge(self.folder, room, 3)
        return verdict["how"] if verdict["found"] == "own" else None

    def test_a_test_of_another_build_counts_only_if_it_passes_without_the_mutant(self):
        how = self.judge_single('[ "$WEIR_MUTANT" = 3 ] && exit 66; exit 0')
        self.assertIn("status 66 of A.B", how)
        self.assertIsNone(self.judge_single("exit 66"))
        self.assertIsNone(self.judge_single("exit 0"))

    def test_a_test_of_another_build_is_run_only_if_it_reaches_the_mutant(self):
        self.assertIsNone(self.judge_single('[ "$WEIR_MUTANT" = 3 ] && exit 66; exit 0', (2,)))


class ProgramsTest(Sandbox):
    """Programs that find mutants alone: ./dev simulate and the fuzzers."""

    REACHES_TWO = '[ -n "$WEIR_MUTANTS_REACHED" ] && printf "\\1\\1\\0" >"$WEIR_MUTANTS_REACHED"\n'

    def simulation(self, script):
        """Returns the finder and the messages of its recording."""
        self.program("bin/simulate", script)
        finder = runner.Simulation()
        return finder, finder.record(self.folder, ["simulate"], 3, 1, 30)

    def test_a_failed_simulation_finds_the_mutants_that_it_reaches(self):
        finder, messages = self.simulation(
            '[ -z "$WEIR_MUTANTS_REACHED" ] || [ $(stat -c %s "$WEIR_MUTANTS_REACHED") = 3 ] '
            '|| exit 1\n' + self.REACHES_TWO + '[ "$*" = "--seeds 20" ] || exit 1\n'
            '[ "$WEIR_MUTANT" = 1 ] || [ "$WEIR_MUTANT" = 2 ] && exit 3; exit 0')
        self.assertEqual(messages, [])
        verdicts = [finder.judge(self.folder, None, number) for number in range(3)]
        self.assertEqual(verdicts, [{"found": "no", "how": "simulate reaches it"},
                                    {"found": "own", "how": "simulate: status 3"},
                                    {"found": "no", "how": "simulate does not reach it"}])
        self.assertEqual(finder.summary(1, 0, 2), "0.50 found by ./dev simulate --seeds 20 alone")

    def test_a_simulation_that_hangs_finds_the_mutant(self):
        least, runner.LEAST_SECONDS = runner.LEAST_SECONDS, 0.2
        self.addCleanup(setattr, runner, "LEAST_SECONDS", least)
        finder, _ = self.simulation(self.REACHES_TWO + '[ -n "$WEIR_MUTANT" ] && sleep 60; exit 0')
        self.assertEqual(finder.judge(self.folder, None, 0),
                         {"found": "own", "how": "simulate: hang"})

    def test_a_simulation_that_fails_without_a_mutant_is_left_out(self):
        finder, messages = self.simulation(self.REACHES_TWO + "exit 1")
        self.assertEqual(messages, ["simulate: left out, it fails without a mutant: "
                                    "simulate: status 1"])
        self.assertEqual(finder.judge(self.folder, None, 1)["found"], "no")

    def test_each_fuzzer_of_a_room_runs_for_a_minute_on_a_copy_of_its_corpus(self):
        corpus = self.folder / "fuzz/corpus/uri_fuzz"
        corpus.mkdir(parents=True)
        (corpus / "seed").write_text("GET")
        room = rooms.Room("http/syntax", [])
        finder = runner.Fuzzers(self.folder)
        self.assertEqual(finder.targets(room), ["fuzz_uri_fuzz"])
        self.program("fuzz/fuzz_uri_fuzz",
                     self.REACHES_TWO + '[ "$1 $2" = "-max_total_time=60 -timeout=10" ] || exit 1\n'
                     'grep -q GET "$3/seed" || exit 1; echo >"$3/new"\n'
                     '[ "$WEIR_MUTANT" = 1 ] && exit 77; exit 0')
        self.assertEqual(finder.record(self.folder, ["fuzz_uri_fuzz"], 3, 1, 30), [])
        self.assertEqual(finder.judge(self.folder, room, 1),
                         {"found": "own", "how": "fuzz_uri_fuzz: status 77"})
        self.assertEqual(finder.judge(self.folder, room, 0)["found"], "no")
        self.assertEqual([each.name for each in corpus.iterdir()], ["seed"])


class TestsTest(Sandbox):
    """The tests of the floor and those above it."""

    ROOM_PATHS = ["weir/base/a.cpp", "weir/os/b_test.cpp"]

    def finder(self, floor_only=False, own=0, above=0):
        """Returns the finder and the messages of its recording. Its binaries have one test each,
        which reaches mutant 1 and ends with the given status if that mutant is selected."""
        for name, status in (("weir_base_test", own), ("weir_os_test", above)):
            self.program(f"tests/{name}",
                         'if [ -n "$WEIR_MUTANT" ]; then exit %d; fi\n'
                         'echo %s.Passes passed 0 1 >"$WEIR_MUTANTS_RECORD"\n'
                         'echo %s.Fails failed 0 2 >>"$WEIR_MUTANTS_RECORD"; exit 1\n'
                         % (status, name, name))
        finder = runner.Tests(floor_only)
        return finder, finder.record(self.folder, finder.targets(self.room()), 3, 1, 30)

    def room(self):
        return rooms.Room("base", self.ROOM_PATHS)

    def verdict(self, number=1, **options):
        return self.finder(**options)[0].judge(self.folder, self.room(), number)

    def test_the_floor_finds_a_mutant_before_the_floors_above(self):
        self.assertEqual(self.verdict(own=1, above=1),
                         {"found": "own", "how": "tests/weir_base_test: status 1"})

    def test_the_floors_above_find_what_the_floor_does_not(self):
        self.assertEqual(self.verdict(above=4),
                         {"found": "above", "how": "tests/weir_os_test: status 4"})

    def test_a_survivor_says_how_many_tests_reach_it(self):
        self.assertEqual(self.verdict(), {
            "found": "no", "how": "floor: 1 tests reach it; above: 1 tests reach it"})

    def test_the_floor_may_be_tested_alone(self):
        self.assertEqual(self.verdict(floor_only=True, above=4),
                         {"found": "no", "how": "1 tests reach it"})
        finder, messages = self.finder(floor_only=True)
        self.assertEqual(finder.targets(self.room()), ["weir_base_test"])
        self.assertEqual(len(messages), 1)

    def test_tests_that_fail_without_a_mutant_are_named_and_left_out(self):
        finder, messages = self.finder(own=1)
        self.assertEqual(messages, [
            f"{each}: left out, they fail without a mutant: {each}.Fails"
            for each in ("weir_base_test", "weir_os_test")])
        self.assertEqual(finder.judge(self.folder, self.room(), 2)["found"], "no")

    def test_a_crash_of_the_tests_is_reported(self):
        self.program("tests/weir_base_test", "exit 7")
        finder = runner.Tests(floor_only=True)
        self.assertEqual(finder.record(self.folder, ["weir_base_test"], 3, 1, 30),
                         ["weir_base_test: later tests are left out: status 7 after no test"])

    def test_only_the_shortest_tests_above_the_floor_are_run(self):
        finder = runner.Tests(floor_only=False)
        tests = [runner.Test("tests/weir_os_test", name, seconds, frozenset([1]))
                 for name, seconds in (("A.Short", 1), ("A.Next", 10), ("A.Long", 20))]
        with unittest.mock.patch.object(runner, "recorded", return_value=(tests, [], [])):
            finder.record(self.folder, ["weir_os_test"], 2, 1, 30)
        with unittest.mock.patch.object(runner, "recorded", return_value=([], [], [])):
            finder.record(self.folder, ["weir_base_test"], 2, 1, 30)
        self.program("tests/weir_os_test",
                     'grep -q Long "${1#--gtest_flagfile=}" && exit 5; exit 0')
        self.assertEqual(finder.judge(self.folder, self.room(), 1)["found"], "no")

    def test_the_summary_tells_the_scores(self):
        self.assertEqual(runner.Tests(floor_only=True).summary(1, 1, 4),
                         "0.25 found by the tests of the floor")
        self.assertEqual(runner.Tests(floor_only=False).summary(1, 1, 4),
                         "0.25 found by the tests of the floor, 0.50 by all tests")
        self.assertEqual(runner.Fuzzers(self.folder).summary(1, 0, 2),
                         "0.50 found by 60 s of each fuzzer alone")

    def test_finders_have_names_and_builds_of_their_own(self):
        finders = (runner.Tests(True), runner.Tests(False), runner.Simulation(),
                   runner.Fuzzers(self.folder))
        self.assertEqual([(each.name, each.preset, each.finds_by_floor) for each in finders], [
            ("tests-of-floor", "asan", True), ("tests", "asan", True),
            ("simulate", "asan", False), ("fuzz", "fuzz", False)])


class ProgramsTimeTest(Sandbox):
    def test_a_program_may_take_eight_times_as_long_and_twenty_seconds_more(self):
        finder = runner.Simulation()

        def record(command, limit, environment, folder):
            clock.return_value += 3
            pathlib.Path(environment["WEIR_MUTANTS_REACHED"]).write_bytes(b"\1")
            return 0

        with unittest.mock.patch("time.monotonic", return_value=100) as clock:
            with unittest.mock.patch.object(runner, "run", side_effect=record):
                finder.record(self.folder, ["simulate"], 1, 1, 30)
        with unittest.mock.patch.object(runner, "run", return_value=0) as run:
            finder.judge(self.folder, None, 0)
        self.assertEqual(run.call_args.args[1], 44)


class TimeTest(unittest.TestCase):
    def limit_of(self, seconds):
        """Returns the time limit of tests that usually take these seconds."""
        tests = [runner.Test("t", "A.B", each, frozenset()) for each in seconds]
        with tempfile.TemporaryDirectory() as folder:
            with unittest.mock.patch.object(runner, "run", return_value=0) as run:
                runner.fails(folder, "t", 1, tests)
        return run.call_args.args[1]

    def test_tests_may_take_eight_times_as_long_and_twenty_seconds_more(self):
        self.assertEqual(self.limit_of([1, 2]), 44)

    def test_single_tests_take_at_most_twenty_seconds(self):
        tests = [runner.Test("t", f"A.{each}", each, frozenset([1])) for each in (15, 5, 1)]
        finder = runner.Tests(floor_only=True)
        with unittest.mock.patch.object(runner, "recorded", return_value=(tests, [], [])):
            finder.record("build", ["weir_base_test"], 2, 1, 30)
        with unittest.mock.patch.object(runner, "fails", return_value="") as fails:
            runner.SingleTests(finder).judge("build", rooms.Room("base", []), 1)
        self.assertEqual([call.args[3][0].seconds for call in fails.call_args_list], [1, 5])

    def test_tests_are_within_a_limit_that_they_equal(self):
        tests = [runner.Test("t", name, seconds, frozenset())
                 for name, seconds in (("a", 10), ("b", 20))]
        self.assertEqual(runner.within(tests, 30), tests)

    def test_the_first_group_has_the_forty_shortest_tests(self):
        tests = [runner.Test("t", f"A.{each}", each, frozenset([1])) for each in range(41)]
        with unittest.mock.patch.object(runner, "fails", return_value="") as fails:
            runner.judge("build", 1, tests)
            self.assertEqual([call.args[3] for call in fails.call_args_list],
                             [tests[:40], tests[40:]])
            fails.reset_mock()
            runner.judge("build", 1, tests[:3])
            self.assertEqual([call.args[3] for call in fails.call_args_list], [tests[:3]])

    def test_the_longest_tests_are_left_out_beyond_the_limit(self):
        tests = [runner.Test("t", name, seconds, frozenset())
                 for name, seconds in (("long", 50), ("short", 1), ("middle", 20))]
        self.assertEqual([each.name for each in runner.within(tests, 30)], ["short", "middle"])

    def test_one_test_is_run_even_if_it_exceeds_the_limit(self):
        long = runner.Test("t", "long", 50, frozenset())
        self.assertEqual(runner.within([long], 30), [long])


class RecordingTest(Sandbox):
    PASSES = 'echo A.Passes passed 1500 3 >"$WEIR_MUTANTS_RECORD"\n'

    def record(self, script, count=5, shards=1, limit=30):
        """Returns what runner.recorded() returns for a program."""
        self.program("program", script)
        return runner.recorded(self.folder, "program", count, shards, limit)

    def is_kept(self):
        return (self.folder / "program.recording.json").exists()

    def test_a_recording_has_the_tests_and_what_they_reach(self):
        tests, failed, broken = self.record(
            '[ $(stat -c %s "$WEIR_MUTANTS_REACHED") = 5 ] || exit 3\n' + self.PASSES)
        self.assertEqual(tests, [runner.Test("program", "A.Passes", 1.5, frozenset([3]))])
        self.assertEqual((failed, broken, self.is_kept()), ([], [], True))

    def test_only_a_changed_binary_is_recorded_again(self):
        script = f"echo >>{self.folder}/runs\n{self.PASSES}"
        self.record(script)
        for count, runs in ((5, 1), (5, 1), (6, 2)):  # 6: other mutants
            tests, failed, broken = runner.recorded(self.folder, "program", count, 1, 30)
            self.assertEqual((len(tests), failed, broken), (1, [], []))
            self.assertEqual(tests, [runner.Test("program", "A.Passes", 1.5, frozenset([3]))])
            self.assertEqual(len((self.folder / "runs").read_text()), runs)
        self.record(script + "# Changed.\n", 6)
        self.assertEqual(len((self.folder / "runs").read_text()), 3)

    def test_each_shard_records_its_part(self):
        tests, _, _ = self.record('[ "$GTEST_TOTAL_SHARDS" = 2 ] || exit 3\n'
                                  'echo A.B$GTEST_SHARD_INDEX passed 0 >"$WEIR_MUTANTS_RECORD"\n',
                                  shards=2)
        self.assertEqual(sorted(each.name for each in tests), ["A.B0", "A.B1"])

    def test_a_recording_ends_at_its_time_limit(self):
        self.assertEqual(self.record("sleep 60", limit=0.2),
                         ([], [], ["time limit after no test"]))

    def test_an_error_that_a_sanitizer_finds_is_no_failed_test(self):
        program = self.folder / "program"
        command = ["clang++-19", "-fsanitize=address", "-x", "c++", "-", "-o", str(program)]
        subprocess.run(command, check=True,
                       input=b"int main(int n, char**) { int* p = new int[n]; return p[n]; }")
        self.assertEqual(runner.recorded(self.folder, "program", 5, 1, 30),
                         ([], [], ["status 99 after no test"]))
        self.assertFalse(self.is_kept())

    def test_a_failed_test_is_no_crash(self):
        _, failed, broken = self.record(
            self.PASSES + 'echo A.Fails failed 1 >>"$WEIR_MUTANTS_RECORD"; exit 1')
        self.assertEqual((failed, broken, self.is_kept()), (["A.Fails"], [], True))

    def test_a_crash_is_reported_and_not_kept(self):
        _, failed, broken = self.record(self.PASSES + "exit 7")
        self.assertEqual((failed, broken, self.is_kept()),
                         ([], ["status 7 after A.Passes"], False))


if __name__ == "__main__":
    unittest.main()
