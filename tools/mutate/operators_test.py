"""Tests of the faults in C++ sources."""

import dataclasses
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import operators  # noqa: E402
from mutate_fixture import COROUTINE_TASK, Sandbox  # noqa: E402


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

    def test_only_conditions_of_the_compiler_are_evaluated_by_it(self):
        code = ("int f(int n) {\n  if constexpr (sizeof(n) > 4) return 3;\n"
                "  if constexpr (sizeof(n) == 4) { n += 5; }\n  return n;\n}\n")
        self.assertEqual([(each.operator, each.before) for each in self.mutants(code)], [
            ("constant", "3"), ("dropped statement", "n += 5;"), ("constant", "5")])

    def test_conditions_in_templates_are_negated(self):
        code = ("template <class T> int f(T t) { if (t.ok()) return 1; return t.size ? 2 : 3; }\n"
                "template <class T> int g(T t) { while (t) return 4; return int() ? 5 : 6; }\n")
        self.assertEqual([before for before, _ in self.changes(code, "negation")],
                         ["t.ok()", "t.size", "t", "int()"])

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

    def test_a_method_named_like_an_extremum_stays(self):
        code = ("struct S { int min(int, int); };\n"
                "int f(S s, int a, int b) { return s.min(a, b); }\n")
        self.assertEqual(self.changes(code, "extremum"), [])

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

    def test_a_comparison_that_is_written_as_a_call_is_negated(self):
        code = ("struct E { int v; };\nbool operator==(E, E);\n"
                "int f(E a, E b) { if (operator==(a, b)) return 1; return 2; }\n")
        self.assertEqual(self.changes(code, "comparison"), [])
        self.assertEqual([before for before, _ in self.changes(code, "negation")],
                         ["operator==(a, b)"])

    def test_other_operators_of_classes_are_negated(self):
        code = ("struct E { bool operator&(E) const; bool operator-() const; };\n"
                "int f(E a, E b) { if (a & b) return 1; if (-a) return 2; return 3; }\n")
        self.assertEqual([before for before, _ in self.changes(code, "negation")],
                         ["a & b", "-a"])

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

    def test_only_expressions_change_places(self):
        code = ("void g();\nint f(int n) {\n  if (n > 1) { g(); }\n  n = 2;\n"
                "  if (n > 3) { g(); }\n  int m = n;\n  n = 4;\n  return m + n;\n}\n")
        self.assertEqual(self.changes(code, "order"), [])

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

    def test_pure_calls_of_one_class_do_not_change_places(self):
        code = ("struct S { static int of(int); };\nstruct T { int a, b; };\n"
                "void f(T& t) { S::of(t.a); S::of(t.b); }\n")
        self.assertEqual(self.changes(code, "order"), [])

    def test_assignments_through_casts_and_in_templates_may_change_anything(self):
        code = ("struct S { int a, b; };\nusing I = int;\n"
                "void f(S& s) { static_cast<I&>(s.a) = 1; s.b = s.a; }\n"
                "template <class T> void g(T& t, int a) { t.size = a; a = 2; }\n"
                "template <class T> void h(T& t, int a) { t.add(a); t.add(3); }\n")
        self.assertEqual([before for before, _ in self.changes(code, "order")], [
            "static_cast<I&>(s.a) = 1; s.b = s.a;", "t.size = a; a = 2;",
            "t.add(a); t.add(3);"])

    def test_assignments_through_results_and_pointers_may_change_anything(self):
        code = ("int& at(const int* p, int i);\n"
                "void f(int* p, int n, int i) { at(p, i) = 1; n = at(p, i); }\n"
                "void g(int* p, int n, int i) { *(p + i) = 1; n = *(p + i); }\n"
                "void h(int* p, int n, int i) { *(p + i) = 1; n = p[i]; }\n")
        self.assertEqual([before for before, _ in self.changes(code, "order")], [
            "at(p, i) = 1; n = at(p, i);", "*(p + i) = 1; n = *(p + i);",
            "*(p + i) = 1; n = p[i];"])

    def test_only_functions_of_values_and_constants_are_pure(self):
        code = ("struct N { int v; N& operator+=(int); };\nstruct S { int a, b; N n, m; };\n"
                "int of(const S& s, const int* p);\nint change(int* p);\n"
                "void f(S& s, S& t, int* p) { s.a = of(t, p); s.b = 1; }\n"
                "void g(S& s, int* p) { s.a = change(p); s.b = 2; }\n"
                "void h(S& s) { s.n += 3; s.m += 4; }\n")
        self.assertEqual([before for before, _ in self.changes(code, "order")],
                         ["s.a = change(p); s.b = 2;", "s.n += 3; s.m += 4;"])

    def test_only_operators_and_element_access_of_the_library_are_pure(self):
        code = ("#include <vector>\nstruct S { std::vector<int> a, b; int c; };\n"
                "void f(S& s, int n) { s.c = s.a.back(); n = 1; }\n"
                "void g(S& s) { s.a.push_back(1); s.b.push_back(2); }\n")
        self.assertEqual([before for before, _ in self.changes(code, "order")],
                         ["s.a.push_back(1); s.b.push_back(2);"])

    def test_operators_of_the_library_change_only_their_operands(self):
        code = ("#include <string>\n#include <vector>\nstruct S { std::vector<int> a, b, c; };\n"
                "void f(S& s, std::string& text, int& n) { text += 'a'; n += 3; }\n"
                "void g(S& s, int i) { s.a[0] = i; s.b[0] = i; }\n"
                "void h(S& s, int i) { s.a[0] = i; s.b[0] = s.a[0]; }\n"
                "void k(S& s, S& t) { s.a = t.b; s.c = t.b; }\n")
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

    def test_statements_next_to_a_macro_have_mutants(self):
        code = ("#define SET(x) x = 1;\nvoid f(int& n) { SET(n)n = 3;SET(n) n = 4; }\n"
                "void g(int& n) { SET(n) n = 5; }\n")
        self.assertEqual([before for before, _ in self.changes(code, "dropped statement")],
                         ["n = 3;", "n = 4;", "n = 5;"])
        self.assertEqual(self.changes(code, "order"), [])

    def test_macros_of_included_files_hide_no_code(self):
        (self.folder / "other.hpp").write_text(
            f"#define NAME b\n{'inline int g(int NAME)':60} {{ return b; }}\n")
        code = '#include "other.hpp"\nint f(int a, int b, int c) {\n  return a + b + c + 7; }\n'
        self.assertEqual(len(self.mutants(code)), 4)

    def test_the_first_line_may_be_empty(self):
        self.assertEqual(self.mutants("\nint f() { return 7; }\n")[0].line, 2)

    def test_names_that_a_template_does_not_know_are_no_enumerators(self):
        code = ("template <class T> int f(T t) { return T::size + add(t); }\n"
                "template <class T> int g() { return T::size * 7; }\n")
        self.assertEqual([(each.operator, each.before) for each in self.mutants(code)],
                         [("arithmetic", "T::size + add(t)"), ("constant", "7")])

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

    def test_a_check_with_an_alternative_stays(self):
        code = "int f(int n) { if (n > 1) return 2; else n = 3; return n; }\n"
        self.assertEqual(self.changes(code, "error check"), [])

    def test_a_condition_without_code_is_no_check(self):
        code = "int f(int n) { if (n > 1) { } return n; }\n"
        self.assertEqual(self.changes(code, "error check"), [])

    def test_checks_of_coroutines_are_dropped(self):
        code = ("#include <coroutine>\n" + COROUTINE_TASK +
                "Task f(int n) { if (n > 1) co_return; n = 2; co_return; }\n"
                "Task g(int n) { if (n > 3) co_await std::suspend_always(); n = 4; co_return; }\n")
        self.assertEqual([before for before, _ in self.changes(code, "error check")],
                         ["if (n > 1) co_return;"])
        self.assertEqual([before for before, _ in self.changes(code, "dropped statement")],
                         ["n = 2;", "co_await std::suspend_always();", "n = 4;"])

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

    def test_values_without_arguments_have_no_faults(self):
        code = "struct S { S(); };\nS f() { return {}; }\nS g() { return S(); }\n"
        self.assertEqual(self.mutants(code), [])

    def test_arguments_of_calls_that_initialize_a_variable_are_swapped(self):
        code = "int g(int, int);\nint f(int a, int b) { int n = g(a, b); return n; }\n"
        self.assertEqual(self.changes(code, "arguments"), [("g(a, b)", "g(b, a)")])

    def test_calls_of_objects_stay(self):
        code = ("struct G { int operator()(int, int); };\n"
                "int f(G g, int a, int b) { return g(a, b); }\n")
        self.assertEqual(self.changes(code, "arguments"), [])

    def test_calls_with_default_arguments_stay(self):
        code = "int g(int, int, int = 3);\nint f(int a, int b) { return g(a, b); }\n"
        self.assertEqual(self.changes(code, "arguments"), [])

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

    def test_what_would_stay_the_same_is_no_fault(self):
        code = ("#include <atomic>\nenum class E { one };\nE f() { return E::one; }\n"
                "int g(std::atomic<int>& a) { return a.load(std::memory_order_relaxed); }\n"
                "int h(int, int);\nint k(int a) { return h(a, a); }\n")
        self.assertEqual(self.mutants(code), [])

    def test_constants_change(self):
        code = "int f(int a) { return a * 7; }\nbool g() { return true; }\n"
        self.assertEqual(self.changes(code, "constant"), [("7", "7 + 1"), ("true", "false")])

    def test_memory_orders_are_weakened(self):
        code = ("#include <atomic>\nint f(std::atomic<int>& a) {\n"
                "  return a.load(std::memory_order_acquire);\n}\n")
        self.assertEqual(self.changes(code, "memory order"),
                         [("std::memory_order_acquire", "std::memory_order_relaxed")])

    def test_a_memory_order_that_the_caller_chooses_stays(self):
        code = ("#include <atomic>\nextern const std::memory_order strong;\n"
                "int f(std::atomic<int>& a, std::memory_order order) {\n"
                "  return a.load(strong) * a.load(order);\n}\n")
        self.assertEqual(self.changes(code, "memory order"),
                         [("strong", "std::memory_order_relaxed")])

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

    def test_arguments_of_a_constructor_are_no_constants(self):
        code = "struct S { explicit S(int); };\nint f(int n) { S a(n + 5); return 0; }\n"
        self.assertEqual(self.changes(code, "arithmetic"), [("n + 5", "n - 5")])

    def test_initializers_of_constants_have_no_mutants(self):
        code = ("template <class T> inline constexpr bool is_pointer = false;\n"
                "template <class T> inline constexpr bool is_pointer<T*> = true;\n"
                "template <class A, class B> constexpr int two = 1 + 2;\nconstinit int a = 3;\n"
                "struct S { static constexpr int b{4}; int c = 5; };\n"
                "template <class T> int d;\ntemplate <> int d<int> = 6;\n"
                "int e() { constexpr int f(7); return f + 8; }\n"
                "int g = [] { constexpr int h = 9; return h; }();\n")
        self.assertEqual(self.changes(code, "constant"),
                         [("5", "5 + 1"), ("6", "6 + 1"), ("8", "8 + 1")])

    def test_only_functions_that_may_run_have_mutants(self):
        code = ("consteval int f(int n) { return n + 1; }\n"
                "template <class T> consteval int g() { return 2; }\n"
                "struct S {\n  consteval S() : a(3) {}\n  consteval int h() { return 4; }\n"
                "  constexpr S(int n) : a(n + 5) {}\n  constexpr int k() { return 6; }\n"
                "  int a;\n};\n"
                "template <class T> constexpr int l() { return 7; }\n"
                "constexpr int m() { return 8; }\n")
        self.assertEqual(self.changes(code, "constant"),
                         [(number, f"{number} + 1") for number in "5678"])

    def test_arguments_of_templates_and_bounds_have_no_mutants(self):
        code = ("#include <array>\ntemplate <int n> struct A {};\nstruct B : A<1> {};\n"
                "struct C { A<2> a; char b[3]; int c = 4, d[5] = {6}; };\n"
                "int f() { std::array<int, 7> g = {8}; int h[9 + 1]; int k = 10; return k; }\n")
        self.assertEqual(self.changes(code, "constant"),
                         [(number, f"{number} + 1") for number in ("4", "6", "8", "10")])
        self.assertEqual(self.changes(code, "arithmetic"), [])

    def test_the_text_of_a_mutant_is_one_short_line(self):
        mutant = self.mutants("void g(int);\nvoid f(int number) {\n  g(\n    number\n  );\n}\n")[0]
        self.assertEqual(mutant.text(),
                         "sample.cpp:3: dropped statement: g( number ); -> (nothing)")
        self.assertEqual(operators.shorten("a" * 60), "a" * 60)
        self.assertEqual(operators.shorten("a" * 61), "a" * 57 + "...")

    def test_the_key_of_a_mutant_never_changes(self):
        mutant = operators.Mutant("a.cpp", 1, 2, 3, "constant", "7", "8", "{code}")
        self.assertEqual(mutant.key, "ad95daa3b895")
        self.assertEqual(dataclasses.replace(mutant, occurrence=1).key, "6b75dc07d568")

    def test_equal_mutants_of_a_file_are_counted(self):
        code = "int f(int a) { return a + 7 + 7 + 7; }\n"
        self.assertEqual([each.occurrence for each in self.mutants(code) if each.before == "7"],
                         [0, 1, 2])

    def test_a_mutant_keeps_its_key_if_other_lines_change(self):
        code = "bool f(int a) { return a < 1; }\nbool g(int a) { return a < 1; }\n"
        before = [each.key for each in self.mutants(code)]
        after = [each.key for each in self.mutants("// A line more.\n" + code)]
        self.assertEqual(before, after)
        self.assertEqual(len(set(before)), len(before))


if __name__ == "__main__":
    unittest.main()
