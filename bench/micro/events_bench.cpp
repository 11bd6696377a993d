// B9: 5,000,000 events of 8 bytes are pushed, and then drained without handlers, with every page
// faulted in anew; and what one event costs on its way to one handler, alone and in company.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "weir/app/event_bus.hpp"
#include "weir/app/event_statistics.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os_host.hpp"
#include "weir/task/run.hpp"

namespace weir {
namespace {

constexpr std::uint64_t pushed = 5'000'000;

struct Sample {
  std::uint64_t value;
};
struct OtherSample {
  std::uint64_t value;
};

/// Bytes that the process has had at most.
double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

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

void drain(Loop& loop, const Events& events) {
  while (events.queued() != 0) loop.turn(Instant::min());
}

/// The loop, and with it its memory, is made anew for each round.
void push_then_drain(benchmark::State& state) {
  OsHost host;
  const double before = peak_bytes();
  for (auto _ : state) {
    EventBus bus(1, {.queued_max = pushed});
    const auto loop = make_loop(host);
    Events& events = bus.local(*loop);
    run(*loop, push(events, pushed));
    drain(*loop, events);
    if (events.counters().handled.value() != pushed) std::abort();
  }
  const auto count = static_cast<double>(pushed);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(pushed));
  state.counters["bytes_per_event"] = (peak_bytes() - before) / count;
}

/// Each handler call publishes the next event: one at a time, one behind the other.
void one_after_the_other(benchmark::State& state) {
  OsHost host;
  EventBus bus(1);
  const auto loop = make_loop(host);
  Events& events = bus.local(*loop);
  constexpr std::uint64_t count = 1'000'000;
  const auto handler = events.on([&](const Sample& sample) {
    if (sample.value != 0) must_publish<Sample>(events, sample.value - 1);
  });
  for (auto _ : state) {
    must_publish<Sample>(events, count - 1);
    drain(*loop, events);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
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

BENCHMARK(push_then_drain)->Unit(benchmark::kMillisecond);
BENCHMARK(one_after_the_other)->Unit(benchmark::kMillisecond);
BENCHMARK(from_a_task)->Arg(0)->Arg(1)->Arg(64)->Arg(1000);
BENCHMARK(types_in_turns);
BENCHMARK(with_statistics);

}  // namespace
}  // namespace weir
