// Counters that one core writes and anybody may read.
#pragma once

#include <atomic>
#include <cstdint>

namespace weir {

/// A count with one writing thread and any number of readers. Adding is a plain load and store:
/// relaxed is enough, because a count orders nothing else and readers want only a recent value.
class Counter {
 public:
  void add(std::uint64_t amount = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  void subtract(std::uint64_t amount = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) - amount, std::memory_order_relaxed);
  }
  /// For the most there has been of something.
  void raise_to(std::uint64_t amount) noexcept {
    if (amount > value()) value_.store(amount, std::memory_order_relaxed);
  }
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace weir
