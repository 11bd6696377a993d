"""Proves that every check can fail: a clean little tree passes, each fault put in is named."""

import pathlib
import subprocess
import sys
import unittest
import unittest.mock

import check
import cxx_text
from check_fixture import CheckTestCase, HEADER, SOURCE, UNITS
from repository import Repository
from self_contained import choose_pivots, Closures, PrecompiledHeaders


def coroutine(statement):
    return f"// A coroutine.\nTask<int> f() {{\n  {statement}\n}}\n"


AWAITABLE = """// Things that wait.
#pragma once

namespace weir::files {{

/// Waits.{0}
Task<Result<>> wait(int length);

}}  // namespace weir::files
"""
SWEEP = "// Cancels.\nconst SweepCase one = SweepCase{{\"{0}\", wait}};\n"


class CheckTest(CheckTestCase):
    def test_examples_need_no_help_of_a_build(self):
        example = '// E.\n#include <string>\n\nint main() { std::string text; }\n'
        self.expect_clean({"examples/text.cpp": example}, with_tools=True)
        self.expect("self-contained", "examples/text.cpp",
                    {"examples/text.cpp": example.replace("#include <string>\n\n", "")},
                    "does not compile", with_tools=True)

    def test_a_pivot_is_included_and_saves_more_than_it_costs(self):
        lines = {f"weir/base/{name}.hpp": "// X.\n" * 5000 for name in ("much", "less")}
        users = {f"weir/base/user{number}.hpp": '#include "weir/base/much.hpp"\n'
                 for number in range(6)}
        users |= {"weir/base/one.hpp": '#include "weir/base/less.hpp"\n'}
        self.check(lines | users)
        pivots = choose_pivots(Closures(Repository(self.root)), list(lines | users))
        self.assertEqual(pivots, {path: "weir/base/much.hpp" for path in users
                                  if path != "weir/base/one.hpp"})

    def test_a_precompiled_header_hides_no_missing_include(self):
        units = {"weir/base/much.hpp": "// Much.\n#pragma once\n\n#include <string>\n" +
                                       "".join(f"int much{n}();\n" for n in range(500))}
        user = '// U.\n#pragma once\n\n#include "weir/base/much.hpp"\n\nstd::string use{0}();\n'
        units |= {f"weir/base/u{n}.hpp": user.format(n) for n in range(6)}
        made = []
        flags = PrecompiledHeaders.flags

        def remember(precompiled, header):
            made.append(flags(precompiled, header))
            return made[-1]

        with unittest.mock.patch.object(PrecompiledHeaders, "flags", remember):
            lacks = units | {"weir/base/u0.hpp": user.format(0) + "std::vector<int> more();\n"}
            faults, _ = self.check(lacks, with_tools=True)
        alone = [(path, rule) for path, _, rule, _ in faults if rule == "self-contained"]
        self.assertEqual(alone, [("weir/base/u0.hpp", "self-contained")])
        self.assertTrue(made and all(made), made)

    # -- sizes

    def test_the_length_of_a_file_is_an_alarm(self):
        for path, text, alarm in (
            ("weir/base/error.hpp", HEADER.format("error"), 600),
            ("weir/base/error.cpp", SOURCE.format("error", "base"), 600),
            ("weir/base/error_test.cpp", "// Tests.\n", 900),
            ("examples/hello.cpp", "// Hello.\n", 91),
            ("tools/hello.py", "# Hello.\n", 600),
        ):
            with self.subTest(path):
                self.expect_clean({path: text + "\n" * (alarm - 1 - text.count("\n"))})
                for lines in (alarm, 999):
                    self.expect_warning("file-size", path,
                                        {path: text + "\n" * (lines - text.count("\n"))},
                                        f"{lines} lines")
                self.expect("file-size", path,
                            {path: text + "\n" * (1000 - text.count("\n"))}, "at most 999")
            (self.root / path).unlink()

    def test_a_warning_does_not_fail_the_check(self):
        for lines, status in ((91, 0), (1000, 1)):
            self.check({"examples/hello.cpp": "// Hello.\n" * lines})
            program = pathlib.Path(check.__file__)
            ran = subprocess.run([sys.executable, program, "--root", self.root],
                                 capture_output=True, text=True)
            self.assertEqual(ran.returncode, status, ran.stdout)
            mark = "file-size" if status else "warning: file-size"
            self.assertIn(f"examples/hello.cpp:{lines}: {mark}: {lines} lines", ran.stdout)
            self.assertIn(f"{status} faults, {1 - status} warnings", ran.stdout)

    def test_long_lines(self):
        self.expect("columns", "dev", {"dev": "#" * 101})

    def body(self, lines):
        return "// A test.\n#include <x>\nint f(int a)\n{\n" + "  g('}', \"{\");\n" * lines + "}\n"

    def test_long_functions(self):
        path = "weir/base/error_test.cpp"
        self.expect_clean({path: self.body(67)})
        self.expect("function-size", path, {path: self.body(68)}, "71 lines")
        member = "// T.\nclass A : B<int> {\n public:\n  A() : a_{1}, b_{2} {\n" + "    g();\n" * 70
        self.expect("function-size", path, {path: member + "  }\n};\n"}, "72 lines")

    def test_functions_are_told_from_what_else_has_braces(self):
        code = """
namespace a::b {
template <class T> requires (sizeof(T) > 1)
class C final : public D<int(int)> {
 public:
  explicit C(int x) noexcept : x_{x}, y_(std::vector{1, 2}) { go([&] { if (x) { y(); } }); }
  auto at() const -> int { return x_; }
  Callable<int> call_{nullptr};
  int x_{0};
};
enum class E : int { kA, kB };
constexpr int table[] = {1, 2, 3};
TEST(A, B) {}
}
"""
        heads = [function.head for function in cxx_text.functions(cxx_text.code_only(code))]
        self.assertEqual([head.split("(")[0].split()[-1] for head in heads], ["C", "at", "TEST"])

    def test_unbalanced_braces_are_reported(self):
        self.expect("function-size", "examples/a.cpp", {"examples/a.cpp": "// A.\nint f() {\n"})

    # -- content

    def test_unfinished_and_disabled_code(self):
        path = "weir/base/error_test.cpp"
        self.expect("unfinished", path, {path: "// TO" "DO: the rest\n"})
        self.expect("disabled", path, {path: "// A.\n#if 0\n#endif\n"})
        self.expect("disabled", path, {path: "// A.\nTEST(A, DISABLED" "_b) {}\n"})

    def test_machine_paths(self):
        self.expect("machine-path", "README.md", {"README.md": "see /ho" "me/me/weir\n"})
        self.expect("machine-path", "README.md", {"README.md": f"see {self.root}\n"})
        self.expect_clean({"README.md": "see weir/ho" "me/wo" "rk and docs/wo" "rk/x\n"})

    def test_headers(self):
        path = "weir/base/error.hpp"
        good = HEADER.format("error")
        self.expect("headers", path, {path: good.replace("#pragma once\n", "")})
        self.expect("headers", path, {path: good + "using namespace std;\n"})
        self.expect("headers", path, {path: good + "#define A 1\n"})

    def test_branches_of_tests(self):
        path = "tests/a_test.cpp"
        for branch in ("if (a) EXPECT_TRUE(b);", "if (a) {\n  } else ASSERT_EQ(a, b);"):
            self.expect("bare-branch", path, {path: f"// A.\nvoid f() {{\n  {branch}\n}}\n"})
        self.expect_clean({path: "// A.\nvoid f() {\n  if (a) {\n    EXPECT_TRUE(b);\n  }\n}\n"})

    def test_loops_over_temporaries(self):
        path = "tests/a_test.cpp"
        code = "// A.\nvoid f() {{\n  for (const auto& each : {}) g(each);\n}}\n"
        for bad in ("files.list(a, 10).value()", "list(\n           a())\n           .value()"):
            self.expect("loop-over-temporary", path, {path: code.format(bad)})
        for good in ("entries.value()", "app.explain().services", "group().loops()"):
            self.expect_clean({path: code.format(good)})
        body = "// A.\nvoid f() {\n  for (int a : b) c.push_back(d(a).value());\n}\n"
        self.expect_clean({path: body})

    def test_units(self):
        self.expect("units", "weir/base/error.hpp",
                    {"weir/base/error.hpp": HEADER.format("error").split("\n", 1)[1]})
        source = SOURCE.format("error", "base")
        self.expect("units", "weir/base/error.cpp",
                    {"weir/base/error.hpp": HEADER.format("error"),
                     "weir/base/error.cpp": "#include <vector>\n" + source})
        self.expect("units", "weir/base/alone.cpp", {"weir/base/alone.cpp": "// Alone.\n"})

    def test_the_world_is_asked_through_the_host(self):
        path = "weir/net/tcp.cpp"
        for call in ("std::chrono::steady_clock::now()", "std::thread t(f)",
                     "std::this_thread::sleep_for(d)", "std::random_device()"):
            text = SOURCE.format("tcp", "net").replace("return 1;", f"{call}; return 1;")
            self.expect("world", path, {path: text})
        text = SOURCE.format("tcp", "net").replace("return 1;", 'return !std::getenv("A");')
        self.expect("environment", path, {path: text})
        for_tests = "weir/net/test/tcp.hpp"
        reader = '// A.\n#pragma once\ninline bool f() { return !std::getenv("A"); }\n'
        self.expect_clean({for_tests: reader})
        test = "weir/net/tcp_test.cpp"
        self.expect("world", test, {test: "// A.\nint f() { std::this_thread::sleep_for(d); }\n"})

    # -- coroutines

    def test_shapes_that_gcc_breaks(self):
        path = "examples/a.cpp"
        for statement in (
            "co_await run([s] { return s; });",
            "co_await run([this, p = std::move(p)]() mutable { g(); });",
            "if (auto x = co_await run([=](int) { g(); h(); })) { k(); }",
            "co_return co_await fetch(Request{.method = get});",
            "co_await fetch({a, b});",
            "co_await fetch(name, {.timeout = 2s});",
            "co_await peer.read({.timeout = 2s, .name = text});",
            "auto x = c ? co_await a() : T{};",
            "auto [a, b] = co_await pair();",
            "return Reply{.a = co_await f()};",
            "if (ok && co_await next()) { g(); }",
            "return done || !(co_await next()).empty();",
        ):
            with self.subTest(statement):
                self.expect("coroutines", path, {path: coroutine(statement)})

    def test_shapes_that_are_fine(self):
        for statement in (
            "auto f = [s] { return s; }; co_await run(std::move(f));",
            "co_await run([&s, this] { return s ? 1 : 2; });",
            "co_await run([] { Request r{.method = get}; send(r); });",
            "auto r = Request{.method = get}; co_await fetch(r);",
            "int x = c ? 1 : 2; for (auto y : z) { g({1, 2}); } co_await a[x](std::string(\"?\"));",
            "while (auto bytes = co_await peer.read()) { if (!co_await w(*bytes)) break; }",
            "if (c) { x = d ? 1 : 2; co_await a(); }",
            "auto bytes = co_await peer.read({.timeout = 2s});",
            "auto sent = co_await peer->write(pieces[0], {.timeout = limits.write});",
            "if (a && b) sent = co_await write(std::forward<T&&>(x));",
        ):
            with self.subTest(statement):
                self.expect_clean({"examples/a.cpp": coroutine(statement)})

    QUERY = """// Classes.
struct Place { int line; const char* file; std::span<const int> all; };
struct Query { std::string url; int times = 1; };
struct Asked { Place place; Query query; };
struct Made { explicit Made(std::string text); std::string text; };
class Hidden { std::string text; public: int size() const { return 1; } };
template <class T> struct Holder { T value; };
"""

    def test_aggregates_that_own_something(self):
        path = "examples/a.cpp"
        for statement in ("co_await fetch(Query{url, 1});", "co_await fetch(Query{});",
                          "auto x = co_await a::fetch(1, a::Query {f({1}), 2});",
                          "co_await fetch(Asked{place, query});",
                          "co_await fetch(Holder<std::string>{text});",
                          "co_await fetch(std::array<std::string, 2>{a, b});",
                          "return Query{co_await f(), 1};",
                          "co_yield Query{url, 1};"):
            with self.subTest(statement):
                self.expect("coroutines", path, {path: self.QUERY + coroutine(statement)},
                            "no constructor")
        for statement in ("const Query q{url, 1}; co_await fetch(q);", "co_await f(Made{text});",
                          "co_await f(Place{1, name, {}}, Hidden{});", "co_await f(Unknown{1});",
                          "co_await f(std::array<int, 2>{1, 2});", "co_return Query{url, 1};",
                          "co_await run([](int a) -> Query { return Query{b, a}; });"):
            with self.subTest(statement):
                self.expect_clean({path: self.QUERY + coroutine(statement)})

    def test_aggregates_of_other_files(self):
        header = {"weir/net/query.hpp": "// Q.\n#pragma once\nstruct Query { std::string s; };\n"}
        fetch = coroutine("co_await fetch(Query{url});")
        self.expect("coroutines", "examples/a.cpp", header | {"examples/a.cpp": fetch})
        own = "// Own.\nstruct Query { int number; };\n"
        self.expect_clean(header | {"examples/a.cpp": own + fetch})

    def test_awaiters_without_a_constructor(self):
        path = "examples/a.cpp"
        ready = "bool await_ready();"
        for body in (f"struct A {{ {ready} std::string text; }};",
                     f"struct A : Base {{ {ready} }};",
                     "struct A { auto operator co_await() { return B(*this); } int& times; };",
                     f"class A {{ public: {ready} int a = 0; }};",
                     f"struct Outer {{ Outer(); struct A {{ {ready} int a; ~A(); }}; }};"):
            with self.subTest(body):
                self.expect("coroutines", path, {path: f"// A.\n{body}\n"}, "A is awaited")
        for body in (f"struct A {{ {ready} explicit A(int a); int a; }};",
                     f"struct A {{ {ready} A() = default; int a; }};",
                     f"struct A : Base {{ using Base::Base; {ready} }};",
                     f"struct A {{ {ready} static int a; using B = int; int f() const {{ x; }} }};",
                     f"class A {{ public: {ready} private: int a = 0; }};"):
            with self.subTest(body):
                self.expect_clean({path: f"// A.\n{body}\n"})

    def test_alignment_in_frames(self):
        path = "examples/a.cpp"
        wide = "// W.\nstruct alignas(64) Wide { int a; };\nstruct Lines { alignas(128) int a; };\n"
        for statement in ("alignas(64) int a = 0; co_await f(a);",
                          "co_await f(); for (;;) { alignas(line) std::array<int, 2> a; }",
                          "try { const alignas(32) int a = 1; } catch (int) { } co_return 1;",
                          "Wide w; co_await f(w);", "ns::Lines lines{1}; co_yield lines;",
                          "run([]() -> Task<> { Wide w; co_await f(w); });"):
            with self.subTest(statement):
                self.expect("coroutines", path, {path: wide + coroutine(statement)}, "alignment")
        for statement in ("alignas(16) int a = 0; co_await f(a);", "co_await f(new Wide);",
                          "static alignas(64) int a = 0; co_await f(a);", "Wide w; return f(w);",
                          "Wide* w = g(); Wide& v = *w; co_await f(v);",
                          "struct alignas(64) X { int a; }; co_await f();",
                          "auto g = [] { alignas(64) int a = 1; return a; }; co_await f(g);"):
            with self.subTest(statement):
                self.expect_clean({path: wide + coroutine(statement)})
        self.expect_clean({path: "// A.\nnamespace {\nalignas(64) int a[1];\nTask<> f() {\n"
                                 "  co_await g(a);\n}\n}\n"})

    def test_conditions_that_await(self):
        path = "examples/a.cpp"
        function = "// A.\nTask<> f(S& s) {{\n  {}\n}}\n".format
        for body in ("while (co_await s.read()) { }", "do { g(); } while (co_await s.read());",
                     "g(); if (!co_await s.read()) g();", "for (; co_await s.read();) g();",
                     "for (;;) { if (a) { if (co_await s.read()) break; } }",
                     "switch (co_await s.read()) { default: g(); }"):
            with self.subTest(body):
                self.expect("coroutines", path, {path: function(body)}, "without a variable")
        for body in ("while (auto b = co_await s.read()) { }",
                     "if (co_await s.read()) g(); int k = 0;",
                     "for (int i = 0; i < 3; ++i) { if (co_await s.read()) g(); }",
                     "const S t(s); while (co_await s.read()) { }",
                     "try { if (co_await s.read()) g(); } catch (int) { }",
                     "run([](S& s) -> Task<> { while (co_await s.read()) { } });"):
            with self.subTest(body):
                self.expect_clean({path: function(body)})

    # -- with tools

    def all_included(self):
        lines = [f'#include "weir/{floor}/{name}.hpp"\n' for name, floor in UNITS]
        lines.sort()
        return {"tests/all_test.cpp": "// All.\n" + "".join(lines)}

    def test_the_clean_tree_passes_with_tools_again_and_again(self):
        for _ in range(2):
            self.expect_clean(self.all_included(), with_tools=True)

    def test_formatting(self):
        path = "weir/base/error.cpp"
        ugly = SOURCE.format("error", "base").replace("return 1", "return   1")
        self.expect("format", path, self.all_included() | {path: ugly}, with_tools=True)

    def test_headers_that_need_others(self):
        path = "weir/base/error.hpp"
        needy = HEADER.format("error").replace("int error();", "std::string error_text();")
        changes = self.all_included() | {path: needy}
        self.expect("self-contained", path, changes, with_tools=True)
        self.expect("self-contained", path, changes, with_tools=True)  # a fault is not remembered

    def test_headers_that_need_more_than_the_common_headers(self):
        path = "weir/base/error.hpp"
        needy = HEADER.format("error").replace(
            "int error();", "std::string error_text();\nstd::map<int, int> all_errors();")
        needy = needy.replace("#pragma once\n", "#pragma once\n\n#include <string>\n")
        self.assertIn("#include <string>", needy)
        self.expect("self-contained", path, self.all_included() | {path: needy}, with_tools=True)

    def test_a_base_commit_limits_the_headers_to_those_that_a_change_reaches(self):
        needy = HEADER.format("tcp").replace("int tcp();", "std::string text();").replace(
            "#pragma once\n", '#pragma once\n\n#include "weir/base/error.hpp"\n')
        changes = self.all_included() | {"weir/net/tcp.hpp": needy}
        self.check(changes)
        git = ["git", "-C", str(self.root), "-c", "user.name=a", "-c", "user.email=a@b"]
        for command in (["init", "-q"], ["add", "--all"], ["commit", "-q", "-m", "all"]):
            subprocess.run([*git, *command], check=True, capture_output=True)
        self.expect_clean(changes, with_tools=True, since="HEAD")
        self.expect("self-contained", "weir/net/tcp.hpp", changes, with_tools=True, since="gone")
        changes["weir/base/error.hpp"] = HEADER.format("error").replace("int error", "long error")
        source = SOURCE.format("error", "base")
        changes["weir/base/error.cpp"] = source.replace("int err", "long err")
        self.expect("self-contained", "weir/net/tcp.hpp", changes, with_tools=True, since="HEAD")

    def test_files_without_a_target(self):
        lost = {"examples/lost.cpp": "// Lost.\nint main() {}\n"}
        self.expect("targets", "examples/lost.cpp", self.all_included() | lost, with_tools=True,
                    uncompiled=["examples/lost.cpp"])
        unused = {"weir/base/unused.hpp": HEADER.format("unused")}
        self.expect("targets", "weir/base/unused.hpp", self.all_included() | unused,
                    with_tools=True)
        # A header that only an uncompiled file includes is not compiled either.
        including = {"examples/lost.cpp": "#include \"weir/base/unused.hpp\"\nint main() {}\n"}
        self.expect("targets", "weir/base/unused.hpp", self.all_included() | unused | including,
                    with_tools=True, uncompiled=["examples/lost.cpp"])

    def test_peers_need_no_target(self):
        peer = {"bench/peers/theirs/theirs.cpp": "// Theirs.\nint main() {}\n"}
        self.expect_clean(self.all_included() | peer, with_tools=True,
                          uncompiled=["bench/peers/theirs/theirs.cpp"])

    def test_awaitables_document_their_cancellation(self):
        fine = {"weir/net/wait.hpp": AWAITABLE.format("\n/// Cancel: immediately."),
                "tests/cancel_sweep_test.cpp": SWEEP.format("files::wait for long")}
        self.expect_clean(fine)
        silent = fine | {"weir/net/wait.hpp": AWAITABLE.format("")}
        self.expect("cancel", "weir/net/wait.hpp", silent, "files::wait: its comment lacks")
        # A type that is awaited counts as a task does; what is private or internal does not.
        own = AWAITABLE.format("").replace("Task<Result<>>", "Wait").replace(
            "/// Waits.", "class Wait {\n  void operator co_await();\n};\n/// Waits.")
        self.expect("cancel", "weir/net/wait.hpp", fine | {"weir/net/wait.hpp": own},
                    "files::wait: its comment lacks")
        self.expect_clean({"weir/net/wait.hpp": AWAITABLE.format("").replace("files", "detail")})

    def test_awaitables_have_a_cancellation_test(self):
        header = {"weir/net/wait.hpp": AWAITABLE.format("\n/// Cancel: immediately.")}
        self.expect("cancel", "weir/net/wait.hpp", header, "no case")
        other = {"tests/cancel_sweep_test.cpp": SWEEP.format("files::wait_longer")}
        self.expect("cancel", "weir/net/wait.hpp", header | other, "no case")


if __name__ == "__main__":
    unittest.main()
