// What an event costs on its way to a handler: alone and in company, among others of another type,
// and with statistics. (Many at once, and one behind the other: bench/inside/b9.cpp.)
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "weir/event/bus.hpp"
#include "weir/event/statistics.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/task/detail/run.hpp"

namespace weir {
namespace {

struct Sample {
  std::uint64_t value;
};
struct OtherSample {
  std::uint64_t value;
};

std::unique_ptr<Loop> make_loop(Host& host) {
  return Loop::make(host, {.backend = BackendChoice::epoll}).value();
}

template <class T>
void must_publish(Events& events, std::uint64_t value) {
  if (!events.publish(T{value})) std::abort();
}

Task<> push(Events& events, std::uint64_t count) {
  for (std::uint64_t value = 0; value < count; ++value) must_publish<Sample>(events, value);
  co_return;
}

/// So many at a time are published by a task, which then lets its loop go on. With none it is the
/// cost of that alone.
void from_a_task(benchmark::State& state) {
  OsHost host;
  EventBus bus(1);
  const auto loop = make_loop(host);
  Events& events = bus.local(*loop);
  std::uint64_t sum = 0;
  const auto handler = events.on([&](const Sample& sample) { sum += sample.value; });
  const std::int64_t at_once = state.range(0);
  const auto body = [&]() -> Task<> {
    for (auto _ : state) {
      for (std::int64_t each = 0; each < at_once; ++each) must_publish<Sample>(events, 1);
      co_await yield();
    }
  };
  run(*loop, body());
  if (sum != static_cast<std::uint64_t>(state.iterations() * at_once)) std::abort();
  state.SetItemsProcessed(state.iterations() * at_once);
}

/// Two types in turns, so that each event is of another type than the one before.
void types_in_turns(benchmark::State& state) {
  OsHost host;
  EventBus bus(1);
  const auto loop = make_loop(host);
  Events& events = bus.local(*loop);
  std::uint64_t sum = 0;
  const auto one = events.on([&](const Sample& sample) { sum += sample.value; });
  const auto other = events.on([&](const OtherSample& sample) { sum += sample.value; });
  constexpr std::int64_t pairs = 500;
  const auto body = [&]() -> Task<> {
    for (auto _ : state) {
      for (std::int64_t each = 0; each < pairs; ++each) {
        must_publish<Sample>(events, 1);
        must_publish<OtherSample>(events, 1);
      }
      co_await yield();
    }
  };
  run(*loop, body());
  if (sum != static_cast<std::uint64_t>(state.iterations() * pairs * 2)) std::abort();
  state.SetItemsProcessed(state.iterations() * pairs * 2);
}

/// What EventStatistics costs where it is used: two looks at the clock, mostly.
void with_statistics(benchmark::State& state) {
  OsHost host;
  EventBus bus(1);
  const auto loop = make_loop(host);
  Events& events = bus.local(*loop);
  const EventStatistics statistics(events);
  const auto handler = events.on([](const Sample& sample) { benchmark::DoNotOptimize(sample); });
  constexpr std::int64_t at_once = 1000;
  const auto body = [&]() -> Task<> {
    for (auto _ : state) {
      co_await push(events, at_once);
      co_await yield();
    }
  };
  run(*loop, body());
  state.SetItemsProcessed(state.iterations() * at_once);
}

BENCHMARK(from_a_task)->Arg(0)->Arg(1)->Arg(64)->Arg(1000);
BENCHMARK(types_in_turns);
BENCHMARK(with_statistics);

}  // namespace
}  // namespace weir
