"""Tests of the analysis of neighbouring statements."""

import dataclasses
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import effects  # noqa: E402
import object_code  # noqa: E402
import operators  # noqa: E402
from mutate_fixture import COROUTINE_TASK  # noqa: E402

SHARED = """#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <coroutine>
#include <limits>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>
struct Count {
  void add() { value_ += 1; }
  int value() const { return value_; }
  int value_ = 0, other_ = 0;
};
struct Part {
  int size = 0, weight = 0;
  void more();
  bool operator<(const Part& other) const { return size < other.size; }
};
struct Row {
  int* cells;
  int& operator[](int number) { return cells[number]; }
};
struct Whole {
  int a = 0, b = 0, c[4] = {};
  Part part;
  Count count;
  Row row;
  std::vector<Part> parts;
  std::unique_ptr<int> owned;
  std::istringstream in;
  std::suspend_always turn;
  std::vector<int> list, more;
  std::atomic<int> flag, other;
  std::mutex mutex;
  Whole* next = nullptr;
  void set(int value) { a = value; }
  void set_part() { set(part.size); }
  void unknown();
  int find(int number);
  virtual void may_be_overridden() { b = 1; }
};
int value_of(int number);
int repeat(Whole& w, int n) { return n > 0 ? repeat(w, n - 1) : w.a; }
void print(int number);
int size_of(const Part& part);
int taken(Part&& part);
struct Adds {
  explicit Adds(Whole& w) { w.a += 1; }
};
struct Keeps {
  explicit Keeps(int number);
};
struct Refers {
  explicit Refers(Whole& w);
};
int (*call)(int);
int total;
struct Counts {
  explicit Counts(int number) { total += number; }
};
template <class T>
struct Of {
  void set(T value) { size = value; }
  T size{};
};
int count_up(int number) { return total += number; }
template <class T>
void grow(T& value) { value.size = 1; }
template <class T>
void touch(T& value) { value.more(); }
void d1() { total = 1; }
void d2() { d1(); }
void d3() { d2(); }
void d4() { d3(); }
void d5() { d4(); }
void d6() { d5(); }
int pair[2];
auto& [bound, unbound] = pair;
""" + COROUTINE_TASK
INDEPENDENT = [
    "w.a = 1; w.b = 2;",
    "w.a = 1; w.count.add();",
    "w.set(1); w.b = 2;",
    "w.a = value_of(1); w.b = 2;",
    "w.list.push_back(1); w.more.push_back(2);",
    "(n > 0 ? w.list : w.more).push_back(n); w.a = n;",
    "std::swap(w.a, v.a); std::swap(w.b, v.b);",
    "w.a = w.c[n]; w.b = w.c[n];",
    "w.flag.store(1, std::memory_order_relaxed); w.other.store(1, std::memory_order_relaxed);",
    "w.list = v.list; w.more = v.more;",
    "w.a = std::numeric_limits<int>::max(); w.b = 1;",
    "w.a = static_cast<int>(w.list.size()); w.b = 1;",
    "w.c[0] = n; w.list[0] = n;",
    "Keeps{n}; w.a = 1;",
    "assert(w.a == n); w.b = 1;",
    "(w.a) = 1; w.b = 2;",
    "w.list[0] = w.more.at(n); w.a = w.more.back();",
    "d5(); w.b = 1;",
    "value_of(n); w.a = *q;",
    "w.a = w.count.value(); v.count.other_ = 1;",
    "w.a = w.list.capacity(); w.b = w.list.capacity();",
    "w.list = v.more; w.a = w.more.capacity();",
    "w.a = std::char_traits<char>::length(text); w.b = 1;",
    "w.part.size = 1; w.a = w.part.weight;",
    "w.part.size = 1; w.a = v.next->part.weight;",
    "n = 1; w.a = w.b;",
]
DEPENDENT = [
    "w.a = 1; w.b = w.a;",
    "w.count.add(); w.a = w.count.value();",
    "w.set(1); w.a = 2;",
    "w.part.size = 1; w.set_part();",
    "w.part.size = 1; w.b = size_of(w.part);",
    "w.a = 1; w.unknown();",
    "w.a = 1; w.may_be_overridden();",
    "w.list.push_back(n); n = 1;",
    "w.list = std::move(v.list); v.list.clear();",
    "w.a = n; ++n;",
    "*q = 1; w.a = 2;",
    "r = 1; n = 2;",
    "p->a = 1; p = w.next;",
    "w.flag.store(1); w.other.store(1);",
    "w.flag.store(1, std::memory_order_release); w.a = 1;",
    "w.mutex.lock(); w.a = 1;",
    "(n > 0 ? w.list : w.more).push_back(n); w.list.clear();",
    "(n > 0 ? w.list : w.more).push_back(n); w.more.clear();",
    "w.c[n] = 1; w.a = w.c[0];",
    "w.list[n] = 1; w.a = w.list[0];",
    "w.list = v.list; w.more = w.list;",
    "Adds{w}; w.a = 2;",
    "w.a = 1; print(n);",
    "w.part.size = 1; w.a = taken(std::move(w.part));",
    "delete p; w.a = 1;",
    "throw 1; w.a = 1;",
    "std::exchange(w.a, 1); w.b = w.a;",
    "m.set(1); o.set(2);",
    "w.b = repeat(w, n); w.c[0] = 1;",
    "w.a = 1; n = *q;",
    "w.a = 1; n = r;",
    "w.a = dup2(n, 1); w.b = close(n);",
    "w.a = call(n); w.b = 1;",
    "Refers{w}; w.a = 1;",
    "Counts{n}; total = 1;",
    "co_await w.turn; w.b = 2;",
    "d6(); w.b = 1;",
    "w.part.size = 1; w.parts.push_back(w.part);",
    "grow(w.part); w.a = w.part.size;",
    "touch(w.part); w.a = 1;",
    "(n > 0 ? w.list : w.more).push_back(n); w.a = w.list.back();",
    "(n > 0 ? w.list : w.more).push_back(n); w.a = w.more.back();",
    "*w.c = n; value_of(n);",
    "q[0] = 1; w.a = 2;",
    "*w.owned = 1; w.a = 1;",
    "w.row[n] = 1; w.a = 1;",
    "bound = 1; w.a = 1;",
    "r = 1; value_of(n);",
    "Refers{w}; total = 1;",
    "w.find(n); w.a = 1;",
    "w.b = count_up(n); w.a = total;",
    "w.a = size_of(w.part); w.b = 1;",
    "w.in >> n; w.a = n;",
    "w.more = std::move(v.list); w.a = v.list.capacity();",
    "std::destroy_at(q); w.a = 1;",
    "m.set(n); w.a = m.size;",
    "w.a = 1; n = (*p).b;",
    "w.part.size = 1; w.a = std::max(w.part, v.part).weight;",
    "w.list.swap(v.more); w.a = v.more.capacity();",
    "w.a = std::move(n); w.b = n;",
]
# In a template with parameters of any type T: t, a reference, and u, a value.
UNKNOWN = [
    "t.size = n; w.a = 2;",
    "w.a = 2; t.size = n;",
    "n = t.size; w.a = 2;",
    "w.a = 2; n = t.size;",
    "t.add(n); w.a = 2;",
    "add(t); w.a = 2;",
    "T::add(n); w.a = 2;",
    "T::size = n; w.a = 2;",
    "T() = n; w.a = 2;",
    "w.b = T(n); w.a = 2;",
    "co_await t; w.a = 2;",
    "co_await u; w.a = 2;",
    "u.add(n); w.a = 2;",
    "u.size = n; w.a = 2;",
]


class EffectsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Parses one file with a function for each pair."""
        code, cls.mutants = SHARED, {}
        for number, pair in enumerate([*INDEPENDENT, *DEPENDENT, *UNKNOWN]):
            code += "template <class T>\n" if pair in UNKNOWN else ""
            code += f"Task f{number}(Whole& w, Whole& v, int n, Whole* p, int* q, int& r, "
            code += "Of<int>& m, Of<int>& o, const char* text"
            code += ", T& t, T u) {\n  ++n; " if pair in UNKNOWN else ") {\n  ++n; "
            cls.mutants[pair] = operators.Mutant("a.cpp", len(code), len(code) + len(pair), 1,
                                                 "order", pair, "", "")
            code += f"{pair}++n;\n}}\n"
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.cpp"
            path.write_text(code)
            cls.unit = effects.parsed(str(path), object_code.flags_of(folder))
        assert not [each for each in cls.unit.diagnostics if each.severity >= 3]

    def test_neighbours_of_different_variables_are_independent(self):
        for pair in INDEPENDENT:
            with self.subTest(pair):
                self.assertTrue(effects.independent_in(self.unit, self.mutants[pair]))

    def test_neighbours_that_share_a_changed_variable_are_dependent(self):
        for pair in DEPENDENT:
            with self.subTest(pair):
                self.assertFalse(effects.independent_in(self.unit, self.mutants[pair]))

    def test_names_that_a_template_does_not_know_may_depend_on_anything(self):
        for pair in UNKNOWN:
            with self.subTest(pair):
                self.assertFalse(effects.independent_in(self.unit, self.mutants[pair]))

    def test_only_two_neighbours_can_be_independent(self):
        one = self.mutants[INDEPENDENT[0]]
        for begin, end in ((one.begin, one.begin + 8), (one.begin + 1, one.end)):
            other = dataclasses.replace(one, begin=begin, end=end)
            self.assertFalse(effects.independent_in(self.unit, other))

    def test_code_of_another_file_at_the_same_place_is_not_considered(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.cpp"
            code = '#include "a.hpp"\nvoid f(int& a, int b, int c) { '
            pair = "b = 1; c = 2;"
            path.write_text(f"{code}{pair} }}\n")
            path.with_suffix(".hpp").write_text(
                f"{'void g(int a, int& b, int c) {':{len(code)}}b = 1; c = b; }}\n")
            mutant = operators.Mutant("a.cpp", len(code), len(code) + len(pair), 2, "order", pair,
                                      "", "")
            self.assertTrue(effects.independent_neighbours(path.parent, mutant, []))


if __name__ == "__main__":
    unittest.main()
