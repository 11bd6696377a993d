// Contract of a platform: every service that a program needs from its environment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/handover.hpp"
#include "weir/loop/contract/detail/network.hpp"
#include "weir/loop/contract/detail/platform_thread.hpp"
#include "weir/loop/contract/detail/supervision.hpp"
#include "weir/os/detail/machine/topology.hpp"

namespace weir {
class Loop;

/// The backend to create. `automatic` selects the best one that works on this machine.
enum class BackendChoice : std::uint8_t { automatic, uring, uring_6_1, epoll, poll };

}  // namespace weir

namespace weir::loop {

class FileSystem;
class RunQueue;

/// A backend and the reason for the choice, as text ("io_uring refused: EPERM (seccomp)").
struct ChosenBackend {
  std::unique_ptr<Backend> backend;
  std::string reason;
};

/// Scheduling of the thread of a loop. A simulated platform has no such threads.
struct LoopSchedule {
  /// Priority under SCHED_FIFO, 1 to 99, above all ordinary threads; 0: an ordinary thread. If the
  /// kernel refuses it, one log line names the setting that would allow it. The loop then runs as
  /// an ordinary thread, unless `fifo_required` is set.
  int fifo_priority = 0;
  bool fifo_required = false;  ///< true: run() fails instead, before any loop has run
  bool busy_poll = false;      ///< the loop polls the kernel and never sleeps
  Duration busy_wait = {};     ///< time to poll before the loop sleeps, if polling pays
};

/// A loop and the CPU to run it on; see Platform::run().
struct LoopPlacement {
  Loop* loop;
  int cpu;  ///< CPU to pin its thread to; -1: any
  LoopSchedule schedule = {};
};

enum class Signal : std::uint8_t {
  interrupt,  ///< SIGINT: drain, then stop
  terminate,  ///< SIGTERM: drain, then stop
  quit,       ///< SIGQUIT: report what runs
};

/// Callbacks of Platform::run(), called on a thread that is not the thread of a loop.
class RunControl {
 public:
  virtual ~RunControl() = default;
  virtual void on_signal(Signal signal) = 0;
  /// Returns the time from which the loops are expected to return soon. The platform gives up
  /// on a loop that stays in a handler for a second after it. It also gives up if no loop runs
  /// anything for a second. OsPlatform then ends the process with a log line and status 1. A
  /// simulated platform has only one thread and cannot do that.
  /// Threads: any.
  virtual Instant abandon_at() noexcept { return never; }
  /// Sets a function to call when abandon_at() has changed, on any thread. nullptr removes it. A
  /// platform calls this.
  virtual void on_abandon_change(std::function<void()> changed) { static_cast<void>(changed); }
};

/// The clocks and the random numbers of a Platform. A simulation derives them from its seed.
/// Threads: all functions from any thread.
class PlatformClock {
 public:
  virtual Instant now() noexcept = 0;
  /// Returns true if now() costs nothing, as in virtual time. Loops then read the clock more
  /// often.
  virtual bool clock_is_free() const noexcept { return false; }
  virtual WallTime wall_time() noexcept = 0;
  /// Returns 64 unpredictable bits.
  virtual std::uint64_t random() = 0;

 protected:
  ~PlatformClock() = default;
};

/// The machine of a Platform: its CPUs, the limits of this process, and its memory.
/// Threads: all functions from any thread.
class PlatformMachine {
 public:
  virtual os::Topology topology() = 0;
  /// The number of descriptors that this process may open. The platform raises the limit once if
  /// it can, and reports that in the explanation.
  struct DescriptorLimit {
    std::size_t descriptors_max;
    /// "raised from 1024 to 20000", or the reason why the limit could not be raised.
    std::string explanation;
  };
  virtual DescriptorLimit descriptor_limit() = 0;
  /// Locks all present and future memory of this process in RAM until it ends. All of that memory
  /// is resident immediately.
  struct LockedMemory {
    bool locked;
    std::string explanation;  ///< reason of a failure, and the setting that would allow it
  };
  virtual LockedMemory lock_memory() = 0;

 protected:
  ~PlatformMachine() = default;
};

/// The part of a Platform that reaches the other processes of the same service.
class PlatformProcesses {
 public:
  /// Connects to the other processes of the same service; see Handover. If there is an older
  /// process, waits until it has passed its sockets on.
  virtual HandoverStart begin_handover(const HandoverOptions& options) {
    static_cast<void>(options);
    return {nullptr, "this platform does not support hot restart"};
  }
  /// Creates worker processes of this process with fork(), before it has threads. SIGINT or
  /// SIGTERM makes all workers drain; a second signal makes them stop. Workers end when their
  /// supervisor ends.
  /// Returns: in each worker, with its handle; in the supervisor, when all workers have ended for
  /// good.
  virtual Supervised supervise(const SupervisionOptions& options) {
    static_cast<void>(options);
    return {.failure = "this platform does not support worker processes"};
  }

 protected:
  ~PlatformProcesses() = default;
};

/// The log of a Platform, which the operator of the program reads.
/// Threads: all functions from any thread.
class PlatformLog {
 public:
  /// Writes one line to the log and adds a newline. Lines contain texts of peers and of exceptions.
  /// They are therefore written as to_printable() returns them: no text forges a second line or
  /// controls the terminal of a reader. If memory is exhausted, the line ends before the first byte
  /// that is not printable.
  void log(std::string_view line) noexcept;

 protected:
  ~PlatformLog() = default;

 private:
  /// Writes one line, which is printable, and adds a newline.
  virtual void write_line(std::string_view line) noexcept = 0;
};

/// Everything that a program needs from its environment. OsPlatform uses the operating system;
/// simulated platforms are in weir/testing. Higher floors use no other way to the environment.
/// Code that needs one part of a platform takes that part, such as a PlatformNetwork&.
/// Threads: all functions from any thread.
/// Lifetime: outlives every loop and descriptor that it made.
class Platform : public PlatformClock,
                 public PlatformNetwork,
                 public PlatformMachine,
                 public PlatformThreads,
                 public PlatformProcesses,
                 public PlatformLog {
 public:
  virtual ~Platform() = default;

  /// Returns the files of the platform. They live as long as the platform.
  virtual FileSystem& files() noexcept = 0;

  /// Creates a backend that pushes finished operations to `ready`.
  /// Errors: if an explicit choice is not available, Errc::unsupported or the error of the kernel.
  /// Lifetime: `ready` outlives the backend.
  virtual Result<ChosenBackend> make_backend(BackendChoice choice, RunQueue& ready) = 0;

  /// Calls Loop::run() of every loop and returns when all have returned. Each loop runs on a
  /// thread of its own; in a simulation, all run on the calling thread. SIGINT and SIGTERM go to
  /// `control` in the meantime and do not end the process, unless `control` is nullptr. So does
  /// SIGQUIT, unless the program has a handler for it.
  /// Errors: a thread could not be started or scheduled as required; no loop has run then.
  virtual Result<> run(std::span<const LoopPlacement> placements, RunControl* control) = 0;
};

}  // namespace weir::loop
