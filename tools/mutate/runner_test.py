"""Tests of how tests and programs find mutants."""

import os
import pathlib
import subprocess
import sys
import time
import unittest

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
            self.REACHES_TWO + '[ "$*" = "--seeds 20" ] || exit 1\n'
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


class TimeTest(unittest.TestCase):
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
        tests, failed, broken = self.record(self.PASSES)
        self.assertEqual(tests, [runner.Test("program", "A.Passes", 1.5, frozenset([3]))])
        self.assertEqual((failed, broken, self.is_kept()), ([], [], True))

    def test_only_a_changed_binary_is_recorded_again(self):
        script = f"echo >>{self.folder}/runs\n{self.PASSES}"
        self.record(script)
        for count, runs in ((5, 1), (5, 1), (6, 2)):  # 6: other mutants
            tests, failed, broken = runner.recorded(self.folder, "program", count, 1, 30)
            self.assertEqual((len(tests), failed, broken), (1, [], []))
            self.assertEqual(tests[0].reaches, {3})
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
