// Measures how long the router takes to match a request: hello's routes, 10 and 10,000 routes,
// escapes, expressions and misses.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/limits.hpp"

namespace weir::http {
namespace {

Response nothing() {
  return Status::ok;
}
Response one(std::string_view) {
  return Status::ok;
}
Response two(std::string_view, std::string_view) {
  return Status::ok;
}

/// A parsed head and the text to which it refers.
class Head {
 public:
  explicit Head(std::string_view line)
      : text_(std::string(line) + " HTTP/1.1\r\nHost: bench\r\n\r\n") {
    HeadParser parser{HeadLimits()};
    if (parser.parse(text_, head_).kind != ParseResult::Kind::complete) std::abort();
  }
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;
  const RequestHead& head() const { return head_; }

 private:
  std::string text_;
  RequestHead head_;
};

void look_up(benchmark::State& state, const Router& router, const std::vector<std::string>& lines,
             bool found = true) {
  std::vector<std::unique_ptr<Head>> heads;
  for (const std::string& line : lines) heads.push_back(std::make_unique<Head>(line));
  RouteMatch match;
  std::size_t next = 0;
  for (auto _ : state) {
    router.match(heads[next]->head(), match);
    benchmark::DoNotOptimize(&match);
    benchmark::ClobberMemory();
    if (++next == heads.size()) next = 0;
    if (match.found() != found) return state.SkipWithError("another answer");
  }
}

void hello(benchmark::State& state, const char* line) {
  Router router;
  router.get("/", nothing);
  router.get("/hello/{name}", one);
  router.post("/users/{user}/notes", one);
  look_up(state, router, {line});
}
BENCHMARK_CAPTURE(hello, root, "GET /");
BENCHMARK_CAPTURE(hello, capture, "GET /hello/world");
BENCHMARK_CAPTURE(hello, escaped, "GET /hello/w%6Frld");
BENCHMARK_CAPTURE(hello, longer, "POST /users/12345/notes");

std::string resource(std::int64_t number) {
  return "/api/v" + std::to_string(number % 3) + "/resource" + std::to_string(number);
}

/// Half of the routes are literal, and half end with path parameters. Requests 64 of them in turn.
void many(benchmark::State& state, bool capture) {
  Router router;
  std::vector<std::string> lines;
  const std::int64_t count = state.range(0);
  for (std::int64_t number = 0; number < count / 2; ++number) {
    const std::string path = resource(number);
    if (!router.get(Pattern::parse(path).value(), nothing)) std::abort();
    if (!router.get(Pattern::parse(path + "/{id}/items/{item}").value(), two)) std::abort();
  }
  for (std::int64_t number = 0; number < 64; ++number) {
    const std::string path = resource(number * 7919 % (count / 2));
    lines.push_back("GET " + path + (capture ? "/1234/items/abc" : ""));
  }
  look_up(state, router, lines);
}
BENCHMARK_CAPTURE(many, literal, false)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000);
BENCHMARK_CAPTURE(many, capture, true)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000);

void miss(benchmark::State& state, const char* line) {
  Router router;
  router.get("/", nothing);
  router.get("/hello/{name}", one);
  look_up(state, router, {line}, false);
}
BENCHMARK_CAPTURE(miss, path, "GET /hello/world/more");
BENCHMARK_CAPTURE(miss, method, "POST /hello/world");

void expression(benchmark::State& state) {
  Router router;
  router.get("/orders/{id:[0-9]+}", one);
  look_up(state, router, {"GET /orders/123456"});
}
BENCHMARK(expression);

void expression_groups(benchmark::State& state) {
  Router router;
  router.get("/days/{day:([0-9]+)-([0-9]+)}",
             [](std::string_view, int, int) { return Status::ok; });
  look_up(state, router, {"GET /days/2024-11"});
}
BENCHMARK(expression_groups);

}  // namespace
}  // namespace weir::http
