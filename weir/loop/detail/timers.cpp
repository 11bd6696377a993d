#include "weir/loop/detail/timers.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <vector>

namespace weir::loop {

TimerWheel::TimerWheel(Instant now) : origin_(now) {
  constexpr std::size_t usual = 64;
  sort_buffer_.reserve(usual);
}

TimerWheel::~TimerWheel() {
  const auto disarm = [this](detail::List<Timer>& timers) {
    while (Timer* timer = timers.front()) remove(*timer);
  };
  for (auto& level : wheels_) std::for_each(level.begin(), level.end(), disarm);
  disarm(due_);
}

std::uint64_t TimerWheel::tick_of(Instant moment) const noexcept {
  if (moment <= origin_) return 0;
  const auto since = static_cast<std::uint64_t>(moment.time_since_epoch().count()) -
                     static_cast<std::uint64_t>(origin_.time_since_epoch().count());
  return since >> tick_bits;
}

void TimerWheel::start(Timer& timer, Instant deadline) noexcept {
  timer.cancel();
  timer.deadline_ = deadline;
  if (deadline == never) return;
  timer.wheel_ = this;
  armed_.add();
  insert(timer);
}

void TimerWheel::insert(Timer& timer) noexcept {
  const std::uint64_t tick = tick_of(timer.deadline_);
  if (tick < tick_) {
    timer.slot_ = due_slot;
    due_.push_back(timer);
    return;
  }
  // The level is that of the highest digit (base 1024) in which the tick differs from the present
  // one. The timer moves down a level when the present tick reaches that digit.
  const std::uint64_t difference = tick ^ tick_;
  const unsigned level =
      difference == 0 ? 0 : (static_cast<unsigned>(std::bit_width(difference)) - 1) / slot_bits;
  assert(level < level_count);
  const auto slot = static_cast<unsigned>(tick >> (level * slot_bits)) & (slots - 1);
  if (level == 0) {
    if (!occupied_[0].contains(slot) || timer.deadline_ < earliest_[slot])
      earliest_[slot] = timer.deadline_;
  }
  occupied_[level].insert(slot);
  timer.slot_ = static_cast<std::uint16_t>(level * slots + slot);
  wheels_[level][slot].push_back(timer);
}

void TimerWheel::remove(Timer& timer) noexcept {
  timer.unlink();
  timer.wheel_ = nullptr;
  armed_.subtract();
  if (timer.slot_ == due_slot) return;
  const unsigned level = timer.slot_ / slots;
  const unsigned slot = timer.slot_ % slots;
  if (wheels_[level][slot].empty()) occupied_[level].erase(slot);
}

Instant TimerWheel::next() const noexcept {
  if (!due_.empty()) return Instant::min();
  if (!occupied_[0].empty()) return earliest_[occupied_[0].first()];
  for (unsigned level = 1; level < level_count; ++level) {
    if (occupied_[level].empty()) continue;
    const unsigned shift = level * slot_bits;
    const std::uint64_t slot = occupied_[level].first();
    const std::uint64_t block = tick_ >> (shift + slot_bits) << (shift + slot_bits);
    return origin_ + Duration(static_cast<std::int64_t>((block | slot << shift) << tick_bits));
  }
  return never;
}

/// Moves the timers of a finest slot that are due to `due_`, in the order of their deadlines.
void TimerWheel::take_due(unsigned slot, Instant now) noexcept {
  detail::List<Timer>& timers = wheels_[0][slot];
  detail::List<Timer> later;
  sort_buffer_.clear();
  Instant earliest = never;
  while (Timer* timer = timers.pop_front()) {
    if (timer->deadline_ <= now) {
      sort_buffer_.push_back({timer->deadline_, sort_buffer_.size(), timer});
    } else {
      earliest = std::min(earliest, timer->deadline_);
      later.push_back(*timer);
    }
  }
  std::sort(sort_buffer_.begin(), sort_buffer_.end());
  for (const Due& each : sort_buffer_) {
    each.timer->slot_ = due_slot;
    due_.push_back(*each.timer);
  }
  timers.splice_back(later);
  earliest_[slot] = earliest;
  if (timers.empty()) occupied_[0].erase(slot);
}

/// Moves the wheels to `target` and collects in `due_` the timers that are due by `now`.
void TimerWheel::advance_to(std::uint64_t target, Instant now) noexcept {
  for (;;) {
    if (!occupied_[0].empty()) {
      const unsigned slot = occupied_[0].first();
      const std::uint64_t tick = (tick_ & ~std::uint64_t{slots - 1}) | slot;
      if (tick > target) break;
      tick_ = tick;
      take_due(slot, now);
      if (tick == target) return;
      continue;
    }
    unsigned level = 1;
    while (level < level_count && occupied_[level].empty()) ++level;
    if (level == level_count) break;
    const unsigned shift = level * slot_bits;
    const unsigned slot = occupied_[level].first();
    const std::uint64_t block = tick_ >> (shift + slot_bits) << (shift + slot_bits);
    const std::uint64_t tick = block | std::uint64_t{slot} << shift;
    if (tick > target) break;
    tick_ = tick;
    detail::List<Timer> down;
    down.splice_back(wheels_[level][slot]);
    occupied_[level].erase(slot);
    while (Timer* timer = down.pop_front()) insert(*timer);
  }
  tick_ = std::max(tick_, target);
}

void TimerWheel::advance(Instant now) {
  advance_to(tick_of(now), now);
  detail::List<Timer> firing;
  firing.splice_back(due_);
  while (Timer* timer = firing.front()) {
    remove(*timer);
    timer->fire_(*timer);
  }
}

}  // namespace weir::loop
