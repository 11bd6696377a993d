// Thread of a platform for work that may block; a loop must never block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/os/detail/process/thread_probe.hpp"

namespace weir {

/// Priority of a thread when several threads of the process compete for a CPU.
enum class ThreadPriority : std::uint8_t {
  normal,      ///< an ordinary thread
  background,  ///< lower than the loops, which preempt it; see os::set_background_priority()
};

}  // namespace weir

namespace weir::loop {

/// The work of a PlatformThread, as a sequence of steps. A simulated platform can run the steps
/// without a thread.
class ThreadWork {
 public:
  /// Runs one step on the thread. The first step comes soon after start(). The next one comes at
  /// the returned time, or immediately if wake() was called since this step began. A step may
  /// block; it takes no time in a simulation.
  /// Returns: the time of the next step; nullopt ends the thread.
  virtual std::optional<Instant> step() noexcept = 0;

 protected:
  ~ThreadWork() = default;
};

struct PlatformThreadOptions {
  /// Enough for the resolver of the C library and for deep calls of user code. A thousand stacks
  /// of this size fit into a machine with locked memory.
  static constexpr std::size_t stack_bytes_usual = std::size_t{1} << 20;

  std::string name;  ///< the kernel shows at most 15 bytes
  ThreadPriority priority = ThreadPriority::normal;
  std::size_t stack_bytes = stack_bytes_usual;  ///< raised to the minimum of the kernel or libc
};

/// A thread, created by PlatformThreads::make_thread().
/// Threads: start() and the destructor on one thread; the other functions on any, while the object
/// lives.
/// Lifetime: its platform and its work outlive it.
class PlatformThread {
 public:
  /// Waits until a running step has returned. No step runs afterwards. Must not be called inside a
  /// step.
  virtual ~PlatformThread() = default;
  /// Starts the thread. Call it at most once.
  /// Errors: that of the kernel if it cannot create a thread (EAGAIN); no step runs then.
  virtual Result<> start() = 0;
  /// Requests the next step immediately. Does nothing before start(), because a first step follows
  /// anyway.
  virtual void wake() noexcept = 0;

  /// Returns the CPU time that the thread has used; 0 if the platform does not measure it.
  virtual Duration cpu_time() noexcept = 0;
  /// Returns the present state of the thread; see os::ThreadProbe.
  virtual os::ThreadState state() noexcept = 0;
};

/// The threads of a Platform for work that may block.
/// Threads: all functions from any thread.
class PlatformThreads {
 public:
  /// Returns the default limit for threads that may block on this machine, at least 1.
  virtual std::size_t threads_max() = 0;
  /// Creates a thread for `work`, which does not run before PlatformThread::start().
  /// Lifetime: `work` outlives the thread.
  virtual std::unique_ptr<PlatformThread> make_thread(const PlatformThreadOptions& options,
                                                      ThreadWork& work) = 0;

 protected:
  ~PlatformThreads() = default;
};

}  // namespace weir::loop
