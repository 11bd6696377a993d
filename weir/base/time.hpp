// The clock types: a monotonic instant for deadlines, a wall time for people and protocols.
#pragma once

#include <chrono>
#include <cstdint>

namespace weir {

inline namespace literals {
using namespace std::chrono_literals;
}

using Duration = std::chrono::nanoseconds;

/// The monotonic clock that deadlines are measured on. It has no now(): time is read through a
/// loop::Host, so that tests and simulations decide what time it is.
struct MonotonicClock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = Duration;
  using time_point = std::chrono::time_point<MonotonicClock, Duration>;
  static constexpr bool is_steady = true;
};

/// A moment on the monotonic clock, in nanoseconds since an epoch of the host's choice.
using Instant = MonotonicClock::time_point;

/// A moment in UTC, in nanoseconds since 1970-01-01; it may jump.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

inline constexpr Instant never = Instant::max();

/// `start + length`, which is `never`, or the first moment there is, where the sum would overflow.
constexpr Instant after(Instant start, Duration length) noexcept {
  const Duration since = start.time_since_epoch();
  if (length.count() > 0 && since > Duration::max() - length) return never;
  if (length.count() < 0 && since < Duration::min() - length) return Instant::min();
  return start + length;
}

}  // namespace weir
