// Real time: threads that the kernel prefers to all ordinary ones, and memory that is never paged.
#pragma once

#include <string>
#include <system_error>

#include "weir/base/result.hpp"

namespace weir::os {

/// Priorities of SCHED_FIFO on Linux: from the least to the greatest.
inline constexpr int fifo_priority_min = 1;
inline constexpr int fifo_priority_max = 99;

/// From now on the calling thread runs by SCHED_FIFO (sched(7)): before every ordinary thread and
/// every one of a lower priority, on each CPU that it may use, until it waits. Threads that it
/// starts are ordinary. What is left to others of a CPU that it does not let go is
/// kernel.sched_rt_runtime_us, 5 % by default.
/// Errors: EPERM, see explain_fifo_refusal(); EINVAL for what is no priority.
Result<> run_fifo(int priority);

/// Why run_fifo() was refused and which setting would allow it, for people: "Operation not
/// permitted (RLIMIT_RTPRIO is 0: …)". `root` is put before /proc and /sys.
std::string explain_fifo_refusal(std::error_code error, int priority, const std::string& root = {});

/// Keeps all memory of this process, also what it is given later, in RAM until its end; memory that
/// is given is there at once, a thread's whole stack too. The heap gives nothing back to the
/// kernel. Errors: EPERM where the limit of locked memory is not unlimited, as later memory would
/// be refused instead; ENOMEM. See explain_lock_refusal().
Result<> lock_memory();
std::string explain_lock_refusal(std::error_code error, const std::string& root = {});

}  // namespace weir::os
