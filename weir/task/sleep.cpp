// The timer and the cancellation of a sleep.
#include "weir/task/sleep.hpp"

namespace weir {

bool SleepAwaiter::begin() noexcept {
  if (context().cancelled()) {
    cancelled_ = true;
    return false;
  }
  Loop& loop = *context().loop;
  const Instant deadline = relative_ ? after(loop.platform().now(), length_) : Instant(length_);
  loop.timers().start(static_cast<Timer&>(*this), deadline);
  if (context().cancel != nullptr) context().cancel->add(*this);
  return true;
}

void SleepAwaiter::fire(Timer& timer) {
  auto& self = static_cast<SleepAwaiter&>(timer);
  static_cast<CancelNode&>(self).unlink();
  self.resume_later();
}

void SleepAwaiter::cancel(CancelNode& node) {
  auto& self = static_cast<SleepAwaiter&>(node);
  static_cast<Timer&>(self).cancel();
  self.cancelled_ = true;
  self.resume_later();
}

}  // namespace weir
