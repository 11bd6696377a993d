// How much processor time other processes have used: the server's, while it is under load.
#pragma once

#include <span>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

namespace weir::bench {

/// User and system time of all threads of these processes so far. Nanoseconds where the kernel
/// keeps them (/proc/PID/task/*/schedstat), else in ticks of a hundredth of a second; threads that
/// have ended are left out. Errors: Errc::not_found for a process that is not there.
Result<Duration> process_time(std::span<const int> processes);

}  // namespace weir::bench
