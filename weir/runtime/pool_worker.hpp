// A thread of a pool.
#pragma once

#include <memory>
#include <optional>

#include "weir/base/detail/list.hpp"
#include "weir/runtime/pool_watch.hpp"
#include "weir/loop/contract/detail/platform_thread.hpp"

namespace weir {

class BlockingJob;
class PoolCrew;

/// Threads: step() its own; the rest is guarded by the mutex of its crew, but for what says
/// otherwise.
class PoolWorker final : public ThreadWork, public ListNode {
 public:
  explicit PoolWorker(PoolCrew& crew) noexcept : crew_(crew) {}
  std::optional<Instant> step() noexcept override;

  BlockingJob* job = nullptr;          // that it has taken, and calls in its next step
  Instant rests_until = never;         // while it is linked
  bool ended = false;                  // its thread is about to be gone, or is
  bool straight = false;               // its own: from the last job to the next
  Instant took_at{};                   // its own: that job
  unsigned brief_jobs = 0;             // its own: so many on end that were
  std::optional<Duration> cpu_time;    // its own: after the last job, if it was read
  WatchedThread watched;               // the keeper's
  std::unique_ptr<HostThread> thread;  // constant; the last member, for it ends first

 private:
  PoolCrew& crew_;
};

}  // namespace weir
