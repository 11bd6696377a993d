// Synchronizes the threads that put one load on a server together.
#pragma once

#include "weir/base/time.hpp"
#include "weir/task/sync/latch.hpp"
#include "weir/task/task.hpp"

namespace weir::bench {

/// A LoadGroup gives the threads of one load a common start. The start is the moment when all of
/// them are connected.
/// Threads: any loop of one runtime.
/// Lifetime: longer than the load.
class LoadGroup {
 public:
  explicit LoadGroup(unsigned threads) noexcept : connected_(threads) {}

  /// Waits until all threads are connected. Each thread calls it once, when its own connections
  /// are open.
  /// Returns: the start of the load, equal for all threads.
  /// Cancel: returns immediately; the start is then the present moment.
  Task<Instant> wait_until_all_connected();

 private:
  static Task<Instant> arrive(LoadGroup& group);  // runs on core 0, which owns the members below

  Latch connected_;
  Instant start_{};
};

}  // namespace weir::bench
