// The virtual clock of simulated hosts, with the events that are scheduled on it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "weir/base/time.hpp"

namespace weir {

/// A MemoryClock stands still until move_to(). Events of one moment happen in the order in which
/// they were scheduled.
/// Threads: one.
class MemoryClock {
 public:
  using Event = std::function<void()>;
  /// Identifies a scheduled event for cancel().
  using EventId = std::pair<Instant, std::uint64_t>;

  Instant now() const noexcept { return now_; }

  /// Calls `event` when the clock arrives at `moment`. An event for a moment in the past happens
  /// with the next move.
  EventId at(Instant moment, Event event);
  /// Cancels an event. Does nothing if it has happened.
  void cancel(const EventId& id) { events_.erase(id); }

  /// Returns the time of the next event; `never` if there is none.
  Instant next() const noexcept;

  /// Moves to `moment`, never back. The events up to then happen on the way, each at its own
  /// time, including events that are scheduled meanwhile. Returns true if any event happened.
  bool move_to(Instant moment);

 private:
  // The clock does not start at the epoch, because code may use Instant{} as a moment in the
  // past.
  Instant now_{std::chrono::hours(1)};
  std::uint64_t scheduled_ = 0;
  std::map<EventId, Event> events_;
};

}  // namespace weir
