#include "weir/event/statistics.hpp"

namespace weir {

EventStatistics::EventStatistics(Events& events)
    : host_(events.loop().host()),
      before_(events.before([this](const AnyEvent&) {
        began_ = host_.now();
        return EventVerdict::pass;
      })),
      after_(events.after([this](const AnyEvent& event, const EventOutcome& outcome) {
        if (!outcome.vetoed) add(event, host_.now() - began_);
      })) {}

void EventStatistics::add(const AnyEvent& event, Duration length) {
  const std::size_t index = event.type_index();
  if (index >= entries_.size()) entries_.resize(index + 1);
  auto& entry = entries_[index];
  if (entry == nullptr) entry = std::make_unique<Entry>(*event.type_);
  entry->times.add(length);
}

EventSummary EventStatistics::Entry::summary() const noexcept {
  return {.type = type->name,
          .count = times.count(),
          .minimum = times.minimum(),
          .average = times.average(),
          .maximum = times.maximum(),
          .p99 = times.percentile(99)};
}

std::vector<EventSummary> EventStatistics::all() const {
  std::vector<EventSummary> summaries;
  for (const auto& entry : entries_) {
    if (entry != nullptr) summaries.push_back(entry->summary());
  }
  return summaries;
}

EventSummary EventStatistics::of(const detail::EventType& type) const noexcept {
  for (const auto& entry : entries_) {
    if (entry != nullptr && entry->type == &type) return entry->summary();
  }
  return {.type = type.name};
}

}  // namespace weir
