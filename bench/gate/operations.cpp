// The operations of the gate: small parts of every request, each repeated under callgrind.
// bench/gate.py reads the number of instructions between measure() and the operation.
#include <gnu/libc-version.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/gate/arguments.hpp"
#include "bench/gate/operation.hpp"
#include "bench/gate/spans.hpp"
#include "weir/http/detail/h1/chunked.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/message/detail/date.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/detail/request_recorder.hpp"
#include "weir/log/logger.hpp"
#include "weir/loop/detail/inbox.hpp"
#include "weir/loop/detail/timers.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"
#include "weir/telemetry/metrics/metrics.hpp"
#include "weir/telemetry/metrics/server_metrics.hpp"

namespace weir::gate {
namespace {

// ---- Heads --------------------------------------------------------------------------------------

constexpr std::string_view small_head = "GET / HTTP/1.1\r\nHost: bench\r\n\r\n";
constexpr std::string_view browser_head =
    "GET /articles/2024/11/a-title-of-many-words?page=2&sort=date HTTP/1.1\r\n"
    "Host: www.example.org\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8\r\n"
    "Accept-Language: en-US,en;q=0.5\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "Connection: keep-alive\r\n"
    "Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n"
    "Upgrade-Insecure-Requests: 1\r\n"
    "Cache-Control: max-age=0\r\n\r\n";

void parse(std::string_view text, unsigned times) {
  http::HostLineCache host_line_cache;  // one per core, shared by its connections
  http::HeadParser parser({}, &host_line_cache);
  http::RequestHead head;
  for (; times != 0; --times) {
    use(text);
    const http::ParseResult result = parser.parse(text, head);
    expect(result.consumed == text.size(), "parsing");
  }
}

[[gnu::noinline]] void parse_small_head(unsigned times) {
  parse(small_head, times);
}

[[gnu::noinline]] void parse_browser_head(unsigned times) {
  parse(browser_head, times);
}

// ---- Chunks -------------------------------------------------------------------------------------

/// One whole body: twelve chunks of 1 to 2048 bytes.
std::string chunked_body() {
  std::string body;
  for (std::size_t size = 1; size <= 2048; size *= 2) {
    std::array<char, http::chunk_size_max> line;
    body.append(line.data(), http::write_chunk_size(size, line.data()));
    body.append(size, 'x').append(http::chunk_end);
  }
  return body.append(http::last_chunk);
}

[[gnu::noinline]] void decode_chunk(unsigned times) {
  static const std::string body = chunked_body();
  constexpr unsigned chunks = 12;
  http::ChunkedDecoder decoder;
  for (unsigned left = 0; times != 0; --times) {
    static std::string_view input;
    if (left == 0) {
      decoder.reset();
      input = body;
      left = chunks;
    }
    for (;;) {
      const auto step = decoder.next(input);
      input.remove_prefix(step.consumed);
      if (step.kind == http::ChunkedDecoder::Step::Kind::data) break;
      expect(step.kind == http::ChunkedDecoder::Step::Kind::need_more, "decoding");
    }
    if (--left == 0) expect(decoder.next(input).consumed == input.size(), "the last chunk");
  }
}

// ---- Routes -------------------------------------------------------------------------------------

http::Response nothing() {
  return http::Status::ok;
}
http::Response one_path_param(std::string_view) {
  return http::Status::ok;
}
http::Response two_path_params(std::string_view, int) {
  return http::Status::ok;
}

/// A service of a hundred routes, and a parsed request head for one of them.
class RouteMatchFixture {
 public:
  explicit RouteMatchFixture(std::string_view path)
      : text_("GET " + std::string(path) + " HTTP/1.1\r\nHost: bench\r\n\r\n") {
    routes_.get("/", nothing);
    for (unsigned number = 0; number < 33; ++number) {
      const std::string base = "/api/resource" + std::to_string(number);
      const auto add = [&](const std::string& pattern, auto handler) {
        expect(routes_.get(http::Pattern::parse(pattern).value(), handler).has_value(), "adding");
      };
      add(base, nothing);
      add(base + "/{name}", one_path_param);
      add(base + "/{name}/items/{item}", two_path_params);
    }
    http::HeadParser parser;
    expect(parser.parse(text_, head_).kind == http::ParseResult::Kind::complete, "parsing");
  }

  void match(unsigned times) {
    for (; times != 0; --times) {
      routes_.match(head_, match_);
      expect(match_.found(), "matching");
    }
  }

 private:
  std::string text_;
  http::Router routes_;
  http::RequestHead head_;
  http::RouteMatch match_;
};

[[gnu::noinline]] void match_literal_route(unsigned times) {
  static RouteMatchFixture fixture("/api/resource17");
  fixture.match(times);
}

[[gnu::noinline]] void match_path_params(unsigned times) {
  static RouteMatchFixture fixture("/api/resource17/anybody/items/1234");
  fixture.match(times);
}

// ---- Responses ----------------------------------------------------------------------------------

[[gnu::noinline]] void write_response(unsigned times) {
  static const http::Date date(WallTime{});
  http::ResponseHead head;
  head.content_length = 1234;
  head.date = &date;
  head.content_type = http::json_type;
  std::array<char, 1024> out;
  expect(http::head_size_max(head) <= out.size(), "the size of a head");
  for (; times != 0; --times) {
    use(head);
    const char* end = http::write_head(head, out.data());
    use(end);
    use(out);
  }
}

// ---- Tasks --------------------------------------------------------------------------------------

[[gnu::noinline]] Task<int> one() {
  co_return 1;
}

Task<> await_tasks(unsigned times) {
  int sum = 0;
  for (; times != 0; --times) sum += co_await one();
  use(sum);
}

[[gnu::noinline]] void run_task(unsigned times) {
  run(loop(), await_tasks(times));
}

Task<> spawn_tasks(Scope& scope, unsigned times) {
  for (; times != 0; --times) scope.spawn(await_tasks(0));
  co_return;
}

[[gnu::noinline]] void spawn_task(unsigned times) {
  expect(run(loop(), with_scope(spawn_tasks, times)).has_value(), "a scope");
}

// ---- Timers and the inbox -----------------------------------------------------------------------

[[gnu::noinline]] void start_and_cancel_timer(unsigned times) {
  constexpr Instant epoch{std::chrono::hours(1)};
  static loop::TimerWheel wheel(epoch);
  loop::Timer timer([](loop::Timer&) {});
  for (unsigned step = 1; step <= times; ++step) {
    wheel.start(timer, epoch + std::chrono::microseconds(step * 7919));
    timer.cancel();
  }
}

struct Message : loop::Runnable {
  Message() : loop::Runnable([](loop::Runnable& self) { ++static_cast<Message&>(self).runs; }) {}
  unsigned runs = 0;
};

/// Measures the way from the producer's push to the consumer's call, in batches of eight.
[[gnu::noinline]] void hop_through_inbox(unsigned times) {
  static loop::Inbox inbox;
  static std::array<Message, 8> messages;
  for (; times >= messages.size(); times -= static_cast<unsigned>(messages.size())) {
    for (Message& message : messages) expect(!inbox.push(message), "an inbox that is awake");
    loop::RunQueue arrived = inbox.take();
    while (loop::Runnable* const message = arrived.pop()) message->run();
  }
}

// ---- Logs ---------------------------------------------------------------------------------------

/// Measures a record below the level of its logger, including the surrounding loop.
[[gnu::noinline]] void skip_log_record(unsigned times) {
  static Logger log;
  std::string_view path = "/";
  for (; times != 0; --times) {
    use(log);
    use(path);
    log.debug("a request is done", field("path", path), field("status", times));
  }
}

// ---- Metrics ------------------------------------------------------------------------------------

[[gnu::noinline]] void add_counter(unsigned times) {
  static const telemetry::Counter counter("gate.counter");
  for (; times != 0; --times) counter.add();
}

[[gnu::noinline]] void record_in_histogram(unsigned times) {
  static const telemetry::Histogram histogram("gate.histogram");
  double value = 0.0004;
  for (; times != 0; --times) {
    use(value);
    histogram.record(value);
  }
}

/// Finds the series of two label values that were used before.
[[gnu::noinline]] void add_labelled_counter(unsigned times) {
  static const telemetry::Counter counter("gate.labels", {.labels = {"product", "region"}});
  std::string_view product = "green tea";
  for (; times != 0; --times) {
    use(product);
    counter.with(product, "eu").add();
  }
}

/// Measures the record of a request, from its end to the histogram, in batches of 64.
[[gnu::noinline]] void count_request(unsigned times) {
  static telemetry::ServerMetrics metrics;
  static http::RequestRecorder recorder(loop(), metrics);
  static const http::RouteName& route = http::RouteName::of("/users/{id}");
  http::Status status = http::Status::ok;
  for (; times != 0; --times) {
    use(status);
    recorder.end({.begin = recorder.begin(),
                  .route = &route,
                  .status = status,
                  .method = http::Method::get,
                  .complete = true});
  }
}

/// Measures the record of a request that shares neither its route nor its turn with the one before.
[[gnu::noinline]] void count_mixed_request(unsigned times) {
  static telemetry::ServerMetrics metrics;
  static http::RequestRecorder recorder(loop(), metrics);
  static const auto routes = [] {
    std::array<const http::RouteName*, 50> names;
    for (std::size_t index = 0; index < names.size(); ++index) {
      names[index] = &http::RouteName::of("/resource" + std::to_string(index) + "/{id}");
    }
    return names;
  }();
  std::size_t next = 0;
  for (; times != 0; --times) {
    const auto earlier = std::chrono::microseconds(50 * next);
    recorder.end({.begin = recorder.begin() - earlier,
                  .route = routes[next],
                  .status = http::Status::ok,
                  .method = http::Method::get,
                  .complete = true});
    next = next + 1 == routes.size() ? 0 : next + 1;
  }
}

// ---- All operations -----------------------------------------------------------------------------

struct Operation {
  const char* name;
  void (*run)(unsigned times);
};
constexpr Operation operations[]{
    {"parse_small_head", parse_small_head},
    {"parse_browser_head", parse_browser_head},
    {"decode_chunk", decode_chunk},
    {"match_literal_route", match_literal_route},
    {"match_path_params", match_path_params},
    {"query_argument", query_argument},
    {"query_by_hand", query_by_hand},
    {"form_argument", form_argument},
    {"form_by_hand", form_by_hand},
    {"header_argument", header_argument},
    {"header_by_hand", header_by_hand},
    {"cookie_argument", cookie_argument},
    {"cookie_by_hand", cookie_by_hand},
    {"json_argument", json_argument},
    {"json_by_hand", json_by_hand},
    {"write_response", write_response},
    {"run_task", run_task},
    {"spawn_task", spawn_task},
    {"start_and_cancel_timer", start_and_cancel_timer},
    {"hop_through_inbox", hop_through_inbox},
    {"skip_log_record", skip_log_record},
    {"trace_unsampled_request", trace_unsampled_request},
    {"trace_followed_request", trace_followed_request},
    {"record_sampled_span", record_sampled_span},
    {"add_counter", add_counter},
    {"record_in_histogram", record_in_histogram},
    {"add_labelled_counter", add_labelled_counter},
    {"count_request", count_request},
    {"count_mixed_request", count_mixed_request},
};
constexpr unsigned times = 1200;  // a multiple of the batches above

/// The part of the baseline's key that names the compiler: it changes the number of instructions.
#if defined(__clang__)
constexpr std::string_view compiler = "clang-" __clang_version__;
#else
constexpr std::string_view compiler = "gcc-" __VERSION__;
#endif

#if defined(__x86_64__)
/// The CPU features under valgrind. The C library selects its copies and comparisons by them.
std::string features() {
  std::string found = "x86_64";
  if (__builtin_cpu_supports("sse4.2")) found += "-sse4.2";
  if (__builtin_cpu_supports("avx2")) found += "-avx2";
  if (__builtin_cpu_supports("bmi2")) found += "-bmi2";
  if (__builtin_cpu_supports("avx512f")) found += "-avx512f";
  return found;
}
#else
std::string features() {
  return "other";
}
#endif

[[gnu::noinline]] void warm_up(const Operation& operation) {
  operation.run(times);
}

[[gnu::noinline]] void measure(const Operation& operation) {
  operation.run(times);
}

}  // namespace
}  // namespace weir::gate

int main() {
  using namespace weir::gate;
  const std::string version(compiler.substr(0, compiler.find(' ')));
  std::printf("key %s_glibc-%s_%s\n", version.c_str(), gnu_get_libc_version(), features().c_str());
  for (const Operation& operation : operations) {
    warm_up(operation);
    measure(operation);
    std::printf("operation %s %u\n", operation.name, times);
  }
}
