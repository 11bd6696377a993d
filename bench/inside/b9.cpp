// B9: 5,000,000 events of 8 bytes are pushed, and then drained without handlers, with every page
// faulted in anew; and what an event costs on its way to one handler on the same core: alone, each
// handler publishing the next one, and a thousand at a time. Prints one line of JSON for each
// round: millions a second, bytes of memory for each queued event, ns for each event.
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

/// Bytes that the process has had at most.
double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

std::unique_ptr<Loop> make_loop(Host& host) {
  static_cast<void>(os::pin_this_thread(os::allowed_cpus().front()));
  return Loop::make(host, {.backend = BackendChoice::epoll}).value();
}

Task<> push(Events& events, std::uint64_t count) {
  for (std::uint64_t value = 0; value < count; ++value)
    require(bool(events.publish(Sample{value})));
  co_return;
}

void drain(Loop& loop, const Events& events) {
  while (events.queued() != 0) loop.turn(Instant::min());
}

struct Queued {
  double millions = 0;  // pushed and drained in a second
  double bytes_each = 0;
};

Queued push_then_drain() {
  OsHost host;
  EventBus bus(1, {.queued_max = pushed});
  const auto loop = make_loop(host);
  Events& events = bus.local(*loop);
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
  OsHost host;
  EventBus bus(1);
  const auto loop = make_loop(host);
  Events& events = bus.local(*loop);
  const auto handler = events.on([&](const Sample& sample) {
    if (sample.value != 0) require(bool(events.publish(Sample{sample.value - 1})));
  });
  const auto begun = Clock::now();
  require(bool(events.publish(Sample{handled - 1})));
  drain(*loop, events);
  return nanoseconds_each(begun);
}

/// A task publishes them and lets its loop go on.
double a_thousand_at_a_time() {
  OsHost host;
  EventBus bus(1);
  const auto loop = make_loop(host);
  Events& events = bus.local(*loop);
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
    const weir::Queued queued = weir::in_a_fresh_process(weir::push_then_drain);
    std::printf(
        "{\"pushed, then drained\": {\"millions\": %.3f, \"bytes each\": %.1f}, "
        "\"to one handler\": {\"one after the other\": %.2f, "
        "\"a thousand at a time\": %.2f}}\n",
        queued.millions, queued.bytes_each, weir::in_a_fresh_process(weir::one_after_the_other),
        weir::in_a_fresh_process(weir::a_thousand_at_a_time));
    std::fflush(stdout);
  }
}
