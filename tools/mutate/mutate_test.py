"""Tests of the tool that plants faults."""

import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import mutate  # noqa: E402
import object_code  # noqa: E402
import operators  # noqa: E402
import rooms  # noqa: E402
import runner  # noqa: E402
import schema  # noqa: E402
import tree as trees  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Sandbox(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

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


class OperatorsTest(Sandbox):
    def test_comparisons_change_their_bound_or_their_sense(self):
        code = "bool f(int a, int b) { return a < b || a == b; }\n"
        self.assertEqual(self.changes(code, "comparison"),
                         [("a < b", "a <= b"), ("a == b", "a != b")])

    def test_conditions_lose_a_part(self):
        code = "bool f(bool a, bool b) { return a && b; }\n"
        self.assertEqual(self.changes(code, "condition"), [("a && b", "a"), ("a && b", "b")])

    def test_conditions_are_negated(self):
        code = "int f(bool a) { if (a) return 3; return a ? 4 : 5; }\n"
        self.assertEqual(self.changes(code, "negation"), [("a", "!(a)"), ("a", "!(a)")])

    def test_statements_are_dropped(self):
        code = ("void g();\nint f(int n) {\n  while (true) { ++n; g(); n = 4; break; }\n"
                "  return n;\n}\n")
        self.assertEqual([before for before, _ in self.changes(code, "dropped statement")],
                         ["++n;", "g();", "n = 4;", "break;"])

    def test_neighbours_change_places(self):
        code = "void g();\nvoid h();\nvoid f() { g(); h(); }\n"
        self.assertEqual(self.changes(code, "order"), [("g(); h();", "h(); g();")])

    def test_independent_neighbours_do_not_change_places(self):
        code = ("struct S { int a, b; };\nint value(int n);\nint change(int& n);\n"
                "void f(S& s, int n) { s.a = value(n); s.b = 1; }\n"
                "void g(S& s) { s.a = 2; s.b = s.a; }\n"
                "void h(S& s, int n) { s.a = change(n); s.b = 1; }\n")
        self.assertEqual([before for before, _ in self.changes(code, "order")],
                         ["s.a = 2; s.b = s.a;", "s.a = change(n); s.b = 1;"])

    def test_neighbours_that_only_read_the_same_variable_do_not_change_places(self):
        code = ("struct S { int a, b, c[9], d[9]; };\n"
                "void f(S& s, int i) { s.c[i] = s.c[i - 1]; s.d[i] = s.d[i - 1]; }\n"
                "void g(S& s, int i) { s.c[i] = 1; ++i; }\n"
                "void h(S& s, int i) { s.c[0] = i++; s.d[0] = i; }\n"
                "void k(int* p, int* q) { *p = 1; *q = *p; }\n")
        self.assertEqual([before for before, _ in self.changes(code, "order")],
                         ["s.c[i] = 1; ++i;", "s.c[0] = i++; s.d[0] = i;", "*p = 1; *q = *p;"])

    def test_operators_of_the_library_change_only_their_operands(self):
        code = ("#include <string>\n#include <vector>\nstruct S { std::vector<int> a, b; };\n"
                "void f(S& s, std::string& text, int& n) { text += 'a'; n += 3; }\n"
                "void g(S& s, int i) { s.a[0] = i; s.b[0] = i; }\n"
                "void h(S& s, int i) { s.a[0] = i; s.b[0] = s.a[0]; }\n")
        self.assertEqual([before for before, _ in self.changes(code, "order")],
                         ["s.a[0] = i; s.b[0] = s.a[0];"])

    def test_releases_are_dropped_or_come_too_early(self):
        code = "struct S { void use(); void reset(); };\nvoid f(S& s) { s.use(); s.reset(); }\n"
        self.assertEqual(self.changes(code, "release"), [
            ("s.use(); s.reset();", "s.reset(); s.use();"), ("s.reset();", "")])

    def test_checks_that_leave_are_dropped(self):
        code = "int f(int* p) { if (p == nullptr) return 1; if (*p) { *p = 1; } return 0; }\n"
        self.assertEqual([before for before, _ in self.changes(code, "error check")],
                         ["if (p == nullptr) return 1;"])

    def test_arguments_of_one_type_are_swapped(self):
        code = "int g(int, int, bool);\nint f(int a, int b) { return g(a, b, true); }\n"
        self.assertEqual(self.changes(code, "arguments"), [("g(a, b, true)", "g(b, a, true)")])

    def test_enumerators_become_the_next_one(self):
        code = "enum class E { one, two };\nE f() { return E::two; }\n"
        self.assertEqual(self.changes(code, "enumerator"), [("E::two", "E::one")])

    def test_constants_change(self):
        code = "int f(int a) { return a * 7; }\nbool g() { return true; }\n"
        self.assertEqual(self.changes(code, "constant"), [("7", "7 + 1"), ("true", "false")])

    def test_memory_orders_are_weakened(self):
        code = ("#include <atomic>\nint f(std::atomic<int>& a) {\n"
                "  return a.load(std::memory_order_acquire);\n}\n")
        self.assertEqual(self.changes(code, "memory order"),
                         [("std::memory_order_acquire", "std::memory_order_relaxed")])

    def test_locks_are_omitted(self):
        code = ("#include <mutex>\nvoid f(std::mutex& m) {\n"
                "  const std::lock_guard lock(m);\n}\n")
        self.assertEqual([before for before, _ in self.changes(code, "lock")],
                         ["const std::lock_guard lock(m);"])

    def test_code_of_the_compiler_has_no_mutants(self):
        code = ("#include <cassert>\nstatic_assert(1 < 2);\nconstexpr int a = 1 + 2;\n"
                "enum { b = 3 };\nusing T = int[4];\n"
                "int f(int n) { assert(n > 5); switch (n) { case 6: return n; } return n; }\n")
        self.assertEqual(self.mutants(code), [])

    def test_a_mutant_keeps_its_key_if_other_lines_change(self):
        code = "bool f(int a) { return a < 1; }\nbool g(int a) { return a < 1; }\n"
        before = [each.key for each in self.mutants(code)]
        after = [each.key for each in self.mutants("// A line more.\n" + code)]
        self.assertEqual(before, after)
        self.assertEqual(len(set(before)), len(before))


PROGRAM = """#include <cstdio>
#include <mutex>

int calls = 0;
int next() { return ++calls; }
int sum(int first, int second) { return first * 10 + second; }
std::mutex mutex;

int main() {
  const std::lock_guard lock(mutex);
  int total = 1;
  for (int i = 0; i < 3; ++i) {
    if (i == 1 && total > 0) continue;
    total = total + next();
    total = total * 2;
  }
  std::printf("%d %d %d\\n", total, sum(total, 7), mutex.try_lock() ? 1 : 0);
}
"""


class SchemaTest(Sandbox):
    """One program holds all of its mutants and behaves as the selected one."""

    def run_program(self, code, **environment):
        source, program = self.folder / "program.cpp", self.folder / "program"
        source.write_bytes(code)
        subprocess.run(["clang++-19", "-std=c++2b", "-w", f"-I{self.folder}", str(source), "-o",
                        str(program)], check=True)
        return lambda **environment: subprocess.run(
            [str(program)], env=os.environ | environment, capture_output=True, timeout=5).stdout

    def test_the_selected_mutant_behaves_as_if_planted_alone(self):
        code = PROGRAM.encode()
        found = [each for each in self.mutants(PROGRAM) if each.before != "++i"]
        kept = schema.without_overlaps(found)
        self.assertGreater(len(kept), 20)
        numbers = {each: number for number, each in enumerate(kept)}
        (self.folder / schema.SELECTION_HEADER).write_text(schema.SELECTION)
        together = self.run_program(schema.render(code, numbers))
        self.assertEqual(together(), self.run_program(code)())
        different = 0
        for mutant in kept[::3]:
            alone = self.run_program(schema.plant(code, mutant))()
            self.assertEqual(together(WEIR_MUTANT=str(numbers[mutant])), alone, mutant.text())
            different += alone != self.run_program(code)()
        self.assertGreater(different, 3)

    def test_a_place_leads_to_the_innermost_mutant(self):
        code = b"bool f(int a) {\n  return a < 1 + a;\n}\n"
        found = self.mutants(code.decode())
        numbers = {each: number for number, each in enumerate(found)}
        rendered = schema.render(code, numbers)
        line = rendered.splitlines()[2]  # an include is in front
        for mutant in found:
            column = line.index(b"? (" + mutant.after.encode() + b")") + 1
            self.assertEqual(schema.number_at(rendered, 3, column), numbers[mutant])
        self.assertIsNone(schema.number_at(rendered, 2, 1))

    def test_planting_keeps_the_line_numbers(self):
        code = b"void g();\nvoid f() {\n  g();\n  g(\n  );\n}\n"
        for mutant in self.mutants(code.decode()):
            self.assertEqual(schema.plant(code, mutant).count(b"\n"), code.count(b"\n"))

    def test_ranges_that_cross_are_not_combined(self):
        code = "void a();\nvoid b();\nvoid c();\nvoid f() { a(); b(); c(); }\n"
        found = [each for each in self.mutants(code) if each.operator == "order"]
        self.assertEqual(len(found), 2)
        self.assertEqual(len(schema.without_overlaps(found)), 1)


class DrawTest(Sandbox):
    def test_a_seed_draws_the_same_mutants_from_each_operator(self):
        found = self.mutants(PROGRAM)
        order = rooms.draw(found, 7)
        self.assertEqual(order, rooms.draw(list(reversed(found)), 7))
        self.assertNotEqual(order, rooms.draw(found, 8))
        self.assertEqual(len(set(order)), len(order))
        self.assertEqual(order, schema.without_overlaps(order))
        kinds = {each.operator for each in found}
        self.assertEqual({each.operator for each in order[:len(kinds)]}, kinds)


    def test_keys_choose_mutants(self):
        found = self.mutants(PROGRAM)
        self.assertEqual(rooms.only(found, [found[3].key]), [found[3]])
        self.assertEqual(rooms.only(found, []), found)


class RunnerTest(Sandbox):
    def binary(self, script):
        name = self.folder / "binary"
        name.write_text("#!/bin/sh\n" + script)
        name.chmod(name.stat().st_mode | stat.S_IXUSR)
        return "binary"

    def judge(self, script, reaches=(3,)):
        test = runner.Test(self.binary(script), "A.B", 0.0, frozenset(reaches))
        return runner.judge(self.folder, 3, [test])

    def test_a_failed_test_finds_the_mutant(self):
        self.assertTrue(self.judge('[ "$WEIR_MUTANT" = 3 ] && exit 1; exit 0').found)

    def test_a_crash_finds_the_mutant(self):
        self.assertTrue(self.judge("kill -SEGV $$").found)

    def test_a_passed_test_does_not(self):
        self.assertFalse(self.judge("exit 0").found)

    def test_a_hang_finds_the_mutant_and_ends(self):
        least, runner.LEAST_SECONDS = runner.LEAST_SECONDS, 0.2
        self.addCleanup(setattr, runner, "LEAST_SECONDS", least)
        verdict = self.judge("sleep 60")
        self.assertTrue(verdict.found)
        self.assertIn("hang", verdict.how)
        self.assertLess(verdict.seconds, 30)

    def test_a_mutant_that_no_test_reaches_is_not_run(self):
        verdict = self.judge("exit 1", reaches=(2,))
        self.assertFalse(verdict.found)
        self.assertIn("no test reaches", verdict.how)

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


class TimeTest(unittest.TestCase):
    def test_the_longest_tests_are_left_out_beyond_the_limit(self):
        tests = [runner.Test("t", name, seconds, frozenset())
                 for name, seconds in (("long", 50), ("short", 1), ("middle", 20))]
        self.assertEqual([each.name for each in runner.within(tests, 30)], ["short", "middle"])

    def test_one_test_is_run_even_if_it_exceeds_the_limit(self):
        long = runner.Test("t", "long", 50, frozenset())
        self.assertEqual(runner.within([long], 30), [long])


class TreeTest(Sandbox):
    def setUp(self):
        super().setUp()
        self.root, self.copy = self.folder / "root", self.folder / "copy"
        self.root.mkdir()
        (self.root / "a.cpp").write_text("int f(int a) { return a < 1; }\n")
        (self.root / "b.txt").write_text("text\n")
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        self.tree = trees.Tree(self.root, self.copy, 1)

    def test_only_the_copy_holds_mutants(self):
        before = (self.root / "a.cpp").read_bytes()
        _, found, _ = mutate.find_in((str(self.root), "a.cpp", []))
        self.tree.write({each: n for n, each in enumerate(found)})
        self.assertEqual((self.root / "a.cpp").read_bytes(), before)
        self.assertIn(b"weir_mutate::on(0)", (self.copy / "a.cpp").read_bytes())
        self.assertEqual((self.copy / "b.txt").read_text(), "text\n")

    def test_a_build_ends_when_the_time_is_over(self):
        ninja = self.folder / "ninja"
        ninja.write_text("#!/bin/sh\nwhile echo '[1/2] x'; do sleep 0.1; done\n")
        ninja.chmod(ninja.stat().st_mode | stat.S_IXUSR)
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        os.environ["PATH"] = f"{self.folder}:{path}"
        with self.assertRaises(trees.OutOfTime):
            self.tree.compile(["all"], lambda text: None, time.monotonic())

    def test_a_file_is_written_only_if_it_changes(self):
        self.tree.write({})
        old = (self.copy / "a.cpp").stat().st_mtime_ns
        (self.root / "b.txt").unlink()
        self.tree.write({})
        self.assertEqual((self.copy / "a.cpp").stat().st_mtime_ns, old)
        self.assertFalse((self.copy / "b.txt").exists())


class RoomTest(unittest.TestCase):
    def test_a_part_of_a_room_has_the_fuzzers_of_the_room(self):
        self.assertEqual(rooms.Room("json/detail", []).fuzzers, ["json_fuzz"])
        self.assertEqual(rooms.Room("runtime", []).fuzzers, [])

    def test_a_floor_has_the_fuzzers_of_its_rooms(self):
        self.assertIn("h1_parser_fuzz", rooms.Room("http", []).fuzzers)

    def test_the_tests_of_the_floor_come_before_those_above(self):
        room = rooms.Room("http/detail/h1", trees.Tree(ROOT, ROOT, 1).files())
        self.assertEqual(room.own, "weir_http_test")
        self.assertEqual(room.above[0], "weir_app_test")
        self.assertIn("weir/http/detail/h1/parser.cpp", room.paths)
        self.assertFalse([each for each in room.paths if each.endswith("_test.cpp")])


class RecordingTest(unittest.TestCase):
    def recorded(self, ending):
        """Returns what the recording of a program returns that passes one test, then ends."""
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program"
            program.write_text('#!/bin/sh\n'
                               'echo A.Passes passed 1500 3 >"$WEIR_MUTANTS_RECORD"\n' + ending)
            program.chmod(0o755)
            result = runner.recorded(folder, "program", 5, 1, 30)
            return result, program.with_suffix(".recording.json").exists()

    def test_a_recording_has_the_tests_and_what_they_reach(self):
        (tests, failed, broken), kept = self.recorded("exit 0")
        self.assertEqual(tests, [runner.Test("program", "A.Passes", 1.5, frozenset([3]))])
        self.assertEqual((failed, broken, kept), ([], [], True))

    def test_a_failed_test_is_no_crash(self):
        (_, failed, broken), kept = self.recorded(
            'echo A.Fails failed 1 >>"$WEIR_MUTANTS_RECORD"; exit 1')
        self.assertEqual((failed, broken, kept), (["A.Fails"], [], True))

    def test_a_crash_is_told_and_not_kept(self):
        (_, failed, broken), kept = self.recorded("exit 7")
        self.assertEqual((failed, broken, kept), ([], ["status 7 after A.Passes"], False))


if __name__ == "__main__":
    unittest.main()
