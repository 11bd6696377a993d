// What a thread of this process is doing, looked at from another one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/time.hpp"

namespace weir::os {

enum class ThreadState : std::uint8_t {
  running,  ///< on a CPU, or waiting for one
  blocked,  ///< asleep in the kernel: for input, a lock, a disk, a moment
  unknown,  ///< it has ended, or the kernel does not tell
};

/// Threads: any, also when the thread has ended; then it knows nothing.
class ThreadProbe {
 public:
  static ThreadProbe of_this_thread() noexcept;

  /// The CPU time that the thread has used, exact to the moment, also while it runs
  /// (pthread_getcpuclockid(3)); 0 when it has ended. About 0.3 us.
  Duration cpu_time() const noexcept;
  /// As /proc/self/task tells it; about 10 us. `root` is put before /proc.
  ThreadState state(std::string_view root = {}) const;

 private:
  ThreadProbe(int id, int clock) noexcept : id_(id), clock_(clock) {}
  int id_;
  int clock_;
};

/// The state in the text of a /proc/*/stat file (proc_pid_stat(5)).
ThreadState parse_thread_state(std::string_view stat) noexcept;

}  // namespace weir::os
