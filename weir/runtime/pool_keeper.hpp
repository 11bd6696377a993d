// The thread that keeps a pool at its size: looks at the others, and clears away those that ended.
#pragma once

#include <optional>
#include <vector>

#include "weir/runtime/pool_watch.hpp"
#include "weir/loop/contract/detail/platform_thread.hpp"

namespace weir {

class PoolCrew;

/// It sleeps unless the size keeps work waiting in a pool of automatic size, a thread has ended, or
/// the size has been set.
/// Threads: step() one.
class PoolKeeper final : public ThreadWork {
 public:
  explicit PoolKeeper(PoolCrew& crew) noexcept : crew_(crew) {}
  std::optional<Instant> step() noexcept override;

  HostThread* thread = nullptr;  ///< its own; set before its first step

 private:
  Instant look_after();
  /// Frees the threads that have ended. Returns whether some had to be left for later.
  bool clear_away();
  Instant watch();

  PoolCrew& crew_;
  PoolWatch watch_;
  std::vector<WatchedThread*> watched_;
  bool watching_ = false;  // a first look has been had
  unsigned calm_ = 0;      // looks on end that changed nothing
};

}  // namespace weir
