// Thread scheduling: background priority, real-time priority (SCHED_FIFO) and locked memory.
#pragma once

#include <string>
#include <system_error>

#include "weir/base/result.hpp"

namespace weir::os {

// Background priority of a thread.

/// Gives the calling thread background priority. Any other thread of the process that wakes up
/// preempts it immediately. A background thread that wakes up preempts no other thread. It gets
/// about a tenth of a CPU for which a thread of the process's own niceness competes. Nothing
/// changes while CPUs are idle.
///
/// The thread gets SCHED_BATCH, a niceness of `background_nice_increment` above that of the process
/// and at most 19, and slices of 5 ms. A thread that wakes up need not wait for the end of a slice
/// that is longer than its own (since Linux 6.12). Threads that the calling thread starts inherit
/// the priority.
/// Errors: those of sched_setattr(2), for example if a sandbox refuses it; nothing has changed
/// then.
Result<> set_background_priority();

/// The niceness that set_background_priority() adds. Each step is a factor of about 1.25.
inline constexpr int background_nice_increment = 10;

/// The least and the greatest priority of SCHED_FIFO on Linux.
inline constexpr int fifo_priority_min = 1;
inline constexpr int fifo_priority_max = 99;

/// Sets the scheduling policy of the calling thread to SCHED_FIFO (sched(7)). The thread runs
/// before all ordinary threads and all threads of lower priority, on each CPU that it may use,
/// until it waits. Threads that it starts are ordinary. If it never waits,
/// kernel.sched_rt_runtime_us leaves other threads 5 % of its CPU by default. The call first raises
/// the soft RLIMIT_RTPRIO to the hard limit.
/// Errors: EPERM, see explain_fifo_error(); EINVAL if `priority` is out of range.
Result<> set_fifo_priority(int priority);

/// Returns a text for the operator with the reason why set_fifo_priority() failed and the setting
/// that would allow it, such as "Operation not permitted (RLIMIT_RTPRIO is 0: …)". `root` is a
/// prefix of /proc and /sys.
std::string explain_fifo_error(std::error_code error, int priority, const std::string& root = {});

/// Locks all current and future memory of this process in RAM until the process ends. New memory is
/// resident immediately, including the whole stack of a thread. The heap no longer returns memory
/// to the kernel. The call first raises the soft RLIMIT_MEMLOCK to the hard limit.
/// Errors: EPERM if the limit on locked memory is finite and the thread lacks CAP_IPC_LOCK, because
/// later allocations would fail instead; ENOMEM; see explain_lock_error().
Result<> lock_memory();
/// Returns a text for the operator with the reason why lock_memory() failed. `root` is a prefix of
/// /proc.
std::string explain_lock_error(std::error_code error, const std::string& root = {});

}  // namespace weir::os
