// A thread of the operating system's, lent by OsHost.
#pragma once

#include <pthread.h>

#include <atomic>
#include <optional>
#include <vector>

#include "weir/loop/contract/detail/platform_thread.hpp"
#include "weir/loop/os/detail/adaptive_spinner.hpp"
#include "weir/os/detail/process/parker.hpp"

namespace weir {

/// Where it is called again soon after each step, as a rule, it waits for that awake for some
/// microseconds, as one of those that share `spin_place`. It takes no signals but those that the
/// thread itself causes, and may run on any of `cpus`, whatever its starter is pinned to (all that
/// its starter may run on, if there are none).
class OsThread final : public HostThread {
 public:
  OsThread(HostThreadOptions options, ThreadWork& work, std::vector<int> cpus,
           SpinPlace& spin_place);
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
  void rest(Instant until);

  const HostThreadOptions options_;
  ThreadWork& work_;
  const std::vector<int> cpus_;
  SpinPlace& spin_place_;
  Spinning spinning_;  // the thread's own
  os::Parker parker_;
  std::optional<os::ThreadProbe> probe_;  // the thread's own until `probed_`, constant then
  std::atomic<bool> probed_{false};
  std::atomic<bool> stopping_{false};
  pthread_t thread_{};
  bool joinable_ = false;
};

}  // namespace weir
