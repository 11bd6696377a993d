// Measures the metrics of a request, from its begin to the histogram, in batches of a turn.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "weir/http/server/detail/request_recorder.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/telemetry/metrics/server_metrics.hpp"

namespace weir {
namespace {

Loop& loop() {
  static OsPlatform platform;
  static const std::unique_ptr<Loop> made =
      Loop::make(platform, {.backend = BackendChoice::epoll}).value();
  return *made;
}

/// The argument is the number of routes. `turns` is the number of turns in which the requests of a
/// batch have begun.
void count_requests(benchmark::State& state, std::int64_t turns) {
  static telemetry::ServerMetrics metrics;
  static http::RequestRecorder recorder(loop(), metrics);
  std::vector<const http::RouteName*> routes;
  for (std::int64_t number = 0; number < state.range(0); ++number) {
    routes.push_back(&http::RouteName::of("/resource" + std::to_string(number) + "/{id}"));
  }
  std::size_t route = 0;
  std::int64_t turn = 0;
  for (auto _ : state) {
    const auto earlier = std::chrono::microseconds(200 * turn);
    recorder.end({.begin = recorder.begin() - earlier,
                  .route = routes[route],
                  .status = http::Status::ok,
                  .method = http::Method::get,
                  .complete = true});
    if (++route == routes.size()) route = 0;
    if (++turn == turns) turn = 0;
  }
}

void requests_of_one_turn(benchmark::State& state) {
  count_requests(state, 1);
}
void requests_of_many_turns(benchmark::State& state) {
  count_requests(state, 40);
}

BENCHMARK(requests_of_one_turn)->Arg(1)->Arg(50)->Arg(300);
BENCHMARK(requests_of_many_turns)->Arg(1)->Arg(50)->Arg(300);

}  // namespace
}  // namespace weir
