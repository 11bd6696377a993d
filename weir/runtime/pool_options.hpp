// What can be chosen about a pool of threads for blocking work, with the defaults.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include "weir/base/time.hpp"
#include "weir/runtime/when_full.hpp"
#include "weir/loop/contract/detail/platform_thread.hpp"

namespace weir {

/// How many threads of a pool may have work at once.
struct PoolSizeOptions {
  /// So many, started when first needed and kept. 0: automatic, which keeps as many threads running
  /// as there are CPUs for them, and adds others while those that have work are blocked.
  std::size_t fixed = 0;
  // For automatic:
  std::size_t min = 1;  ///< so many at least, and kept without work; 0 is 1
  /// And never more, but `min`; 0: Host::threads_max().
  std::size_t max = 0;
  Duration idle_timeout = std::chrono::seconds(10);  ///< a thread without work ends after that
  /// How often the threads are looked at while work is queued; more seldom when there are so many
  /// that looking would cost more than a twentieth of a CPU.
  Duration sample_period = std::chrono::milliseconds(5);
};

/// A kind of work in a pool, kept from using up what other kinds need.
struct PoolLaneOptions {
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  std::string name = "work";
  std::size_t queue_max = 4096;  ///< work that waits for a thread, beyond that which has one
  WhenFull when_full = WhenFull::reject;
  /// Work of a higher priority is taken first; of the same, whatever came first.
  int priority = 0;
  /// At most this part of the pool's present size, but at least one thread; what is no number from
  /// 0 to 1 counts as the nearest, NaN as 0. An automatic size is two or more then, unless its
  /// `max` forbids it: of a single thread there is nothing to share, and such work may hold it for
  /// long.
  double share = 1.0;
  /// So many threads more than the size has are there for this kind of work alone: however long the
  /// others keep the pool busy, so much of it runs. Its share is beyond them, and may be none.
  std::size_t beside = 0;
  std::size_t running_max = unlimited;  ///< and never more threads than that
};

struct BlockingPoolOptions {
  std::string name = "pool";  ///< its threads are called so
  /// Behind: what the loops have to do comes first, however long the pool computes; where they keep
  /// all CPUs busy, the pool has about a tenth. Equal: it competes with them.
  ThreadRank rank = ThreadRank::behind;
  /// Of each thread; what the function needs, and what it calls. Only what is used of it costs
  /// memory, unless memory is locked (see RealTime): then all of it does.
  std::size_t stack_bytes = HostThreadOptions::stack_bytes_usual;
  PoolSizeOptions size;
  PoolLaneOptions lane;  ///< for what is run on the pool itself
};

}  // namespace weir
