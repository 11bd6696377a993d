// Measures a million timers with deadlines within a minute, in a loop's timer wheel and in a
// std::multimap. Starts all timers, cancels every second timer, and fires the rest in steps of a
// millisecond. Prints one line of JSON per round: nanoseconds per timer, averaged over the million.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <vector>

#include "weir/loop/detail/timers.hpp"

namespace weir {
namespace {

constexpr std::size_t count = 1'000'000;
constexpr Duration longest = std::chrono::minutes(1);
constexpr Duration step = std::chrono::milliseconds(1);
constexpr Instant epoch{std::chrono::hours(1)};

using Clock = std::chrono::steady_clock;

struct Results {
  double start = 0;
  double cancel = 0;
  double fire = 0;
};

/// Nanoseconds since `begin`, divided by the million timers. Sets `begin` to now.
double lap(Clock::time_point& begin) {
  const Clock::time_point now = Clock::now();
  const std::chrono::duration<double, std::nano> took = now - begin;
  begin = now;
  return took.count() / static_cast<double>(count);
}

void require_half(std::size_t fired) {
  if (fired != count / 2) std::abort();
}

struct CountingTimer : loop::Timer {
  CountingTimer() : loop::Timer([](loop::Timer&) { ++fired; }) {}
  static inline std::size_t fired = 0;
};

Results by_wheel(const std::vector<Duration>& lengths) {
  loop::TimerWheel wheel(epoch);
  std::vector<CountingTimer> timers(count);
  CountingTimer::fired = 0;
  Results results;
  auto begin = Clock::now();
  for (std::size_t i = 0; i < count; ++i) wheel.start(timers[i], epoch + lengths[i]);
  results.start = lap(begin);
  for (std::size_t i = 0; i < count; i += 2) timers[i].cancel();
  results.cancel = lap(begin);
  for (Instant now = epoch; wheel.armed() != 0;) wheel.advance(now += step);
  results.fire = lap(begin);
  require_half(CountingTimer::fired);
  return results;
}

Results by_map(const std::vector<Duration>& lengths) {
  using Map = std::multimap<Instant, std::size_t>;
  Map map;
  std::vector<Map::iterator> timers(count);
  std::size_t fired = 0;
  Results results;
  auto begin = Clock::now();
  for (std::size_t i = 0; i < count; ++i) timers[i] = map.emplace(epoch + lengths[i], i);
  results.start = lap(begin);
  for (std::size_t i = 0; i < count; i += 2) map.erase(timers[i]);
  results.cancel = lap(begin);
  for (Instant now = epoch; !map.empty(); now += step) {
    while (!map.empty() && map.begin()->first <= now) {
      map.erase(map.begin());
      ++fired;
    }
  }
  results.fire = lap(begin);
  require_half(fired);
  return results;
}

void print(const char* name, const Results& of, const char* behind) {
  std::printf("\"%s\": {\"start\": %.2f, \"cancel\": %.2f, \"fire\": %.2f, \"all\": %.2f}%s", name,
              of.start, of.cancel, of.fire, of.start + of.cancel + of.fire, behind);
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  using namespace weir;
  const unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  std::mt19937_64 random(1);
  std::uniform_int_distribution<Duration::rep> within(1, longest.count());
  std::vector<Duration> lengths(count);
  for (Duration& length : lengths) length = Duration(within(random));
  for (unsigned long round = 0; round < rounds; ++round) {
    std::fputs("{", stdout);
    print("TimerWheel", by_wheel(lengths), ", ");
    print("std::multimap", by_map(lengths), "}\n");
    std::fflush(stdout);
  }
}
