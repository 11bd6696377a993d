// The timer and the cancellation of a sleep.
#include "weir/task/sleep.hpp"

namespace weir {

bool SleepAwaiter::begin() noexcept {
  if (!join()) {
    cancelled_ = true;
    return false;
  }
  Loop& loop = *context().loop;
  const Instant deadline = relative_ ? after(loop.platform().now(), length_) : Instant(length_);
  loop.timers().start(static_cast<loop::Timer&>(*this), deadline);
  return true;
}

void SleepAwaiter::fire(loop::Timer& timer) {
  static_cast<SleepAwaiter&>(timer).resume_later();
}

void SleepAwaiter::on_cancel(CancelNode& node) {
  auto& self = static_cast<SleepAwaiter&>(node);
  self.cancel();
  self.cancelled_ = true;
  self.resume_later();
}

}  // namespace weir
