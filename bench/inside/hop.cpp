// Measures a hop between two loops, one way and as a round trip, to a sleeping loop and to a busy
// loop. Two threads that wake each other with eventfds are the comparison. Prints one line of JSON
// per round: medians in nanoseconds.
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "bench/inside/two_cores.hpp"
#include "weir/os/detail/machine/affinity.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/sleep.hpp"

namespace weir {
namespace {

constexpr std::size_t hops = 5000;
constexpr std::size_t warm_up = 500;

using Clock = std::chrono::steady_clock;

struct Times {
  std::vector<double> one_way;
  std::vector<double> round_trip;

  void add(Clock::time_point begin, Clock::time_point there, Clock::time_point back) {
    using Nanoseconds = std::chrono::duration<double, std::nano>;
    one_way.push_back(Nanoseconds(there - begin).count());
    round_trip.push_back(Nanoseconds(back - begin).count());
  }
};

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void print(const char* name, Times& times) {
  std::printf("\"%s\": {\"one way\": %.0f, \"there and back\": %.0f}", name, median(times.one_way),
              median(times.round_trip));
}

Task<Times> hop() {
  Times times;
  const auto look = [] { return Clock::now(); };
  for (std::size_t done = 0; done < hops + warm_up; ++done) {
    const auto begin = Clock::now();
    const auto there = co_await on_core(1, look);
    if (done >= warm_up) times.add(begin, there, Clock::now());
  }
  co_return times;
}

/// Keeps the loop that it runs on from sleeping.
Task<> spin(const std::atomic<bool>& over) {
  while (!over.load(std::memory_order_relaxed)) co_await yield();
}

Task<> spin_there(const std::atomic<bool>& over) {
  co_await on_core(1, spin, std::ref(over));
}

Task<Times> hop_awake(Scope& scope, std::atomic<bool>& over) {
  scope.spawn(spin(over));
  scope.spawn(spin_there(over));
  Times times = co_await hop();
  over.store(true, std::memory_order_relaxed);
  co_return times;
}

// ---- The lower bound ----------------------------------------------------------------------------

int open_eventfd() {
  const int descriptor = ::eventfd(0, EFD_CLOEXEC);
  if (descriptor < 0) std::exit(1);
  return descriptor;
}

void signal(int descriptor) {
  const std::uint64_t one = 1;
  if (::write(descriptor, &one, sizeof one) != sizeof one) std::exit(1);
}

void wait_for(int descriptor) {
  std::uint64_t count = 0;
  if (::read(descriptor, &count, sizeof count) != sizeof count) std::exit(1);
}

/// Uses this thread and a second thread on another processor.
Times wake_with_eventfds() {
  const int there = open_eventfd();
  const int back = open_eventfd();
  std::atomic<Clock::time_point> arrived;
  std::thread other([&] {
    static_cast<void>(os::pin_current_thread(1));
    for (std::size_t done = 0; done < hops + warm_up; ++done) {
      wait_for(there);
      arrived.store(Clock::now(), std::memory_order_relaxed);
      signal(back);
    }
  });
  Times times;
  for (std::size_t done = 0; done < hops + warm_up; ++done) {
    const auto begin = Clock::now();
    signal(there);
    wait_for(back);
    if (done >= warm_up) times.add(begin, arrived.load(std::memory_order_relaxed), Clock::now());
  }
  other.join();
  ::close(there);
  ::close(back);
  return times;
}

// ---- All measurements ---------------------------------------------------------------------------

Task<> measure_once(Loop&) {
  Times asleep = co_await hop();
  std::atomic<bool> over = false;
  auto awake = co_await with_scope(hop_awake, std::ref(over));
  Times bare = wake_with_eventfds();
  std::fputs("{", stdout);
  print("loop that sleeps", asleep);
  std::fputs(", ", stdout);
  print("loop that is awake", *awake);
  std::fputs(", ", stdout);
  print("two threads, eventfd", bare);
  std::puts("}");
  std::fflush(stdout);
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  return weir::measure_on_two_cores(argc, argv, weir::measure_once);
}
