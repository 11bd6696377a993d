// How much this process may have, raised as far as it may be.
#pragma once

#include <cstdint>
#include <string>

namespace weir::os {

struct Limit {
  std::uint64_t before = 0;
  std::uint64_t now = 0;  ///< UINT64_MAX: unlimited
  /// For the operator: "open files: 20000 (raised from 1024; 1048576 refused: Operation not
  /// permitted)".
  std::string explanation;
};

/// Raises the number of descriptors to the hard limit, and both to `wanted` (or fs.nr_open, if that
/// is less) where this process has the right (CAP_SYS_RESOURCE). Never lowers anything.
Limit raise_descriptor_limit(std::uint64_t wanted = 1 << 20);

/// The longest queue of connections that listen(2) grants (net.core.somaxconn); 4096, the kernel's
/// own default, where it cannot be read. `root` is put before /proc.
int listen_backlog_max(const std::string& root = {});

struct ThreadLimit {
  std::uint64_t threads_max = 0;  ///< at least 1
  std::string explanation;        ///< "48182 threads: half of RLIMIT_NPROC"
};

/// What a thread takes beside its stack: the kernel's part of it, and the allocator's.
inline constexpr std::uint64_t thread_own_bytes = std::uint64_t{32} * 1024;
/// What of its stack a thread touches, as a rule. Where memory is locked, it has all of it.
inline constexpr std::uint64_t thread_stack_touched = std::uint64_t{32} * 1024;

/// How many more threads this process may start without taking from others what they need: half of
/// what the control groups (pids) have left, of RLIMIT_NPROC and of the kernel's threads-max, and a
/// quarter of the memory that the control groups allow, when each has `stack_bytes` of stack in it.
/// `root` is put before /proc and /sys.
ThreadLimit read_thread_limit(const std::string& root = {},
                              std::uint64_t stack_bytes = thread_stack_touched);

}  // namespace weir::os
