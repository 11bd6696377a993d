// Looks at the threads of a pool, and estimates how many of them run.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/runtime/pool/detail/pool_report.hpp"
#include "weir/loop/contract/detail/platform_thread.hpp"

namespace weir {

/// A thread, and what is remembered about it from one look to the next.
struct WatchedThread {
  HostThread* thread = nullptr;
  /// Its own: whether it is in the work that it was given. Outside it can only wait for the pool's
  /// own lock, whose holder may wait for a CPU: that does not count as blocked.
  std::atomic<bool> in_work{false};
  Duration cpu_time{};       // at the last look
  unsigned looks_still = 0;  // on end without using a CPU
};

/// Every thread's CPU clock is read, which is cheap; the state, which is not, of 32 at most: 16 of
/// those whose clocks have moved since the last look and 16 of the others, different ones each
/// time. So few that run are found among many that sleep, and are not counted many times over.
///
/// Where states cannot be had, a thread counts as blocked when its clock has stood still for eight
/// looks: so long it might as well wait for a CPU that other programs use.
/// Threads: one at a time.
class PoolWatch {
 public:
  struct Seen {
    double running = 0;
    SizeEvidence evidence = SizeEvidence::none;
  };
  /// Estimates how many of `threads` are on a CPU or wait for one.
  Seen look(std::span<WatchedThread* const> threads);

 private:
  double running_among(std::span<WatchedThread* const> threads);

  std::size_t looks_ = 0;
  bool states_known_ = false;
  std::vector<WatchedThread*> moved_;  // kept for their memory
  std::vector<WatchedThread*> still_;
};

}  // namespace weir
