// Measures a scrape of 10,000 series: the time of the scrape, and the longest turn of the loop that
// answers it. A client on the other core asks for the page 50 times. Prints one line of JSON per
// format. "first" is the longest turn of the first scrape, "longest" that of all others. Each also
// in CPU time: another program that takes the core makes only the time of the clock longer.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>
#include <utility>

#include "weir/http.hpp"
#include "weir/loop/loop.hpp"
#include "weir/runtime.hpp"
#include "weir/task/sleep.hpp"
#include "weir/telemetry.hpp"

namespace weir {
namespace {

constexpr int series = 10'000;
constexpr int scrapes = 50;
constexpr std::uint16_t port = 9464;

/// The longest turn, by the clock and in CPU time, in milliseconds.
struct Longest {
  double time = 0;
  double cpu = 0;
};

/// Finds the longest turn of a loop between two calls of take().
/// Threads: the loop's; take() any.
class LongestTurn : TurnObserver {
 public:
  explicit LongestTurn(Loop& loop)
      : TurnObserver([](TurnObserver& self) { static_cast<LongestTurn&>(self).on_turn(); }),
        loop_(loop),
        ran_(loop.counters().run_time.value()),
        cpu_(cpu_time()) {
    loop.observe_turn_end(*this);
  }
  Longest take() noexcept {
    return {static_cast<double>(longest_.exchange(0)) * 1e-6,
            static_cast<double>(longest_cpu_.exchange(0)) * 1e-6};
  }

 private:
  static std::uint64_t cpu_time() noexcept {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
  }
  static void raise(std::atomic<std::uint64_t>& most, std::uint64_t value) noexcept {
    if (value > most.load()) most.store(value);
  }
  /// The CPU time has that of the wait before the turn.
  void on_turn() {
    const std::uint64_t ran = loop_.counters().run_time.value();
    const std::uint64_t cpu = cpu_time();
    raise(longest_, ran - ran_);
    raise(longest_cpu_, cpu - cpu_);
    ran_ = ran;
    cpu_ = cpu;
    loop_.observe_turn_end(*this);
  }
  Loop& loop_;
  std::uint64_t ran_;
  std::uint64_t cpu_;
  std::atomic<std::uint64_t> longest_{0};
  std::atomic<std::uint64_t> longest_cpu_{0};
};

Task<Result<>> scrape(http::Client& client, const std::string& accept, const char* name,
                      LongestTurn& turns) {
  Longest first;
  turns.take();
  double best = 1e9;
  double total = 0;
  std::size_t bytes = 0;
  for (int count = 0; count < scrapes; ++count) {
    const auto begin = std::chrono::steady_clock::now();
    http::ClientRequest request(http::Method::get,
                                "http://127.0.0.1:" + std::to_string(port) + "/metrics");
    request.set_header("Accept", accept);
    WEIR_CO_TRY(auto answer, co_await client.send(std::move(request)));
    WEIR_CO_TRY(const std::string body, co_await answer.body());
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    bytes = body.size();
    best = std::min(best, took.count());
    total += took.count();
    if (count == 0) first = turns.take();
  }
  const Longest longest = turns.take();
  std::printf(
      "{\"format\": \"%s\", \"bytes\": %zu, \"best_ms\": %.2f, \"mean_ms\": %.2f, "
      "\"first_turn_ms\": %.3f, \"first_turn_cpu_ms\": %.3f, \"longest_turn_ms\": %.3f, "
      "\"longest_turn_cpu_ms\": %.3f}\n",
      name, bytes, best, total / scrapes, first.time, first.cpu, longest.time, longest.cpu);
  co_return {};
}

int measure() {
  const telemetry::Counter counter(
      "bench.series", {.help = "A series.", .labels = {"number"}, .label_sets_max = series});
  for (int number = 0; number < series; ++number) counter.with(std::to_string(number)).add();
  http::Router routes;
  telemetry::mount_metrics(routes).value();
  const RuntimeOptions options{.cores = 2, .announce = false};
  Runtime runtime(options);
  LongestTurn* longest = nullptr;
  return runtime.run_on_each_core([&](Scope& scope) -> Task<Result<>> {
    Loop& loop = scope.loop();
    if (loop.core() == 0) {
      LongestTurn observer(loop);
      longest = &observer;
      const http::ServeOptions serving{.endpoint = os::Address::loopback(port)};
      co_return co_await http::serve(scope, routes, serving);
    }
    std::ignore = co_await sleep(std::chrono::milliseconds(200));
    http::Client client;
    // The first connection of a core allocates the buffers of io_uring, which takes a millisecond.
    WEIR_CO_TRY(co_await client.get("http://127.0.0.1:" + std::to_string(port) + "/none"));
    const char* const formats[][2] = {
        {"text", "text/plain"},
        {"openmetrics", "application/openmetrics-text"},
        {"protobuf",
         "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"
         "encoding=delimited"}};
    for (const auto& format : formats) {
      WEIR_CO_TRY(co_await scrape(client, format[1], format[0], *longest));
    }
    runtime.stop();
    co_return {};
  });
}

}  // namespace
}  // namespace weir

int main() {
  return weir::measure();
}
