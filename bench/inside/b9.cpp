// B9: pushes 5,000,000 events of 8 bytes and drains them without handlers, with fresh pages. Also
// measures an event to one handler on the same core: each handler publishes the next event, or a
// task publishes a thousand events at a time. Prints one line of JSON per round: millions per
// second, bytes of memory per queued event, and nanoseconds per event.
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "bench/inside/child_process.hpp"
#include "weir/event/bus.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/machine/affinity.hpp"
#include "weir/task/detail/run.hpp"

namespace weir {
namespace {

constexpr std::uint64_t pushed = 5'000'000;
constexpr std::uint64_t handled = 2'000'000;

using Clock = std::chrono::steady_clock;

struct Sample {
  std::uint64_t value;
};

/// The peak resident size of the process in bytes.
double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

std::unique_ptr<Loop> make_loop(loop::Platform& platform) {
  static_cast<void>(os::pin_current_thread(os::allowed_cpus().front()));
  return Loop::make(platform, {.backend = BackendChoice::epoll}).value();
}

Task<> push(CoreEvents& events, std::uint64_t count) {
  for (std::uint64_t value = 0; value < count; ++value)
    require(bool(events.publish(Sample{value})));
  co_return;
}

void drain(Loop& loop, const CoreEvents& events) {
  while (events.queued() != 0) loop.turn(Instant::min());
}

struct Queued {
  double millions = 0;  // events pushed and drained per second
  double bytes_each = 0;
};

Queued push_then_drain() {
  OsPlatform platform;
  EventBus bus(1, {.capacity = pushed});
  const auto loop = make_loop(platform);
  CoreEvents& events = bus.local(*loop);
  const double before = peak_bytes();
  const auto begun = Clock::now();
  run(*loop, push(events, pushed));
  drain(*loop, events);
  const std::chrono::duration<double> took = Clock::now() - begun;
  require(events.counters().handled.value() == pushed);
  const auto count = static_cast<double>(pushed);
  return {count / took.count() / 1e6, (peak_bytes() - before) / count};
}

double nanoseconds_each(Clock::time_point begun) {
  const std::chrono::duration<double, std::nano> took = Clock::now() - begun;
  return took.count() / static_cast<double>(handled);
}

/// Each handler publishes the next event.
double one_after_the_other() {
  OsPlatform platform;
  EventBus bus(1);
  const auto loop = make_loop(platform);
  CoreEvents& events = bus.local(*loop);
  const auto handler = events.on([&](const Sample& sample) {
    if (sample.value != 0) require(bool(events.publish(Sample{sample.value - 1})));
  });
  const auto begun = Clock::now();
  require(bool(events.publish(Sample{handled - 1})));
  drain(*loop, events);
  return nanoseconds_each(begun);
}

/// A task publishes 1,000 events, yields to the loop, and repeats.
double a_thousand_at_a_time() {
  OsPlatform platform;
  EventBus bus(1);
  const auto loop = make_loop(platform);
  CoreEvents& events = bus.local(*loop);
  std::uint64_t sum = 0;
  const auto handler = events.on([&](const Sample& sample) { sum += sample.value; });
  const auto body = [&]() -> Task<> {
    for (std::uint64_t done = 0; done < handled; done += 1000) {
      for (int i = 0; i < 1000; ++i) require(bool(events.publish(Sample{1})));
      co_await yield();
    }
  };
  const auto begun = Clock::now();
  run(*loop, body());
  drain(*loop, events);
  require(sum == handled);
  return nanoseconds_each(begun);
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  const unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  for (unsigned long round = 0; round < rounds; ++round) {
    const weir::Queued queued = weir::run_in_child_process(weir::push_then_drain);
    std::printf(
        "{\"pushed, then drained\": {\"millions\": %.3f, \"bytes each\": %.1f}, "
        "\"to one handler\": {\"one after the other\": %.2f, "
        "\"a thousand at a time\": %.2f}}\n",
        queued.millions, queued.bytes_each, weir::run_in_child_process(weir::one_after_the_other),
        weir::run_in_child_process(weir::a_thousand_at_a_time));
    std::fflush(stdout);
  }
}
