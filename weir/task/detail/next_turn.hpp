// Waits for the next turn of a loop.
#pragma once

#include <coroutine>

#include "weir/loop/loop.hpp"
#include "weir/task/context.hpp"

namespace weir::detail {

/// `co_await NextTurn(loop)` continues in the next turn of the awaiting task's loop. The loop
/// submits and takes input before, which it does not do for yield().
/// Cancel: not affected.
class [[nodiscard]] NextTurn : public Waiter, TurnObserver {
 public:
  explicit NextTurn(Loop& loop) noexcept
      : TurnObserver([](TurnObserver& self) { static_cast<NextTurn&>(self).resume_later(); }),
        loop_(loop) {}
  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    set_coroutine(handle);
    loop_.observe_turn_end(*this);
  }
  void await_resume() const noexcept {}

 private:
  Loop& loop_;
};

}  // namespace weir::detail
