// Where one thread rests until another wakes it.
#pragma once

#include <atomic>
#include <cstdint>

#include "weir/base/time.hpp"

namespace weir::os {

/// One bit of memory and a place to sleep (futex(2)): a wake-up that comes first is kept, several
/// are one. Threads: park() one and the same; unpark() any. Lifetime: until unpark() has returned.
class Parker {
 public:
  /// Returns once unpark() has been called since the last return, or when os::monotonic_now() has
  /// reached `until`, or now and then for no reason.
  void park(Instant until = never) noexcept;
  /// Whether park() would return at once. What the caller did before is seen then.
  bool has_call() const noexcept { return state_.load(std::memory_order_acquire) == called; }
  /// What this thread did before is seen by the one that park() returns on. Costs a system call
  /// only where that one sleeps.
  void unpark() noexcept;

 private:
  static constexpr std::uint32_t awake = 0;
  static constexpr std::uint32_t asleep = 1;
  static constexpr std::uint32_t called = 2;
  std::atomic<std::uint32_t> state_{awake};
};

}  // namespace weir::os
