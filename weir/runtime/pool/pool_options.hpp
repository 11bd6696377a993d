// Options of a pool of threads for blocking work, with their defaults.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/platform_thread.hpp"
#include "weir/runtime/messaging/overflow_policy.hpp"

namespace weir {

/// PoolSizeOptions limits the number of threads that may have work at the same time.
struct PoolSizeOptions {
  /// A fixed number of threads, started when first needed and then kept. The value 0 selects
  /// automatic sizing: as many running threads as there are CPUs, and more while others are
  /// blocked.
  std::size_t fixed = 0;
  // The members below apply to automatic sizing only.
  std::size_t min = 1;  ///< fewest threads, kept even without work; 0 means 1
  /// Most threads, at least `min`; 0: Platform::threads_max().
  std::size_t max = 0;
  Duration idle_timeout = std::chrono::seconds(10);  ///< an idle thread ends after this time
  /// Period of sampling the threads while work is queued. It grows if sampling would use more
  /// than a twentieth of a CPU.
  Duration sample_period = std::chrono::milliseconds(5);
};

/// PoolLaneOptions limits one kind of work so that it cannot use up what other kinds need.
struct PoolLaneOptions {
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  std::string name = "work";
  std::size_t capacity = 4096;  ///< queued work beyond what free threads are about to take
  OverflowPolicy overflow_policy = OverflowPolicy::reject;
  /// Lanes of higher priority are served first; among equal priorities the oldest work is first.
  int priority = 0;
  /// Largest share of the pool's present size, from 0 to 1; the lane always gets at least one
  /// thread. Values outside that range are clamped, and NaN counts as 0. A share below 1 raises
  /// an automatic size to at least two threads, unless `max` forbids it. Work that is slow could
  /// otherwise block a pool of one thread for long.
  double share_max = 1.0;
  /// Threads reserved for this lane, in addition to the pool's size. They stay available however
  /// long other lanes keep the pool busy. `share_max` comes on top of them and may be 0.
  std::size_t reserved_threads = 0;
  std::size_t concurrency_max = unlimited;  ///< most threads that the lane uses
};

/// BlockingPoolOptions sets the threads of a BlockingPool and the limits of its default lane.
struct BlockingPoolOptions {
  std::string name = "pool";  ///< name of its threads
  /// `background`: the work of the loops comes first, however long the pool computes. If the
  /// loops keep all CPUs busy, the pool gets about a tenth of the time. `normal`: the pool
  /// competes with the loops.
  ThreadPriority priority = ThreadPriority::background;
  /// Stack size of each thread, for the function and everything that it calls. Unused pages cost
  /// no memory unless memory is locked (see RealTime).
  std::size_t stack_bytes = loop::PlatformThreadOptions::stack_bytes_usual;
  PoolSizeOptions size;
  PoolLaneOptions lane;  ///< the default lane, which BlockingPool::run() uses
};

}  // namespace weir
