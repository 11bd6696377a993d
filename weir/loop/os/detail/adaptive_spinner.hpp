// Whether a thread that has nothing to do should wait awake for a moment before it sleeps.
#pragma once

#include <algorithm>
#include <atomic>
#include <utility>

#include "weir/base/time.hpp"

namespace weir {

/// One thread at a time may spin: a second one would take a CPU from those that work.
/// Threads: any. Lifetime: outlives its Spinnings.
class SpinPlace {
 public:
  /// `cpus` that the threads may run on: on a single one, spinning only keeps the others from work.
  explicit SpinPlace(std::size_t cpus) noexcept : useful_(cpus > 1) {}
  // relaxed, both: it is a right, and guards no memory.
  bool take() noexcept { return useful_ && !taken_.exchange(true, std::memory_order_relaxed); }
  void give_back() noexcept { taken_.store(false, std::memory_order_relaxed); }

 private:
  const bool useful_;
  std::atomic<bool> taken_{false};
};

/// Remembers how it went: a thread that is called again soon, as a rule, is spared the sleep and
/// its callers the system call; one that is not spins ever more seldom. Threads: one.
class Spinning {
 public:
  /// About twice what it takes to wake a sleeping loop and hear from it.
  static constexpr Duration longest = std::chrono::microseconds(50);

  /// Whether to spin this time; then succeeded() or failed() is to be called.
  bool begin(SpinPlace& place) noexcept {
    if (pauses_left_ > 0) {
      --pauses_left_;
      return false;
    }
    return place.take();
  }
  void succeeded() noexcept { pauses_ = 0; }
  void failed() noexcept {
    pauses_ = std::min(2 * pauses_ + 1, pauses_max);
    pauses_left_ = pauses_;
  }

 private:
  static constexpr unsigned pauses_max = 127;
  unsigned pauses_ = 0;  // after the last failure
  unsigned pauses_left_ = 0;
};

}  // namespace weir
