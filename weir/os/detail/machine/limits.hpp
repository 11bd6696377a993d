// Resource limits of this process, which are raised to the permitted maximum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace weir::os {

struct Limit {
  std::uint64_t before = 0;
  std::uint64_t now = 0;  ///< UINT64_MAX: unlimited
  /// A text for the operator, such as
  /// "open files: 20000 (raised from 1024; cannot raise to 1048576: Operation not permitted)".
  std::string explanation;
};

/// Raises the soft limit on open descriptors to the hard limit. A process with CAP_SYS_RESOURCE
/// also raises both to `wanted`, or to fs.nr_open if that is less. The call never lowers a limit.
Limit raise_descriptor_limit(std::uint64_t wanted = 1 << 20);

/// Returns the number of descriptors that this process may still open, but at most `enough`. The
/// call takes a system call for each open descriptor below the first `enough` free ones.
std::size_t free_descriptors(std::size_t enough);

/// Returns the longest queue of connections that listen(2) grants (net.core.somaxconn). It is 4096,
/// the kernel's default, if the setting cannot be read. `root` is a prefix of /proc.
int listen_backlog_max(const std::string& root = {});

struct ThreadLimit {
  std::uint64_t threads_max = 0;  ///< at least 1
  std::string explanation;        ///< such as "48182 threads: half of RLIMIT_NPROC"
};

/// The memory of a thread in addition to its stack, in the kernel and in the allocator.
inline constexpr std::uint64_t thread_overhead_bytes = std::uint64_t{32} * 1024;
/// The resident part of a thread's stack in the usual case. If memory is locked, the whole stack is
/// resident.
inline constexpr std::uint64_t thread_stack_resident_bytes = std::uint64_t{32} * 1024;

/// Returns the number of threads that this process may start and still leave enough for others. It
/// is the least of these values:
/// - half of the free pids of the control groups;
/// - half of RLIMIT_NPROC;
/// - half of the kernel's threads-max;
/// - a quarter of the memory limit of the control groups, divided by the memory of a thread with
///   `stack_bytes` of resident stack.
///
/// The result is at least 1. `root` is a prefix of /proc and /sys.
ThreadLimit read_thread_limit(const std::string& root = {},
                              std::uint64_t stack_bytes = thread_stack_resident_bytes);

}  // namespace weir::os
