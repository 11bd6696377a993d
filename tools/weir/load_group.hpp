// Threads that put one load on a server together.
#pragma once

#include "weir/base/time.hpp"
#include "weir/task/sync/latch.hpp"
#include "weir/task/task.hpp"

namespace weir::bench {

/// Gives the threads of one load one clock: it starts when all of them are connected.
/// Threads: any loop of one runtime. Lifetime: longer than the load.
class LoadGroup {
 public:
  explicit LoadGroup(unsigned threads) noexcept : connected_(threads) {}

  /// Each thread's, once, when it is connected: returns when all are, with the same moment to each.
  /// Cancel: returns at once, with the present moment.
  Task<Instant> all_connected();

 private:
  static Task<Instant> arrive(LoadGroup& group);  // on the first core, as all below

  CoreLatch connected_;
  Instant start_{};
};

}  // namespace weir::bench
