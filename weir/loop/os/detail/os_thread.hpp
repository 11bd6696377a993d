// Threads of OsPlatform, and loops that run on threads.
#pragma once

#include <pthread.h>
#include <atomic>
#include <optional>
#include <span>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/contract/detail/platform_thread.hpp"
#include "weir/loop/os/detail/adaptive_spinner.hpp"
#include "weir/os/detail/process/parker.hpp"

namespace weir::loop {

// run_on_threads() runs each loop on a thread of its own; the calling thread handles signals.

/// Implements Platform::run() for an operating system; OsPlatform documents its threads and
/// signals. `platform` logs what the kernel refused to a thread.
Result<> run_on_threads(Platform& platform, std::span<const LoopPlacement> placements,
                        RunControl* control);

/// A thread that calls ThreadWork::step(). If calls usually follow soon after a step, it spins for
/// some microseconds before it sleeps. Threads that share `spin_permit` spin one at a time. The
/// thread takes only the signals that it causes itself, and SIGPROF. It may run on any of `cpus`,
/// whatever its starter is pinned to; an empty list means all CPUs of its starter.
class OsThread final : public PlatformThread {
 public:
  OsThread(PlatformThreadOptions options, ThreadWork& work, std::vector<int> cpus,
           SpinPermit& spin_permit);
  OsThread(const OsThread&) = delete;
  OsThread& operator=(const OsThread&) = delete;
  ~OsThread() override;

  Result<> start() override;
  void wake() noexcept override { parker_.unpark(); }
  Duration cpu_time() noexcept override;
  os::ThreadState state() noexcept override;

 private:
  static void* enter(void* self) noexcept;
  void run();
  void wait_until(Instant until);

  const PlatformThreadOptions options_;
  ThreadWork& work_;
  const std::vector<int> cpus_;
  SpinPermit& spin_permit_;
  AdaptiveSpinner spinner_;  // used only by the thread
  os::Parker parker_;
  // Written by the thread before `probed_`, constant after it.
  std::optional<os::ThreadProbe> probe_;
  std::atomic<bool> probed_{false};
  std::atomic<bool> stopping_{false};
  pthread_t thread_{};
  bool joinable_ = false;
};

}  // namespace weir::loop
