// Adaptive spinning: decides if a thread without work waits awake for a moment before it sleeps.
#pragma once

#include <algorithm>
#include <atomic>
#include <utility>

#include "weir/base/time.hpp"

namespace weir::loop {

/// A SpinPermit lets one thread at a time spin; a second spinning thread would take a CPU from
/// threads that work.
/// Threads: any.
/// Lifetime: outlives the threads that spin with it.
class SpinPermit {
 public:
  /// `cpus` is the number of CPUs that the threads may run on. No thread spins on a single CPU,
  /// which would only keep the others from work.
  explicit SpinPermit(std::size_t cpus) noexcept : enabled_(cpus > 1) {}
  // Both are relaxed: the permit guards no memory.
  bool try_acquire() noexcept {
    return enabled_ && !taken_.exchange(true, std::memory_order_relaxed);
  }
  void release() noexcept { taken_.store(false, std::memory_order_relaxed); }

 private:
  const bool enabled_;
  std::atomic<bool> taken_{false};
};

/// An AdaptiveSpinner remembers if spinning was of use. A thread that usually gets work soon
/// spins, which saves its sleep and the system call of the thread that wakes it. A thread that
/// does not then waits without spinning: 1, 3, 7 ... times after failures in a row, at most 127.
/// Threads: one.
class AdaptiveSpinner {
 public:
  /// The longest spin: about twice the time to wake a sleeping loop and get its answer.
  static constexpr Duration spin_max = std::chrono::microseconds(50);

  /// Returns true if the thread shall spin this time. The caller then calls record_success() or
  /// record_failure(), and releases the permit.
  bool try_begin(SpinPermit& permit) noexcept {
    if (pauses_left_ > 0) {
      --pauses_left_;
      return false;
    }
    return permit.try_acquire();
  }
  void record_success() noexcept { pauses_ = 0; }
  void record_failure() noexcept {
    pauses_ = std::min(2 * pauses_ + 1, pauses_max);
    pauses_left_ = pauses_;
  }

 private:
  static constexpr unsigned pauses_max = 127;
  unsigned pauses_ = 0;  // waits without spinning after the last failure
  unsigned pauses_left_ = 0;
};

}  // namespace weir::loop
