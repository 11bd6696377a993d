// ThreadProbe: reads the CPU time and the state of a thread from another thread of the process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/time.hpp"

namespace weir::os {

enum class ThreadState : std::uint8_t {
  running,  ///< on a CPU, or waiting for one
  blocked,  ///< asleep in the kernel: input, a lock, a disk or a timer
  unknown,  ///< the thread has ended, or the state cannot be read
};

/// A ThreadProbe reads the CPU time and the state of one thread.
/// Threads: any.
/// Lifetime: a probe may outlive its thread; the CPU time is then 0 and the state unknown.
class ThreadProbe {
 public:
  /// Returns a probe of the calling thread.
  static ThreadProbe of_this_thread() noexcept;

  /// Returns the CPU time of the thread up to now, even while it runs (pthread_getcpuclockid(3)); 0
  /// if the thread has ended. The call takes about 0.3 us.
  Duration cpu_time() const noexcept;
  /// Returns the state that /proc/self/task shows. The call takes about 10 us. `root` is a prefix
  /// of /proc.
  ThreadState state(std::string_view root = {}) const;

 private:
  ThreadProbe(int id, int clock) noexcept : id_(id), clock_(clock) {}
  int id_;
  int clock_;
};

/// Returns the state in the text of a /proc/*/stat file (proc_pid_stat(5)).
ThreadState parse_thread_state(std::string_view stat) noexcept;

}  // namespace weir::os
