#include "weir/loop/turn_watch.hpp"

#include "weir/loop/loop.hpp"

namespace weir {

std::coroutine_handle<> Running::look_and_go_on(std::coroutine_handle<> coroutine) noexcept {
  Loop::current()->watch().look_at_part();
  function_ = function_of(coroutine);
  return coroutine;
}

bool TurnWatch::look() noexcept {
  // Where the clock is asked, there is always a tick to be looked at.
  const std::uint32_t left = exact_ ? 1 : 0;
  std::uint32_t ticks = ticks_.exchange(left, std::memory_order_relaxed) & ~part_blamed;
  if (exact_) {
    const Instant now = host_.now();
    ticks = static_cast<std::uint32_t>((now - looked_at_) / tick_length) + 1;
    looked_at_ = now;
  }
  if (ticks <= longest_) return false;
  longest_ = ticks;
  return true;
}

void TurnWatch::look_at_part() noexcept {
  const bool part = is_part_blamed();
  const bool blamed = look();
  if (blamed) suspect_ = {Running::function()};
  if (blamed || part) ticks_.fetch_or(part_blamed, std::memory_order_relaxed);
}

void TurnWatch::wake_sleeping_watchdog() noexcept {
  watchdog_sleeps_.store(false, std::memory_order_relaxed);
  if (wake_ != nullptr) wake_(watchdog_);
}

}  // namespace weir
