// Parker: puts one thread to sleep until another thread wakes it.
#pragma once

#include <atomic>
#include <cstdint>

#include "weir/base/time.hpp"

namespace weir::os {

/// A Parker blocks one thread on a futex(2) until it is notified. A notification that arrives
/// before park() is kept. Several notifications count as one.
/// Threads: one thread for park(); any for is_notified() and unpark().
/// Lifetime: the parker outlives each call of unpark().
class Parker {
 public:
  /// Blocks until unpark() has been called since the last return of park(), or os::monotonic_now()
  /// has reached `until`. It may also return spuriously.
  void park(Instant until = never) noexcept;
  /// Returns true if park() would return immediately. The writes of the thread that called unpark()
  /// are then visible.
  bool is_notified() const noexcept { return state_.load(std::memory_order_acquire) == notified; }
  /// Wakes the parked thread. The earlier writes of the calling thread are visible to it after
  /// park() returns. The call costs a system call only if the other thread sleeps.
  void unpark() noexcept;

 private:
  static constexpr std::uint32_t awake = 0;
  static constexpr std::uint32_t asleep = 1;
  static constexpr std::uint32_t notified = 2;
  std::atomic<std::uint32_t> state_{awake};
};

}  // namespace weir::os
