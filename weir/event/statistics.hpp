// How often events of each type were handled on a core, and how long that took.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "weir/app/event_histogram.hpp"
#include "weir/event/detail/core_events.hpp"

namespace weir {

struct EventSummary {
  std::string_view type;  ///< as AnyEvent::type_name()
  std::uint64_t count = 0;
  Duration minimum{};
  Duration average{};
  Duration maximum{};
  Duration p99{};  ///< 99 of a hundred took no longer; see EventHistogram::percentile()
};

/// Two interceptors of all events of a core, as long as it lives: from before the first handler to
/// after the last, by the host's clock. What handlers that wait do after their first wait is not in
/// it, nor are events that were vetoed. It costs two looks at the clock for each event, and 8 KiB
/// for each type that has come; without it, events cost nothing more.
/// Threads: its core's. Lifetime: any; what it has counted stays when the Events have gone.
class EventStatistics {
 public:
  explicit EventStatistics(Events& events);
  EventStatistics(const EventStatistics&) = delete;
  EventStatistics& operator=(const EventStatistics&) = delete;

  /// One for each type of which any has come, in the order of AnyEvent::type_index().
  std::vector<EventSummary> all() const;
  /// Of one type; counts nothing when none has come.
  template <class T>
  EventSummary of() const {
    return of(detail::event_type<T>);
  }

 private:
  struct Entry {
    explicit Entry(const detail::EventType& of) noexcept : type(&of) {}
    EventSummary summary() const noexcept;
    const detail::EventType* type;
    EventHistogram times;
  };
  EventSummary of(const detail::EventType& type) const noexcept;
  void add(const AnyEvent& event, Duration length);

  Host& host_;
  Instant began_{};
  std::vector<std::unique_ptr<Entry>> entries_;  // by type_index(); nullptr: none has come
  EventRegistration before_;
  EventRegistration after_;
};

}  // namespace weir
