// Measures the CPU time of other processes, such as the server under load.
#pragma once

#include <span>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

namespace weir::bench {

/// Returns the user and system time that all threads of these processes have used so far. The
/// unit is nanoseconds if the kernel provides /proc/PID/task/*/schedstat, else ticks of the
/// kernel's clock. Threads that have ended are left out.
/// Errors: Errc::not_found if a process does not exist.
Result<Duration> process_cpu_time(std::span<const int> processes);

}  // namespace weir::bench
