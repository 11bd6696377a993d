"""Tests of the faults in C++ sources."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import operators  # noqa: E402
from mutate_fixture import Sandbox  # noqa: E402


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
        self.assertEqual(self.changes(code, "negation"), [("a", "!(a)")])

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
        code = ("#include <algorithm>\n"
                "int f(int a, int b) { return std::min(std::min(a, b), 9); }\n")
        self.assertIn(("std::min(std::min(a, b), 9)", "std::max(std::min(a, b), 9)"),
                      self.changes(code, "extremum"))

    def test_bodies_without_braces_are_dropped(self):
        code = ("void g();\nint f(int n) {\n  for (g(); n < 3; ++n) n += 2;\n"
                "  if (n == 4) g(); else n = 5;\n  switch (n) { case 1: g(); default: n = 6; }\n"
                "  while (n < 9) ++n;\n  return n;\n}\n")
        self.assertEqual([before for before, _ in self.changes(code, "dropped statement")],
                         ["n += 2;", "g();", "n = 5;", "g();", "n = 6;", "++n;"])

    def test_loops_negate_their_conditions(self):
        code = "bool f();\nvoid g() { while (f()) { } while (bool b = f()) { } }\n"
        self.assertEqual(self.changes(code, "negation"), [("f()", "!(f())")])

    def test_comparisons_of_classes_change(self):
        code = ("#include <chrono>\nusing T = std::chrono::nanoseconds;\n"
                "struct E { int v; bool operator==(int) const; bool operator<(E) const; };\n"
                "bool f(T a, T b, E e) {\n  if (a < b) return true;\n"
                "  if (a == b) return e < E{2};\n"
                "  return a != b || e != 1 || 2 == e;\n}\n")
        self.assertEqual(self.changes(code, "comparison"), [
            ("a < b", "a <= b"), ("a == b", "a != b"), ("e < E{2}", "e <= E{2}"),
            ("a != b", "a == b"), ("e != 1", "e == 1"), ("2 == e", "2 != e")])
        self.assertEqual(self.changes(code, "negation"), [
            ("a != b || e != 1 || 2 == e", "!(a != b || e != 1 || 2 == e)")])

    def test_sums_of_classes_change(self):
        code = ("#include <chrono>\nusing T = std::chrono::nanoseconds;\n"
                "T f(T a, T b) { return a + b; }\n")
        self.assertEqual(self.changes(code, "arithmetic"), [("a + b", "a - b")])
        code = "#include <string>\nstd::string f(std::string a) { return a + 'b'; }\n"
        self.assertEqual(self.changes(code, "arithmetic"), [])

    def test_names_of_macros_may_be_operands(self):
        code = "#define LIMIT 4\nbool f(int n) { return n < LIMIT || LIMIT == n; }\n"
        self.assertEqual(self.changes(code, "comparison"),
                         [("n < LIMIT", "n <= LIMIT"), ("LIMIT == n", "LIMIT != n")])
        self.assertEqual(self.changes(code, "constant"), [])

    def test_statements_that_end_with_a_brace_keep_their_semicolon(self):
        code = ("struct P { int a; };\nvoid set(P);\n"
                "void f(P& p, P& q) { p = P{1}; q = p; }\n")
        self.assertEqual(self.changes(code, "order"), [("p = P{1}; q = p;", "q = p; p = P{1};")])

    def test_ignored_results_are_dropped(self):
        code = "int g();\nvoid f() { static_cast<void>(g()); }\n"
        self.assertEqual([before for before, _ in self.changes(code, "dropped statement")],
                         ["static_cast<void>(g());"])

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

    def test_only_methods_that_are_not_const_may_change_their_object(self):
        code = ("struct S { int a, b; int next(); int size() const; static int of(int); };\n"
                "void f(S& s) { s.a = s.next(); s.b = 1; }\n"
                "void g(S& s) { s.a = s.size(); s.b = 2; }\n"
                "void h(S& s) { s.a = S::of(3); s.b = 3; }\n")
        self.assertEqual([before for before, _ in self.changes(code, "order")],
                         ["s.a = s.next(); s.b = 1;"])

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

    def test_a_check_of_a_declared_result_keeps_the_declaration(self):
        code = "bool g();\nint f() { if (bool a = g(); !a) return 1; return 0; }\n"
        self.assertEqual(self.changes(code, "error check"),
                         [("if (bool a = g(); !a) return 1;", "bool a = g();")])

    def test_arguments_of_one_type_are_swapped(self):
        code = "int g(int, int, bool);\nint f(int a, int b) { return g(a, b, true); }\n"
        self.assertEqual(self.changes(code, "arguments"), [("g(a, b, true)", "g(b, a, true)")])

    def test_arguments_of_initializers_are_not_swapped(self):
        code = ("struct P { P(int, int); };\n"
                "struct Q { P p; Q(int a, int b) : p(a, b) { P other(a, b); } };\n"
                "P f(int a, int b) { return P(a, b); }\n")
        self.assertEqual(self.changes(code, "arguments"), [("P(a, b)", "P(b, a)")])

    def test_arguments_of_calls_in_templates_are_swapped(self):
        code = ("template <class T>\nint f(T t, int a, int b) { int n = t.get(a, b); return n; }\n")
        self.assertEqual(self.changes(code, "arguments"), [("t.get(a, b)", "t.get(b, a)")])

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

    def test_only_a_scoped_lock_of_one_mutex_is_omitted(self):
        code = ("#include <mutex>\nvoid f(std::mutex& m, std::mutex& n) {\n"
                "  { std::scoped_lock lock(m); }\n  { std::scoped_lock lock(m, n); }\n"
                "  { std::scoped_lock lock{n}; }\n  { std::unique_lock lock(n); }\n}\n")
        self.assertEqual([before for before, _ in self.changes(code, "lock")],
                         ["std::scoped_lock lock(m);"])

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


if __name__ == "__main__":
    unittest.main()
