// Measures an event to its handler: alone, in batches, between events of another type, and with
// statistics. (bench/inside/b9.cpp measures large batches and chains.)
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

std::unique_ptr<Loop> make_loop(loop::Platform& platform) {
  return Loop::make(platform, {.backend = BackendChoice::epoll}).value();
}

template <class T>
void must_publish(CoreEvents& events, std::uint64_t value) {
  if (!events.publish(T{value})) std::abort();
}

Task<> push(CoreEvents& events, std::uint64_t count) {
  for (std::uint64_t value = 0; value < count; ++value) must_publish<Sample>(events, value);
  co_return;
}

/// A task publishes range(0) events and then yields to its loop. With 0 events it measures only the
/// task.
void from_a_task(benchmark::State& state) {
  OsPlatform platform;
  EventBus bus(1);
  const auto loop = make_loop(platform);
  CoreEvents& events = bus.local(*loop);
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

/// Alternates two types, so that each event has another type than the previous event.
void types_in_turns(benchmark::State& state) {
  OsPlatform platform;
  EventBus bus(1);
  const auto loop = make_loop(platform);
  CoreEvents& events = bus.local(*loop);
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

/// Measures the cost of EventStatistics, mainly two readings of the clock.
void with_statistics(benchmark::State& state) {
  OsPlatform platform;
  EventBus bus(1);
  const auto loop = make_loop(platform);
  CoreEvents& events = bus.local(*loop);
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
