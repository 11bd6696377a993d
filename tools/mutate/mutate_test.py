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

    def test_conditions_of_the_compiler_and_of_declarations_are_not_negated(self):
        code = ("bool g();\nint f() { if (bool a = g(); a) return 1; if (bool b = g()) return 2;\n"
                "  if constexpr (sizeof(int) > 2) return 3; while (true) return 4; }\n")
        self.assertEqual(self.changes(code, "negation"), [])

    def test_results_are_negated_unless_they_compare(self):
        code = "bool g();\nbool f(int n) { if (n > 3) return n < 4; return g(); }\n"
        self.assertEqual(self.changes(code, "negation"), [("g()", "!(g())")])
        self.assertEqual(self.changes("int g();\nint f() { return g(); }\n", "negation"), [])

    def test_pointers_are_conditions_too(self):
        code = "struct S { int* p; };\nvoid f(S s) { if (s.p) *s.p = 1; }\n"
        self.assertEqual(self.changes(code, "negation"), [("s.p", "!(s.p)")])

    def test_sums_and_differences_change(self):
        code = "int f(int a, int b) { return a + b - a * b; }\n"
        self.assertEqual(self.changes(code, "arithmetic"),
                         [("a + b - a * b", "a + b + a * b"), ("a + b", "a - b")])

    def test_extrema_change(self):
        code = "#include <algorithm>\nint f(int a, int b) { return std::min(a, b); }\n"
        self.assertEqual(self.changes(code, "extremum"), [("std::min(a, b)", "std::max(a, b)")])
        self.assertEqual(self.changes(code, "arguments"), [])

    def test_bodies_without_braces_are_dropped(self):
        code = ("void g();\nint f(int n) {\n  for (g(); n < 3; ++n) n += 2;\n"
                "  if (n == 4) g(); else n = 5;\n  switch (n) { case 1: g(); default: n = 6; }\n"
                "  while (n < 9) ++n;\n  return n;\n}\n")
        self.assertEqual([before for before, _ in self.changes(code, "dropped statement")],
                         ["n += 2;", "g();", "n = 5;", "g();", "n = 6;", "++n;"])

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

    def test_the_end_of_an_object_is_a_release(self):
        code = "void f(int* p) { *p = 1; delete p; }\nvoid g(int* p) { delete p; }\n"
        self.assertEqual([before for before, _ in self.changes(code, "release")],
                         ["*p = 1; delete p;", "delete p;", "delete p;"])

    def test_a_statement_in_a_macro_stays_as_it_is(self):
        code = "#define TWICE(n) n += n; n += n\nvoid f(int& n) { TWICE(n); n = 3; }\n"
        self.assertEqual([before for before, _ in self.changes(code, "dropped statement")],
                         ["n = 3;"])

    def test_code_of_included_files_has_no_mutants(self):
        (self.folder / "other.hpp").write_text("inline bool g(int a) { return a < 1; }\n")
        found = self.mutants('#include "other.hpp"\n'
                             "namespace n { bool f(int a) { return a > 2; } }\n")
        self.assertEqual({each.before for each in found}, {"a > 2", "2"})
        self.assertEqual({each.line for each in found}, {2})

    def test_checks_that_leave_are_dropped(self):
        code = "int f(int* p) { if (p == nullptr) return 1; if (*p) { *p = 1; } return 0; }\n"
        self.assertEqual([before for before, _ in self.changes(code, "error check")],
                         ["if (p == nullptr) return 1;"])
        code = "void f(int n) { while (true) { if (n > 1) { break; } if (n > 2) continue; } }\n"
        self.assertEqual([before for before, _ in self.changes(code, "error check")],
                         ["if (n > 1) { break; }", "if (n > 2) continue;"])

    def test_arguments_of_one_type_are_swapped(self):
        code = "int g(int, int, bool);\nint f(int a, int b) { return g(a, b, true); }\n"
        self.assertEqual(self.changes(code, "arguments"), [("g(a, b, true)", "g(b, a, true)")])

    def test_equal_and_symmetric_arguments_are_not_swapped(self):
        code = ("#include <utility>\nint g(int, int);\ntemplate <int n> int h(int, int);\n"
                "void f(int a, int b) { std::swap(a, b); a = g(b, b) + h<1>(a, b); }\n")
        self.assertEqual(self.changes(code, "arguments"), [])

    def test_enumerators_become_the_next_one(self):
        code = "enum class E { one, two };\nE f() { return E::two; }\n"
        self.assertEqual(self.changes(code, "enumerator"), [("E::two", "E::one")])
        code = "enum class E { one, two, three };\nE f() { return E::one; }\n"
        self.assertEqual(self.changes(code, "enumerator"), [("E::one", "E::two")])

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
        self.assertEqual(self.changes("int f(int n) { const int m(n); return m; }\n", "lock"), [])

    def test_code_of_the_compiler_has_no_mutants(self):
        code = ("#include <cassert>\nstatic_assert(1 < 2);\nconstexpr int a = 1 + 2;\n"
                "enum { b = 3 };\nusing T = int[4];\n"
                "int f(int n) { assert(n > 5); switch (n) { case 6: return n; } return n; }\n")
        self.assertEqual(self.mutants(code), [])

    def test_the_text_of_a_mutant_is_one_short_line(self):
        mutant = self.mutants("void g(int);\nvoid f(int number) {\n  g(\n    number\n  );\n}\n")[0]
        self.assertEqual(mutant.text(),
                         "sample.cpp:3: dropped statement: g( number ); -> (nothing)")
        self.assertEqual(operators.shorten("a" * 60), "a" * 60)
        self.assertEqual(operators.shorten("a" * 61), "a" * 57 + "...")

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


class ObjectCodeTest(Sandbox):
    """The mutants that do not count."""

    def reasons(self, code, path="weir/base/sample.cpp", other=None):
        """Returns {(before, after): why the mutant does not count} of all mutants of a file."""
        files = {path: code} | (other or {})
        for name, content in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(content)
        objects = object_code.ObjectCode(self.folder, list(files))
        return {(each.before, each.after): objects.uncounted_because(each)
                for each in self.mutants(code, path)}

    def test_neighbours_that_the_tests_cannot_tell_apart(self):
        why = self.reasons(
            "struct Count { int value; void add() { value += 1; } };\n"
            "struct S { int a; Count count; };\nvoid f(S& s) { s.count.add(); s.a = 1; }\n"
            "void g(S& s) { s.count.add(); s.a = s.count.value; }\n")
        self.assertEqual(why["s.count.add(); s.a = 1;", "s.a = 1; s.count.add();"],
                         "independent neighbours")
        self.assertIsNone(why["s.count.add(); s.a = s.count.value;",
                              "s.a = s.count.value; s.count.add();"])
        self.assertIsNone(why["s.a = 1;", ""])

    def test_the_same_object_code(self):
        why = self.reasons("int f(unsigned n) { return n > 0 ? 4 : 5; }\n"
                           "int g(unsigned n) { return n != 0 && n > 0 ? 4 : 5; }\n")
        self.assertEqual(why["n != 0 && n > 0", "n > 0"], "same object code")
        self.assertIsNone(why["5", "5 + 1"])

    def test_code_that_does_not_compile(self):
        why = self.reasons("struct S { void f(int& n, int m); };\n"
                           "void g(S& s, int& n) { const int m = 1; s.f(n, m); }\n")
        self.assertEqual(why["s.f(n, m)", "s.f(m, n)"], "do not compile")

    def test_a_header_is_compared_in_sources_that_include_it(self):
        header = "inline int f(int n) { return n + 7; }\n"
        include = '#include "weir/base/a.hpp"\n'
        sources = {"weir/os/b.cpp": include + "int g(int n) { return f(n); }\n",
                   "weir/base/c.cpp": include, "other/d.cpp": "no C++\n" + include}
        why = self.reasons(header, "weir/base/a.hpp", sources)
        self.assertIsNone(why["7", "7 + 1"])
        self.setUp()
        why = self.reasons(header, "weir/base/a.hpp", {"weir/base/c.cpp": include})
        self.assertEqual(why["7", "7 + 1"], "same object code")


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

    def program(self, path, script):
        name = self.folder / path
        name.parent.mkdir(parents=True, exist_ok=True)
        name.write_text("#!/bin/sh\n" + script)
        name.chmod(0o755)

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


class DigestsTest(Sandbox):
    """A verdict is kept as long as what it depends on stays the same."""

    FILES = ("weir/base/a.cpp", "weir/base/a_test.cpp", "weir/os/b.cpp", "weir/os/b_test.cpp",
             "tools/mutate/c.py", "README.md")

    def digests(self, changed=None, floor_only=False, room="base"):
        """Returns the digests of the verdicts "uncounted", "own" and "no"."""
        for path in self.FILES:
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text("new" if path == changed else "old")
        digests = mutate.Digests(self.folder, list(self.FILES), runner.Tests(floor_only))
        return digests.every(rooms.Room(room, list(self.FILES)))

    def changes(self, changed, room="base"):
        return [old != new for old, new in zip(self.digests(room=room),
                                               self.digests(changed, room=room))]

    def test_tests_change_only_what_they_find(self):
        self.assertEqual(self.changes("weir/base/a_test.cpp"), [False, True, True])
        self.assertEqual(self.changes("weir/os/b_test.cpp"), [False, False, True])

    def test_sources_change_all_verdicts(self):
        self.assertEqual(self.changes("weir/base/a.cpp"), [True, True, True])
        self.assertEqual(self.changes("weir/os/b.cpp"), [True, True, True])

    def test_documents_and_scripts_change_no_verdict_of_a_floor(self):
        self.assertEqual(self.changes("README.md"), [False, False, False])
        self.assertEqual(self.changes("tools/mutate/c.py"), [False, False, False])

    def test_scripts_depend_on_scripts(self):
        self.assertEqual(self.changes("tools/mutate/c.py", "tools/mutate")[1:], [True, True])
        self.assertEqual(self.changes("weir/base/a_test.cpp", "tools/mutate")[1:], [False, False])

    def test_survivors_of_the_floor_may_be_found_above(self):
        self.assertNotEqual(self.digests(floor_only=True)[2], self.digests()[2])
        self.assertEqual(self.digests(floor_only=True)[1], self.digests()[1])

    def test_rooms_do_not_share_verdicts_of_their_tests(self):
        self.assertNotEqual(self.digests(room="os")[1], self.digests(room="base")[1])


class RepositoryTest(Sandbox):
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
        self.assertEqual(mutate.changed_lines(self.folder, "HEAD"),
                         {"a": {2, 5, 6}, "b": set()})

    def test_rows_of_the_page_explain_mutants(self):
        self.assertEqual(mutate.explanations(self.folder), {})
        (self.folder / "docs").mkdir()
        (self.folder / "docs/mutants.md").write_text(
            "| mutant | change | why |\n|---|---|---|\n"
            "| `0123456789ab`, `ba9876543210` | a.cpp:3 | no test can tell |\n"
            "| `aaaaaaaaaaaa` | b.cpp:4 | the same |\nThe text `cccccccccccc` is no row.\n")
        self.assertEqual(mutate.explanations(self.folder), {
            "0123456789ab": "no test can tell", "ba9876543210": "no test can tell",
            "aaaaaaaaaaaa": "the same"})

    def test_a_seed_is_chosen_if_none_is_given(self):
        seeds = {mutate.options_of([]).seed for _ in range(3)}
        self.assertEqual(len(seeds), 3)
        self.assertEqual(mutate.options_of(["--seed", "0"]).seed, 0)

    def test_a_result_is_read_again(self):
        path = self.folder / "results.json"
        mutant = operators.Mutant("a.cpp", 1, 2, 3, "constant", "1", "2", "")
        results = mutate.Results(path)
        self.assertIsNone(results.get(mutant, ["new", "old"]))
        results.put(mutant, "old", {"found": "own"})
        again = mutate.Results(path)
        self.assertEqual(again.get(mutant, ["new", "old"]), {"found": "own"})
        self.assertIsNone(again.get(mutant, ["new"]))


class RoomTest(unittest.TestCase):
    def test_a_part_of_a_room_has_the_fuzzers_of_the_room(self):
        self.assertEqual(rooms.Room("json/detail", []).fuzzers, ["json_fuzz"])
        self.assertEqual(rooms.Room("runtime", []).fuzzers, [])

    def test_a_floor_has_the_fuzzers_of_its_rooms(self):
        self.assertIn("h1_parser_fuzz", rooms.Room("http", []).fuzzers)

    def test_a_room_outside_weir_has_the_tests_of_its_program(self):
        room = rooms.Room("tools/weir", trees.Tree(ROOT, ROOT, 1).files())
        self.assertEqual((room.own, room.scripts), ("weir_tool_test", False))
        self.assertEqual(room.above, ["simulate_tool_test", "weir_system_test"])
        self.assertIn("tools/weir/main.cpp", room.paths)

    def test_a_room_of_scripts_has_their_tests(self):
        room = rooms.Room("tools/mutate/", ["tools/mutate/a.py", "tools/mutate/a_test.py",
                                            "tools/mutate.py", "tools/mutate/b.cpp"])
        self.assertEqual((room.own, room.scripts), (None, True))
        self.assertEqual(room.paths, ["tools/mutate/a.py"])

    def test_mutants_are_tested_until_enough_have_a_verdict(self):
        room = rooms.Room("base", [])
        room.order = list(range(10))
        self.assertEqual(room.next_batch(4), [0, 1, 2, 3])
        room.verdicts = dict.fromkeys(range(3))  # one did not count
        self.assertEqual(room.next_batch(4), [4])
        room.verdicts = dict.fromkeys(range(4))
        self.assertEqual(room.next_batch(4), [])

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

    def test_only_a_changed_binary_is_recorded_again(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program"
            script = (f'#!/bin/sh\necho >>{folder}/runs\n'
                      'echo A.Passes passed 1500 3 >"$WEIR_MUTANTS_RECORD"\n')
            program.write_text(script)
            program.chmod(0o755)
            runs = []
            for addition in ("", "", "# Changed.\n"):
                if addition:
                    program.write_text(script + addition)
                tests, failed, broken = runner.recorded(folder, "program", 5, 1, 30)
                self.assertEqual((len(tests), failed, broken), (1, [], []))
                self.assertEqual(tests[0].reaches, {3})
                runs.append(len((pathlib.Path(folder) / "runs").read_text()))
            self.assertEqual(runs, [1, 1, 2])
            runner.recorded(folder, "program", 6, 1, 30)  # other mutants
            self.assertEqual(len((pathlib.Path(folder) / "runs").read_text()), 3)

    def test_each_shard_records_its_part(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program"
            program.write_text('#!/bin/sh\n[ "$GTEST_TOTAL_SHARDS" = 2 ] || exit 3\n'
                               'echo A.B$GTEST_SHARD_INDEX passed 0 >"$WEIR_MUTANTS_RECORD"\n')
            program.chmod(0o755)
            tests, _, _ = runner.recorded(folder, "program", 5, 2, 30)
            self.assertEqual(sorted(each.name for each in tests), ["A.B0", "A.B1"])

    def test_a_recording_ends_at_its_time_limit(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program"
            program.write_text("#!/bin/sh\nsleep 60\n")
            program.chmod(0o755)
            result = runner.recorded(folder, "program", 5, 1, 0.2)
            self.assertEqual(result, ([], [], ["time limit after no test"]))

    def test_a_failed_test_is_no_crash(self):
        (_, failed, broken), kept = self.recorded(
            'echo A.Fails failed 1 >>"$WEIR_MUTANTS_RECORD"; exit 1')
        self.assertEqual((failed, broken, kept), (["A.Fails"], [], True))

    def test_a_crash_is_told_and_not_kept(self):
        (_, failed, broken), kept = self.recorded("exit 7")
        self.assertEqual((failed, broken, kept), ([], ["status 7 after A.Passes"], False))


if __name__ == "__main__":
    unittest.main()
