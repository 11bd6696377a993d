// The kernel's clocks, which only the operating system's Platform reads.
#pragma once

#include <ctime>

#include "weir/base/time.hpp"

namespace weir::os {

/// Returns CLOCK_MONOTONIC. It never goes back, and it stops while the machine is suspended.
/// Threads: any.
Instant monotonic_now() noexcept;

/// Returns CLOCK_REALTIME, the time of day in UTC.
/// Threads: any.
WallTime wall_now() noexcept;

/// Converts a length of time that is not negative to the type of system calls.
timespec to_timespec(Duration length) noexcept;

/// Returns the time from `now` to `until` for poll(2), in milliseconds, rounded up. It is 0 if
/// `until` has passed, at most INT_MAX, and -1 for `never`.
int to_poll_timeout(Instant until, Instant now) noexcept;

}  // namespace weir::os
