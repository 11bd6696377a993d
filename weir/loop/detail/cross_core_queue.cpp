#include "weir/loop/detail/cross_core_queue.hpp"

#include "weir/loop/loop.hpp"

namespace weir::loop {

void CrossCoreReceiver::post(Loop& to) noexcept {
  to_ = &to;
  to.post(*this);
}

void CrossCoreReceiver::receive_again(Loop& loop) noexcept {
  if (std::exchange(again_.loop, &loop) != nullptr) return;
  // A timer, because a busy loop runs its ready queue for long in one turn.
  loop.timers().start(again_, loop.now());
}

void CrossCoreReceiver::Again::on_turn_end(Timer& self) {
  auto& again = static_cast<Again&>(self);
  again.loop->ready(again);
}

}  // namespace weir::loop
