// The virtual clock: a sorted list of events.
#include "weir/testing/network/detail/memory_clock.hpp"

#include <algorithm>

namespace weir {

MemoryClock::EventId MemoryClock::at(Instant moment, Event event) {
  const EventId id{std::max(moment, now_), ++scheduled_};
  events_.emplace(id, std::move(event));
  return id;
}

Instant MemoryClock::next() const noexcept {
  return events_.empty() ? never : events_.begin()->first.first;
}

bool MemoryClock::move_to(Instant moment) {
  bool happened = false;
  while (next() <= moment) {
    auto first = events_.extract(events_.begin());
    now_ = std::max(now_, first.key().first);
    first.mapped()();
    happened = true;
  }
  now_ = std::max(now_, moment);
  return happened;
}

}  // namespace weir
