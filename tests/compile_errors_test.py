#!/usr/bin/env python3
"""Checks that invalid code of users does not compile, and which message the compiler shows.

Each compiler reads all invalid cases in one run, and all valid cases in another.

    compile_errors_test.py [COMPILER...]
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPILERS = sys.argv[1:] or ("clang++-19", "g++-12")
FLAGS = ("-std=c++2b", f"-I{ROOT}")

HEAD = """
#include <weir/app.hpp>
#include <weir/event.hpp>
#include <weir/http.hpp>
#include <weir/runtime.hpp>
#include <weir/task.hpp>
#include <string>
#include <vector>
using namespace weir;
struct Store {
  std::string& name() { return text; }
  int size() const { return 0; }
  std::string text;
};
struct Reads { explicit Reads(const Store&) {} };
struct Writes { explicit Writes(Store&) {} };
struct Seed {};
struct OfSeed { explicit OfSeed(Seed&) {} };
struct Spawns { explicit Spawns(Scope&) {} };
struct Asks { explicit Asks(inject::Requester) {} };
struct Starts { Task<Result<>> start() { co_return {}; } };
struct StartsWrongly { Task<> start() { co_return; } };
struct TwoWays { explicit TwoWays(Store&) {} TwoWays(Store&, Reads&) {} };
struct Ping { int sequence; };
struct Nested { Ping ping; };
class Secret { int value = 0; public: int get() const { return value; } };
struct Holder { int number; std::vector<Secret> secrets; };
struct Outer { Ping ping; Holder holder; };
struct Filter { int page; std::optional<Secret> hidden; };
struct Throws { Throws() = default; Throws(Throws&&) {} };
struct TakesMore { static TakesMore from_request(http::Request&) { return {}; } };
struct NotStatic { int n; NotStatic from_request(const http::Request&) const { return {1}; } };
struct Made { int n; static Made from_request(const http::Request&) { return {1}; } };
struct WantsStore { static WantsStore from_request(const http::Request&, Store&) { return {}; } };
struct WantsText { static WantsText from_request(const http::Request&, int) { return {}; } };
struct Alone { Alone() = default; Alone(Alone&&) = default; };
inline Task<Result<int>> number() { co_return 1; }
inline Task<http::Status> ok() { co_return http::Status::ok; }
// The names of internal contracts are free for the types of a user.
struct Backend {}; struct Completion {}; struct Counter {}; struct Datagram {};
struct Descriptor {}; struct FileSystem {}; struct Handover {}; struct Inbox {}; struct List {};
struct ListNode {}; struct Operation {};
struct Platform {}; struct Runnable {}; struct Signal {}; struct Slots {}; struct Socket {};
struct Timer {}; struct Watchdog {};
inline void own_names(Backend, Completion, Counter, Datagram, Descriptor, FileSystem, Handover,
                      Inbox, List, ListNode, Operation, Platform, Runnable, Signal, Slots, Socket,
                      Timer, Watchdog) {}
"""

AWAIT = "write co_await before the call"
SHARED = "a shared service is used by all cores and takes others as const"

# Each case is code that does not compile, a part of the error message, and similar code that
# compiles.
CASES = (
    ("app.shared<Writes>();", SHARED, "app.shared<Reads>();"),
    ("app.shared([](Store& of) { return Writes(of); });", SHARED,
     "app.per_core([](Store& of) { return Writes(of); });"),
    ("app.shared([](inject::Optional<Store>) { return Seed(); });", SHARED,
     "app.per_core([](inject::Optional<Store>) { return Seed(); });"),
    ("app.shared([](inject::Scoped<Seed>) { return Store(); });", SHARED,
     "app.per_core([](inject::Scoped<Seed>) { return Store(); });"),
    ("app.per_core<Store, Seed>();", "T does not derive from its interfaces",
     "app.per_core<Store>();"),
    ("app.per_core([](int) { return Store(); });", "for values write a factory",
     "app.per_core([] { return Store(); });"),
    ("app.per_core<TwoWays>();", "this class can be made in several ways",
     "app.per_core([](Store& of) { return TwoWays(of); });"),
    ("app.per_core<StartsWrongly>();", "start() of a service returns a Task<Result<>>",
     "app.per_core<Starts>();"),
    ("app.scoped<Seed, Starts>();", "it has no start() and no stop()",
     "app.scoped<Seed, OfSeed>();"),
    ("app.scoped<Seed, Spawns>();", "a scoped service takes no Scope&",
     "app.per_core<Spawns>();"),
    ("app.scoped<Seed, Asks>();", "a scoped service takes no Requester", "app.per_core<Asks>();"),
    ("std::ignore = remote.call(&Store::name);", "call",
     "std::ignore = remote.call(&Store::size);"),
    ('routes.get("/", [] { return std::error_code(); });',
     "a handler returns a Response, a Status",
     'routes.get("/", []() -> Result<http::Response> { return fail(Errc::not_found); });'),
    ('routes.get("/", [] { return 1; });', "a handler returns a Response, a Status",
     'routes.get("/", [] { return Ping{1}; });'),
    ('routes.get("/", []() mutable { return http::Status::ok; });',
     "its operator() must be const (no mutable lambda)",
     'routes.get("/", [] { return http::Status::ok; });'),
    ('routes.get("/", [](auto&) { return http::Status::ok; });',
     "a handler is a function or an object with one operator()",
     'routes.get("/", [](http::Request&) { return http::Status::ok; });'),
    ('routes.get("/{on}", [](bool) { return http::Status::ok; });',
     "path parameters are std::string_view, std::string, integers (not bool or char)",
     'routes.get("/{on}", [](int) { return http::Status::ok; });'),
    ('routes.post("/", [](http::Json<Ping>&) { return http::Status::ok; });',
     "a body, read from JSON, is one struct of public fields",
     'routes.post("/", [](const http::Json<Ping>&) { return http::Status::ok; });'),
    ('routes.get("/", [](Scope&) { return http::Status::ok; });',
     "a handler that takes a Scope& returns a Task",
     'routes.get("/", [](Scope&) -> Task<http::Status> { co_return http::Status::ok; });'),
    ('routes.get("/{a}", [](const std::string&) -> Task<http::Status> { return ok(); });',
     "a handler that returns a Task takes path parameters and typed arguments by value",
     'routes.get("/{a}", [](std::string) -> Task<http::Status> { return ok(); });'),
    ('routes.get("/{a}", [] { return http::Status::ok; });',
     "PatternHas<1>",
     'routes.get("/{a}", [](int) { return http::Status::ok; });'),
    ('routes.post("/", [](Ping, http::Form<Ping>) { return http::Status::ok; });',
     "a handler takes at most one body",
     'routes.post("/", [](http::Query<Ping>, http::Form<Ping>) { return http::Status::ok; });'),
    ('routes.post("/", [](TakesMore) { return http::Status::ok; });',
     "from_request() must be static, public",
     'routes.post("/", [](Made) { return http::Status::ok; });'),
    ('routes.get("/", [](int& number) { return http::Status::ok; });',
     "services as T& or const T&",
     'routes.get("/", [](Store& store, const Reads& reads) { return http::Status::ok; });'),
    ('http::LiveRoutes(routes).get("/", [](Store& store) { return http::Status::ok; });',
     "only a handler of an http::Router or its groups takes services",
     'http::LiveRoutes(routes).get("/", [] { return http::Status::ok; });'),
    ('routes.get("/", [](WantsText) { return http::Status::ok; });',
     "take a const Request&, then services as references",
     'routes.get("/", [](WantsStore) { return http::Status::ok; });'),
    ('routes.post("/", [](const NotStatic&) { return http::Status::ok; });',
     "from_request() must be static, public",
     'routes.post("/", [](const Made&) { return http::Status::ok; });'),
    ('routes.post("/", [](std::optional<TakesMore>) { return http::Status::ok; });',
     "from_request() must be static, public",
     'routes.post("/", [](std::optional<Ping>) { return http::Status::ok; });'),
    ('routes.post("/", [](http::Json<Outer>) { return http::Status::ok; });',
     "weir::json: a field of a struct has no form in JSON",
     'routes.post("/", [](http::Json<Nested>) { return http::Status::ok; });'),
    ('routes.get("/", [](http::Query<int>) { return http::Status::ok; });',
     "http::Query<T> and http::Form<T> take a struct of public fields",
     'routes.get("/", [](http::Query<Ping>) { return http::Status::ok; });'),
    ('routes.get("/", [](http::Query<Nested>) { return http::Status::ok; });',
     "a field of a query or a form is a number, a bool, a std::string",
     'routes.post("/", [](http::Json<Nested>) { return http::Status::ok; });'),
    ('routes.get("/", [](http::Header<"X-A", Ping>) { return http::Status::ok; });',
     "a header or a cookie is read as a number, a bool, a std::string",
     'routes.get("/", [](http::Header<"X-A", int>) { return http::Status::ok; });'),
    ('routes.use([c = 0](http::Request& r, http::Next n) mutable { ++c; return n(r); });',
     "middleware is a Task<Response>(Request&, Next) with a const operator()",
     'routes.use([](http::Request& r, http::Next n) { return n(r); });'),
    ('const http::Literal text(name);', "Literal", 'const http::Literal text("name");'),
    ("Result<bool> result;", "Result<bool> reads as true when it holds false",
     "Result<int> result;"),
    ("auto t = []() -> Task<> { WEIR_CO_TRY(co_await sleep(1s)); };",
     "the coroutine returns a Task<Result<T>>",
     "auto t = []() -> Task<Result<>> { WEIR_CO_TRY(co_await sleep(1s)); co_return {}; };"),
    ("auto t = []() -> Task<Result<>> { WEIR_CO_TRY(sleep(1s)); co_return {}; };", AWAIT,
     "auto t = []() -> Task<Result<>> { WEIR_CO_TRY(co_await sleep(1s)); co_return {}; };"),
    ("auto t = []() -> Task<Result<>> { WEIR_CO_TRY(auto n, number()); co_return {}; };", AWAIT,
     "auto t = []() -> Task<Result<>> { WEIR_CO_TRY(auto n, co_await number()); co_return {}; };"),
    ("auto t = []() -> Result<> { WEIR_TRY(number()); return {}; };", AWAIT,
     "auto t = []() -> Result<> { WEIR_TRY(Result<int>(1)); return {}; };"),
    ("Channel<Throws> channel(1);", "a channel needs an object type with a noexcept move",
     "Channel<Alone> channel(1);"),
    ("Mailbox<Throws> mailbox;", "a value must not get lost half way", "Mailbox<Alone> mailbox;"),
    ("auto call = on_core(0, [&]() -> const std::string& { return name; });",
     "return a value: a reference would cross the cores",
     "auto call = on_core(0, [&]() -> std::string { return name; });"),
    ("auto call = pool.run([](const char*) {}, name.c_str());",
     "is (or holds) a pointer, a reference or a view",
     "auto call = pool.run([](const char*) {}, borrow(name.c_str()));"),
    ("auto call = pool.run(std::ref(store));", "the function of run() is a std::ref()",
     "auto call = pool.run([] {});"),
    ("auto call = pool.run([](std::string&) {}, name);",
     "the function of run() cannot be called with these arguments",
     "auto call = pool.run([](const std::string&) {}, name);"),
    ("auto call = pool.run(ok);", "a coroutine does not block", "auto call = pool.run([] {});"),
    ("auto call = pool.run([] { return std::string_view(); });",
     "the function of run() must return a value",
     "auto call = pool.run([] { return std::string(); });"),
    ("auto r = events.on([](const auto&) {});", "do not name their event",
     "auto r = events.on([](const Ping&) {});"),
    ("auto r = events.on([](const Throws&) {});", "moved and destroyed without throwing",
     "auto r = events.on([](const Alone&) {});"),
    ("auto r = events.on([](const AnyEvent&) {});", "only interceptors receive events of all types",
     "auto r = events.after([](const AnyEvent&) {});"),
    ("auto r = events.on([](const Ping&) -> Task<> { co_return; });",
     "a handler that returns a task needs a Scope&",
     "auto r = events.on(scope, [](Ping) -> Task<> { co_return; });"),
    ("auto r = events.on(scope, [](Ping) {});", "a handler in a scope returns a Task",
     "auto r = events.on([](Ping) {});"),
    ("auto r = events.on(scope, [](const Alone&) -> Task<> { co_return; });",
     "a task handler receives a copy of the event", "auto r = events.on([](const Alone&) {});"),
)


def program(which):
    """Returns a function for each case, in a line of its own. The first case is in line 1."""
    parameters = ("App& app, const inject::Remote<Store>& remote, http::Router& routes, "
                  "const std::string& name, Store& store, BlockingPool& pool, "
                  "CoreEvents& events, Scope& scope")
    return "".join(
        f"[[maybe_unused]] void case_{number}({parameters}) {{ {case[which]} }}\n"
        for number, case in enumerate(CASES))


class Precompiled:
    """The headers and the types of all cases, compiled once for each compiler."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory()
        self._made = set()

    def flags(self, compiler):
        folder = pathlib.Path(self._folder.name, compiler)
        if compiler not in self._made:
            folder.mkdir()
            head = folder / "head.hpp"
            head.write_text("#pragma once\n" + HEAD)
            made = head.with_suffix(".hpp.gch" if is_gcc(compiler) else ".hpp.pch")
            subprocess.run([compiler, *FLAGS, "-x", "c++-header", head, "-o", made], check=True,
                           timeout=300)
            self._made.add(compiler)
        if is_gcc(compiler):
            return ["-fmax-errors=0", "-include", folder / "head.hpp"]
        return ["-ferror-limit=0", "-include-pch", folder / "head.hpp.pch"]

    def close(self):
        self._folder.cleanup()


precompiled = Precompiled()
unittest.addModuleCleanup(precompiled.close)


def is_gcc(compiler):
    return "g++" in compiler and "clang" not in compiler


def compiled(compiler, text):
    """Compiles `text` and returns the exit status and the messages of the compiler."""
    ran = subprocess.run([compiler, *FLAGS, "-fsyntax-only", *precompiled.flags(compiler), "-x",
                          "c++", "-"], input=f'#line 1 "cases"\n{text}', capture_output=True,
                         text=True, timeout=300)
    return ran.returncode, ran.stdout + ran.stderr


class RefusedTest(unittest.TestCase):
    def each_compiler(self):
        for compiler in COMPILERS:
            with self.subTest(compiler):
                if shutil.which(compiler) is None:
                    self.skipTest(f"there is no {compiler}")
                yield compiler

    def test_valid_code_compiles(self):
        for compiler in self.each_compiler():
            status, text = compiled(compiler, program(2))
            self.assertEqual(status, 0, text)

    def test_invalid_code_is_rejected_with_a_reason(self):
        for compiler in self.each_compiler():
            status, text = compiled(compiler, program(0))
            self.assertNotEqual(status, 0)
            for line, (code, words, _) in enumerate(CASES, 1):
                with self.subTest(code):
                    self.assertRegex(text, rf"\bcases:{line}:", "no error at this line")
                    self.assertIn(words, text)

    def test_a_parameter_that_no_handler_takes_is_named(self):
        code = ("void add(http::Router& routes) {\n"
                '  routes.get("/{a}", [](int, bool, Store&) { return http::Status::ok; });\n}\n')
        for compiler in self.each_compiler():
            status, text = compiled(compiler, code)
            self.assertNotEqual(status, 0)
            self.assertRegex(text, r"can_take_parameter<2, bool>|Number = 2; P = bool\b")
            self.assertNotRegex(text, r"can_take_parameter<[13],|Number = [13];")

    def test_a_field_without_a_form_is_named_first_and_alone(self):
        code = ("void add(http::Router& routes) {\n"
                '  routes.post("/", [](http::Json<Outer> outer) { return outer->holder; });\n}\n')
        self.assert_one_error(code, "a field of a struct has no form in JSON",
                              r"Holder.*Secret.*secrets")

    def test_a_field_without_a_text_is_named_first_and_alone(self):
        for argument in ("http::Query<Filter>", "http::Form<Filter>"):
            code = ("void add(http::Router& routes) {\n"
                    f'  routes.post("/", []({argument}) {{ return http::Status::ok; }});\n}}\n')
            self.assert_one_error(code, "a field of a query or a form is a number, a bool",
                                  r"Filter.*Secret.*hidden")

    def test_a_header_without_a_text_is_named_first_and_alone(self):
        for argument in ('http::Header<"X-A", Secret>', 'http::Cookie<"a", Secret>',
                         'std::optional<http::Header<"X-A", Secret>>'):
            code = ("void add(http::Router& routes) {\n"
                    f"  routes.get(\"/\", []({argument}) {{ return http::Status::ok; }});\n}}\n")
            self.assert_one_error(code, "a header or a cookie is read as a number, a bool",
                                  r"Secret")

    def assert_one_error(self, code, words, names):
        for compiler in self.each_compiler():
            status, text = compiled(compiler, code)
            self.assertNotEqual(status, 0)
            errors = [line for line in text.splitlines() if " error: " in line]
            self.assertEqual(len(errors), 1, text)
            self.assertIn(words, errors[0])
            self.assertRegex(text, names)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
