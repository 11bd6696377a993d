// The threads for blocking work that a program has without asking: one pool for each runtime.
//
// Whoever opens a file needs a thread somewhere. A pool as a parameter of every such call would say
// nothing that matters, and a program of twenty lines would begin with a pool; so the loops of a
// runtime share one, as they share their listeners. It is made when first asked for, costs nothing
// before, sizes itself (see BlockingPool), and goes with the runtime. What a program wants to keep
// apart it runs on a pool of its own.
#pragma once

#include "weir/runtime/blocking_pool.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/loop_group.hpp"

namespace weir {

/// Threads: any. Lifetime: that of the loops of the runtime; a loop without one has its own.
class SharedPool final : public LoopGroup::Shared {
 public:
  explicit SharedPool(Host& host) : pool_(host, options()), files_(pool_.add_lane(files())) {}

  /// For run(), resize() and report(). It is not closed. Files leave a thread to what runs here.
  BlockingPool& pool() noexcept { return pool_; }
  PoolReport report() const { return pool_.report(); }
  /// The lane of weir/net/files, whose work is short and taken before any other; one thread beside
  /// the pool's size is for it alone, however long the others compute. When 4096 of its operations
  /// wait already, one more fails with Errc::limit_reached.
  const PoolLane& file_lane() const noexcept { return files_; }

 private:
  static BlockingPoolOptions options();
  static PoolLaneOptions files();

  BlockingPool pool_;
  PoolLane files_;
};

/// That of the loops with which `loop` runs: `shared_pool(*context.loop).pool().run(fn, args...)`.
SharedPool& shared_pool(Loop& loop);
/// The same, or nullptr where nobody has asked for it yet. Any thread.
const SharedPool* shared_pool_if_made(Loop& loop) noexcept;

}  // namespace weir
