// Counter: a number with one writing thread, which any thread may read.
#pragma once

#include <atomic>
#include <cstdint>

namespace weir::detail {

/// A Counter has one writing thread and any number of reading threads. An addition is a plain load
/// and store. Relaxed order is enough, because a count orders no other memory and readers need only
/// a recent value.
class Counter {
 public:
  void add(std::uint64_t amount = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  void subtract(std::uint64_t amount = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) - amount, std::memory_order_relaxed);
  }
  /// Raises the value to `amount` if it is less. Used for a maximum over time.
  void update_max(std::uint64_t amount) noexcept {
    if (amount > value()) value_.store(amount, std::memory_order_relaxed);
  }
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace weir::detail
