// Measures a task: creating, running and destroying its frame, and the combinators around it.
#include <benchmark/benchmark.h>

#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/task.hpp"
#include "weir/task/timeout.hpp"

namespace weir {
namespace {

struct Bench {
  OsPlatform platform;
  std::unique_ptr<Loop> loop = Loop::make(platform, {.backend = BackendChoice::epoll}).value();
};

[[gnu::noinline]] Task<int> one() {
  co_return 1;
}

[[gnu::noinline]] Task<Result<int>> one_or_error() {
  co_return 1;
}

void await_a_task(benchmark::State& state) {
  Bench bench;
  const auto body = [](benchmark::State& of) -> Task<> {
    int sum = 0;
    for (auto _ : of) sum += co_await one();
    benchmark::DoNotOptimize(sum);
  };
  run(*bench.loop, body(state));
}
BENCHMARK(await_a_task);

void await_a_result(benchmark::State& state) {
  Bench bench;
  const auto body = [](benchmark::State& of) -> Task<> {
    int sum = 0;
    for (auto _ : of) {
      const Result<int> value = co_await one_or_error();
      sum += *value;
    }
    benchmark::DoNotOptimize(sum);
  };
  run(*bench.loop, body(state));
}
BENCHMARK(await_a_result);

void spawn_a_task(benchmark::State& state) {
  Bench bench;
  const auto nothing = []() -> Task<> { co_return; };
  const auto body = [&](Scope& scope) -> Task<> {
    for (auto _ : state) scope.spawn(nothing());
    co_return;
  };
  static_cast<void>(run(*bench.loop, with_scope(body)));
}
BENCHMARK(spawn_a_task);

void yield_to_the_loop(benchmark::State& state) {
  Bench bench;
  const auto body = [](benchmark::State& of) -> Task<> {
    for (auto _ : of) co_await yield();
  };
  run(*bench.loop, body(state));
}
BENCHMARK(yield_to_the_loop);

void timeout_that_does_not_pass(benchmark::State& state) {
  Bench bench;
  const auto body = [](benchmark::State& of) -> Task<> {
    int sum = 0;
    for (auto _ : of) {
      const Result<int> value = co_await timeout(1s, one_or_error());
      sum += *value;
    }
    benchmark::DoNotOptimize(sum);
  };
  run(*bench.loop, body(state));
}
BENCHMARK(timeout_that_does_not_pass);

void open_a_scope(benchmark::State& state) {
  Bench bench;
  const auto empty = [](Scope&) -> Task<int> { co_return 1; };
  const auto body = [&]() -> Task<> {
    for (auto _ : state) {
      const Result<int> value = co_await with_scope(empty);
      benchmark::DoNotOptimize(*value);
    }
  };
  run(*bench.loop, body());
}
BENCHMARK(open_a_scope);

}  // namespace
}  // namespace weir
