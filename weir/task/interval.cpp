#include "weir/task/interval.hpp"

#include <utility>

namespace weir {

Interval::Interval(Duration period, const IntervalOptions& options) noexcept
    : period_(period), options_(options) {
  assert(period > Duration::zero());
}

void Interval::restart() noexcept {
  assert(!waited_on_);
  started_ = false;
  next_ = {};
}

/// The tick that is due at `now`; moves on to the one behind it.
Tick Interval::take(Instant now) noexcept {
  if (options_.missed == MissedTicks::skip && now > next_.due) {
    const auto late = (now - next_.due) / period_;
    next_.due += late * period_;
    next_.missed = static_cast<std::uint64_t>(late);
    next_.number += next_.missed;
  }
  const Tick taken = next_;
  next_ = {taken.number + 1, after(taken.due, period_), 0};
  return taken;
}

bool Interval::Next::begin(Loop& loop) {
  assert(!interval_.waited_on_ && "one next() at a time");
  interval_.waited_on_ = true;
  loop_ = &loop;
  if (!std::exchange(interval_.started_, true)) {
    const Duration first = interval_.options_.first_after;
    const Duration length = first < Duration::zero() ? interval_.period_ : first;
    interval_.next_.due = after(loop.host().now(), length);
  }
  loop.timers().start(*this, interval_.next_.due);
  return true;
}

void Interval::Next::withdraw() noexcept {
  cancel();
  interval_.waited_on_ = false;
}

void Interval::Next::fire(Timer& timer) {
  auto& self = static_cast<Next&>(timer);
  self.interval_.waited_on_ = false;
  self.tick_ = self.interval_.take(self.loop_->now());
  self.grant();
}

}  // namespace weir
