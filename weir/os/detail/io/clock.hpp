// What time it is, from the kernel. Only the operating system's Host reads it.
#pragma once

#include <ctime>

#include "weir/base/time.hpp"

namespace weir::os {

/// CLOCK_MONOTONIC: never goes back, stands still while the machine is suspended. Any thread.
Instant monotonic_now() noexcept;

/// CLOCK_REALTIME: the time of day in UTC. Any thread.
WallTime wall_now() noexcept;

/// A length of time that is not negative, as system calls take it.
timespec to_timespec(Duration length) noexcept;

/// How long it is from `now` until then, as poll(2) takes it: in milliseconds, rounded up; -1 for
/// `never`.
int to_poll_timeout(Instant until, Instant now) noexcept;

}  // namespace weir::os
