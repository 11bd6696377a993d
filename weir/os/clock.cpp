// Clocks, by clock_gettime(2), which does not enter the kernel on common machines.
#include "weir/os/clock.hpp"

#include <chrono>

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

}  // namespace weir::os
