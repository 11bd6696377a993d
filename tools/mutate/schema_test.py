"""Tests of the sources that hold mutants, and of those that do not count."""

import os
import pathlib
import subprocess
import sys
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import object_code  # noqa: E402
import operators  # noqa: E402
import rooms  # noqa: E402
import runner  # noqa: E402
import schema  # noqa: E402
from mutate_fixture import Sandbox  # noqa: E402

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


CONDITIONS = """#include <cstdio>
#include <optional>

int main() {
  std::optional<double> none, two = 2.0;
  int* null = nullptr;
  if (none && two) std::puts("none");
  if (two && null) std::puts("two");
  if (null) std::puts("null");
  std::puts(two ? "two" : "no");
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

    def expect_that_mutants_behave_as_if_planted_alone(self, program, found):
        """Returns how many mutants change what the program prints."""
        code = program.encode()
        numbers = {each: number for number, each in enumerate(found)}
        (self.folder / schema.SELECTION_HEADER).write_text(schema.SELECTION)
        together = self.run_program(schema.render(code, numbers))
        expected = self.run_program(code)()
        self.assertEqual(together(), expected)
        different = 0
        for mutant, number in numbers.items():
            alone = self.run_program(schema.plant(code, mutant))()
            self.assertEqual(together(WEIR_MUTANT=str(number)), alone, mutant.text())
            different += alone != expected
        return different

    def test_the_selected_mutant_behaves_as_if_planted_alone(self):
        found = [each for each in self.mutants(PROGRAM) if each.before != "++i"]
        kept = schema.without_overlaps(found)
        self.assertGreater(len(kept), 20)
        different = self.expect_that_mutants_behave_as_if_planted_alone(PROGRAM, kept[::3])
        self.assertGreater(different, 3)

    def test_conditions_of_any_type_keep_their_meaning(self):
        found = [each for each in self.mutants(CONDITIONS)
                 if each.operator in ("condition", "negation")]
        self.assertEqual(len(found), 8)
        self.assertEqual(self.expect_that_mutants_behave_as_if_planted_alone(CONDITIONS, found), 6)

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

    def test_a_mutant_reaches_from_its_begin_to_its_end(self):
        rendered = b"a\nb /*<5*/c /*<12*/d/*12>*/ e/*5>*/ f\n/*<7*/g/*7>*/"
        columns = [schema.number_at(rendered, 2, column + 1) for column in range(36)]
        self.assertEqual(columns, [None] * 2 + [5] * 8 + [12] * 8 + [5] * 9 + [None] * 9)
        self.assertEqual(schema.number_at(rendered, 3, 1), 7)

    def test_planting_keeps_the_line_numbers(self):
        code = b"void g();\nvoid f() {\n  g();\n  g(\n  );\n}\n"
        for mutant in self.mutants(code.decode()):
            self.assertEqual(schema.plant(code, mutant).count(b"\n"), code.count(b"\n"))

    def test_ranges_are_combined_if_they_are_nested_or_apart(self):
        def together(*ranges):
            mutants = [operators.Mutant("a.cpp", begin, end, 1, "constant", "", "", "")
                       for begin, end in ranges]
            return len(schema.without_overlaps(mutants)) == 2

        for other in ((2, 3), (7, 9), (3, 7), (3, 5), (5, 7), (4, 6), (2, 8), (1, 3), (3, 8)):
            self.assertTrue(together((3, 7), other) and together(other, (3, 7)), other)
        for other in ((2, 4), (6, 8), (1, 6), (4, 9)):
            self.assertFalse(together((3, 7), other) or together(other, (3, 7)), other)

    def test_neighbouring_mutants_are_rendered_side_by_side(self):
        numbers = {operators.Mutant("a.cpp", begin, end, 1, "constant", "", "", "[{on} {code}]"):
                   begin for begin, end in ((0, 2), (1, 2), (2, 3))}
        self.assertEqual(schema.render(b"abcd", numbers), b'#include "weir_mutate.hpp"\n'
                         b"/*<0*/[weir_mutate::on(0) a/*<1*/[weir_mutate::on(1) b]/*1>*/]/*0>*/"
                         b"/*<2*/[weir_mutate::on(2) c]/*2>*/d")

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

    def test_swaps_of_independent_neighbours_do_not_count(self):
        why = self.reasons(
            "struct Count { int value; void add() { value += 1; } };\n"
            "struct S { int a; Count count; };\nvoid f(S& s) { s.count.add(); s.a = 1; }\n"
            "void g(S& s) { s.count.add(); s.a = s.count.value; }\n")
        self.assertEqual(why["s.count.add(); s.a = 1;", "s.a = 1; s.count.add();"],
                         "independent neighbours")
        self.assertIsNone(why["s.count.add(); s.a = s.count.value;",
                              "s.a = s.count.value; s.count.add();"])
        self.assertIsNone(why["s.a = 1;", ""])

    def test_only_swaps_are_judged_by_their_neighbours(self):
        why = self.reasons("int a, b;\ntemplate <class F> void run(F f) { f(); }\n"
                           "void g() { run([] { a = 1; b = 2; }); }\n")
        self.assertIsNone(why["run([] { a = 1; b = 2; });", ""])

    def test_mutants_with_the_same_object_code_do_not_count(self):
        why = self.reasons("int f(unsigned n) { return n > 0 ? 4 : 5; }\n"
                           "int g(unsigned n) { return n != 0 && n > 0 ? 4 : 5; }\n")
        self.assertEqual(why["n != 0 && n > 0", "n > 0"], "same object code")
        self.assertIsNone(why["5", "5 + 1"])

    def test_mutants_that_do_not_compile_do_not_count(self):
        why = self.reasons("struct S { void f(int& n, int m); };\n"
                           "void g(S& s, int& n) { const int m = 1; s.f(n, m); }\n")
        self.assertEqual(why["s.f(n, m)", "s.f(m, n)"], "do not compile")

    def test_a_header_is_compared_in_sources_that_include_it(self):
        header = "inline int f(int n) { return n + 7; }\n"
        include = '#include "weir/base/a.hpp"\n'
        sources = {"weir/os/b.cpp": include + "int g(int n) { return f(n); }\n",
                   "weir/base/c.cpp": include}
        why = self.reasons(header, "weir/base/a.hpp", sources)
        self.assertIsNone(why["7", "7 + 1"])
        self.setUp()
        between = {"weir/base/b.hpp": include, "tools/weir/c.cpp": sources["weir/os/b.cpp"].replace(
            "a.hpp", "b.hpp")}
        self.assertIsNone(self.reasons(header, "weir/base/a.hpp", between)["7", "7 + 1"])
        self.setUp()
        why = self.reasons(header, "weir/base/a.hpp", {"weir/base/c.cpp": include})
        self.assertEqual(why["7", "7 + 1"], "same object code")


    def test_a_header_is_compared_in_the_four_nearest_sources(self):
        include = '#include "weir/base/a.hpp"\n'
        sources = {f"weir/{each}.cpp": include
                   for each in ("os/b", "base/c", "json/d", "base/e", "net/f", "base/g")}
        compiled = []

        def run(command, limit, environment):
            compiled.append(next(each for each in command if each.endswith(".cpp")))
            self.assertEqual(limit, 600)
            return original(command, limit, environment)

        original = runner.run
        with unittest.mock.patch.object(runner, "run", side_effect=run):
            why = self.reasons("constexpr int f() { return 7; }\n", "weir/base/a.hpp", sources)
        self.assertEqual(set(why.values()), {"same object code"})
        nearest = ["base/c", "base/e", "base/g", "json/d"]
        self.assertEqual(compiled[::2], [f"{self.folder}/weir/{each}.cpp" for each in nearest])
        self.assertEqual(compiled[::2], compiled[1::2])


class DrawTest(Sandbox):
    def test_a_seed_draws_the_same_mutants_from_each_operator(self):
        found = self.mutants(PROGRAM)
        order = rooms.draw(found, 7)
        self.assertEqual(order, rooms.draw(list(reversed(found)), 7))
        other = rooms.draw(found, 8)
        self.assertNotEqual([each.operator for each in order], [each.operator for each in other])
        for kind in ("dropped statement", "constant"):
            self.assertNotEqual([each for each in order if each.operator == kind],
                                [each for each in other if each.operator == kind])
        self.assertEqual(len(set(order)), len(order))
        self.assertEqual(order, schema.without_overlaps(order))
        kinds = {each.operator for each in found}
        self.assertEqual({each.operator for each in order[:len(kinds)]}, kinds)

    def test_keys_choose_mutants(self):
        found = self.mutants(PROGRAM)
        self.assertEqual(rooms.only(found, [found[3].key]), [found[3]])
        self.assertEqual(rooms.only(found, []), found)


if __name__ == "__main__":
    unittest.main()
