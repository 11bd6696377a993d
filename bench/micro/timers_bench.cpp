// Measures starting, cancelling and firing one timer, with few and with a million armed timers.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

#include "weir/loop/detail/timers.hpp"

namespace weir {
namespace {

constexpr Instant epoch{std::chrono::hours(1)};
constexpr std::uint64_t spread_ns = 60'000'000'000;  // deadlines within a minute

struct CountingTimer : loop::Timer {
  CountingTimer() : loop::Timer([](loop::Timer&) { ++fired; }) {}
  static inline std::uint64_t fired = 0;
};

/// A wheel with armed timers, and a source of random durations.
struct Wheel {
  explicit Wheel(std::int64_t armed) : background(static_cast<std::size_t>(armed)) {
    std::mt19937_64 random(1);
    for (Duration& length : lengths) {
      length = Duration(static_cast<std::int64_t>(random() % spread_ns));
    }
    for (std::size_t i = 0; i < background.size(); ++i) {
      wheel.start(background[i], epoch + lengths[i % lengths.size()] + Duration(1h));
    }
  }
  Duration length() noexcept { return lengths[next++ % lengths.size()]; }

  loop::TimerWheel wheel{epoch};
  std::vector<CountingTimer> background;
  std::vector<Duration> lengths = std::vector<Duration>(4096);
  std::size_t next = 0;
};

void start_and_cancel(benchmark::State& state) {
  Wheel armed(state.range(0));
  CountingTimer timer;
  for (auto _ : state) {
    armed.wheel.start(timer, epoch + armed.length());
    timer.cancel();
  }
}
BENCHMARK(start_and_cancel)->Arg(0)->Arg(1'000'000);

void restart(benchmark::State& state) {
  Wheel armed(state.range(0));
  std::vector<CountingTimer> timers(1024);
  std::size_t next = 0;
  for (auto _ : state) {
    armed.wheel.start(timers[next++ % timers.size()], epoch + armed.length());
  }
}
BENCHMARK(restart)->Arg(0)->Arg(1'000'000);

/// Starts range(0) timers, cancels every `cancel_every`th timer (0: none), and fires the rest in
/// steps of a millisecond.
void start_and_fire(benchmark::State& state, std::size_t cancel_every) {
  std::vector<CountingTimer> timers(static_cast<std::size_t>(state.range(0)));
  Wheel lengths(0);
  Instant now = epoch;
  for (auto _ : state) {
    for (CountingTimer& timer : timers) {
      lengths.wheel.start(timer, now + lengths.length() + Duration(lengths.next));
    }
    for (std::size_t i = 0; cancel_every != 0 && i < timers.size(); i += cancel_every) {
      timers[i].cancel();
    }
    while (lengths.wheel.armed() != 0) {
      now += std::chrono::milliseconds(1);
      lengths.wheel.advance(now);
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  benchmark::DoNotOptimize(CountingTimer::fired);
}
BENCHMARK_CAPTURE(start_and_fire, all, 0)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(start_and_fire, half, 2)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weir
