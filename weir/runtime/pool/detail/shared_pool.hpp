// Provides one pool for blocking work to the loops of each runtime, without any setup.
//
// Opening a file needs a thread. A pool as a parameter of each such call would carry no useful
// information, and even a short program would have to create one. The loops of a runtime
// therefore share one pool, as they share their listeners. The runtime creates it with its loops.
// Before there is work, it costs one sleeping thread. It sizes itself (see BlockingPool) and is
// destroyed with the runtime. A program uses a BlockingPool of its own for work that must be kept
// apart.
#pragma once

#include "weir/loop/loop.hpp"
#include "weir/runtime/pool/blocking_pool.hpp"

namespace weir {

/// A SharedPool is the pool that the loops of a runtime share.
/// Threads: any.
/// Lifetime: that of the loops of the runtime; a loop without a runtime has its own pool.
class SharedPool {
 public:
  explicit SharedPool(loop::Platform& platform)
      : pool_(platform, options()), files_(pool_.add_lane(files())) {}

  /// Returns the pool for run(), resize() and report(). Callers must not close it. File
  /// operations leave at least one thread to its work.
  BlockingPool& pool() noexcept { return pool_; }
  PoolReport report() const { return pool_.report(); }
  /// Returns the lane of weir/net/files. Its work is short and goes before all other work. One
  /// reserved thread, in addition to the pool's size, serves it however long other work computes.
  /// If 4096 of its operations already wait, the next one fails with Errc::limit_reached.
  const PoolLane& file_lane() const noexcept { return files_; }

 private:
  static BlockingPoolOptions options();
  static PoolLaneOptions files();

  BlockingPool pool_;
  PoolLane files_;
};

/// Returns the pool of the loops that run together with `loop`. The first call for loops without a
/// runtime creates it:
/// `shared_pool(*context.loop).pool().run(fn, args...)`.
SharedPool& shared_pool(Loop& loop);

}  // namespace weir
