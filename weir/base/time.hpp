// Clock types: a monotonic Instant for deadlines, and a WallTime for users and protocols.
#pragma once

#include <chrono>
#include <cstdint>

namespace weir {

inline namespace literals {
using namespace std::chrono_literals;
}

using Duration = std::chrono::nanoseconds;

/// The monotonic clock of deadlines. It has no now(), because time is read through a Platform.
/// Tests and simulations can therefore set the time.
struct MonotonicClock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = Duration;
  using time_point = std::chrono::time_point<MonotonicClock, Duration>;
  static constexpr bool is_steady = true;
};

/// A point in time on the monotonic clock, in nanoseconds since an epoch that the Platform chooses.
using Instant = MonotonicClock::time_point;

/// A point in time in UTC, in nanoseconds since 1970-01-01. The wall clock may jump.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

inline constexpr Instant never = Instant::max();

/// Returns `start + length`. A sum that would overflow becomes `never`, or Instant::min() if
/// `length` is negative.
constexpr Instant after(Instant start, Duration length) noexcept {
  const Duration since = start.time_since_epoch();
  if (length.count() > 0 && since > Duration::max() - length) return never;
  if (length.count() < 0 && since < Duration::min() - length) return Instant::min();
  return start + length;
}

}  // namespace weir
