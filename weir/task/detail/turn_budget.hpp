// Dividing long work into turns of a loop, so that it never delays the other tasks of its core.
#pragma once

#include <chrono>
#include <cstddef>

#include "weir/base/time.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/detail/next_turn.hpp"

namespace weir {

/// The share of one turn that long work may use: `co_await budget.item()` after each small item.
/// Threads: the loop's.
class TurnBudget {
 public:
  static constexpr std::size_t items_max = 64;
  static constexpr Duration time_max = std::chrono::microseconds(50);

  explicit TurnBudget(Loop& loop) noexcept : loop_(loop), begun_(loop.platform().now()) {}

  /// Waits for the next turn if the work has used its share of this one.
  /// Cancel: not affected.
  class Item : public detail::NextTurn {
   public:
    explicit Item(TurnBudget& budget) noexcept : detail::NextTurn(budget.loop_), budget_(budget) {}
    bool await_ready() const noexcept { return !budget_.is_used(); }
    void await_resume() const noexcept {
      if (budget_.items_ == items_max) budget_.begin();
    }

   private:
    TurnBudget& budget_;
  };
  Item item() noexcept { return Item(*this); }

 private:
  /// Counts an item. Returns true if it was the last one of this turn.
  bool is_used() noexcept {
    ++items_;
    if (items_ < items_max && loop_.platform().now() - begun_ < time_max) return false;
    items_ = items_max;
    return true;
  }
  void begin() noexcept {
    items_ = 0;
    begun_ = loop_.platform().now();
  }

  Loop& loop_;
  Instant begun_;
  std::size_t items_ = 0;
};

}  // namespace weir
