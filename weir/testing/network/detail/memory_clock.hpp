// The virtual clock of simulated hosts, and the list of what happens when it arrives somewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "weir/base/time.hpp"

namespace weir {

/// Time that stands still until somebody moves it. What is scheduled for one moment happens in the
/// order in which it was scheduled. Threads: one.
class MemoryClock {
 public:
  using Event = std::function<void()>;
  /// Names a scheduled event, to forget it.
  using EventId = std::pair<Instant, std::uint64_t>;

  Instant now() const noexcept { return now_; }

  /// Calls `event` when the clock arrives at `moment`; one in the past happens with the next move.
  EventId at(Instant moment, Event event);
  /// Does nothing when it has happened.
  void forget(const EventId& id) { events_.erase(id); }

  /// When the next event happens; `never` without one.
  Instant next() const noexcept;

  /// Moves to `moment`, never back, and lets everything happen that is scheduled on the way, each
  /// at its own time; also what is scheduled meanwhile. Returns whether anything happened.
  bool move_to(Instant moment);

 private:
  // Not at the epoch: code that takes Instant{} for a moment in the past is right.
  Instant now_{std::chrono::hours(1)};
  std::uint64_t scheduled_ = 0;
  std::map<EventId, Event> events_;
};

}  // namespace weir
