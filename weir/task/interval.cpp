// The grid of an Interval and the waits for its ticks.
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

/// Returns the tick that is due at `now`, and moves on to the next tick.
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

/// Starts the grid unless it has begun.
void Interval::start_grid(Loop& loop) noexcept {
  if (std::exchange(started_, true)) return;
  const Duration first = options_.initial_delay;
  next_.due = after(loop.platform().now(), first < Duration::zero() ? period_ : first);
}

/// Takes the next tick if its time has passed.
bool Interval::Next::due(Loop& loop) noexcept {
  assert(!interval_.waited_on_ && "one next() at a time");
  interval_.start_grid(loop);
  if (interval_.next_.due > loop.now()) return false;
  tick_ = interval_.take(loop.now());
  return true;
}

bool Interval::Next::begin(Loop& loop) {
  assert(!interval_.waited_on_ && "one next() at a time");
  interval_.waited_on_ = true;
  loop_ = &loop;
  interval_.start_grid(loop);
  loop.timers().start(*this, interval_.next_.due);
  return true;
}

void Interval::Next::withdraw() noexcept {
  cancel();
  interval_.waited_on_ = false;
}

void Interval::Next::fire(loop::Timer& timer) {
  auto& self = static_cast<Next&>(timer);
  self.interval_.waited_on_ = false;
  self.tick_ = self.interval_.take(self.loop_->now());
  self.grant();
}

}  // namespace weir
