// Counts who is about to wake or to start a thread, so that none is freed under their hands.
#pragma once

#include <atomic>
#include <mutex>

namespace weir {

/// Calls that are decided upon with a mutex, and made without it. Threads: any.
class PoolCalls {
 public:
  /// The mutex outlives it.
  explicit PoolCalls(std::mutex& mutex) noexcept : mutex_(mutex) {}

  /// The mutex is held.
  void begin() noexcept {
    // relaxed: the mutex orders it before whoever looks for none(), or begins to wait for that.
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  /// The last thing that a call does: what it belongs to may be gone afterwards. Not with the
  /// mutex.
  void end() noexcept;
  /// The mutex is held, so that none begins.
  bool none() const noexcept {
    // acquire pairs with the release in end(): all that the calls did has been done.
    return (count_.load(std::memory_order_acquire) & ~awaited) == 0;
  }
  /// Returns when all have ended; none begins any more. Once, and not with the mutex. It sleeps: a
  /// real-time thread that only yielded would keep the one that it waits for from the CPU.
  void await_none() noexcept;

 private:
  static constexpr unsigned awaited = 1U << 31;  // somebody is in await_none()
  std::mutex& mutex_;
  std::atomic<unsigned> count_{0};
};

}  // namespace weir
