// Clocks through clock_gettime(2), which does not enter the kernel on common machines.
#include "weir/os/detail/io/clock.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace weir::os {
namespace {

Duration read(clockid_t clock) noexcept {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Instant monotonic_now() noexcept {
  return Instant(read(CLOCK_MONOTONIC));
}

WallTime wall_now() noexcept {
  return WallTime(read(CLOCK_REALTIME));
}

timespec to_timespec(Duration length) noexcept {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(length);
  timespec time{};
  time.tv_sec = seconds.count();
  time.tv_nsec = (length - seconds).count();
  return time;
}

int to_poll_timeout(Instant until, Instant now) noexcept {
  if (until == never) return -1;
  if (until <= now) return 0;
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now);
  return static_cast<int>(std::min<std::int64_t>(left.count(), most));
}

}  // namespace weir::os
