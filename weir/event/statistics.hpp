// EventStatistics counts and times the events of each type on a core.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/event/core_events.hpp"

namespace weir {

// A histogram of durations with buckets that grow with the duration.

/// An EventHistogram counts durations from 0 to Duration::max(). No bucket is wider than a
/// sixteenth of the values that it holds (the idea of HdrHistogram). The object has 8 KiB.
/// Threads: one at a time.
class EventHistogram {
 public:
  /// Adds a duration; a negative one counts as 0.
  void add(Duration length) noexcept;
  /// Adds all durations of `other`.
  void merge(const EventHistogram& other) noexcept;

  std::uint64_t count() const noexcept { return count_; }
  /// All functions below return 0 if the histogram is empty.
  Duration minimum() const noexcept { return count_ == 0 ? Duration() : minimum_; }
  Duration average() const noexcept;
  Duration maximum() const noexcept { return maximum_; }
  /// Returns the duration that `percent` percent of all durations do not exceed. The result is
  /// rounded up by at most a sixteenth and never exceeds maximum(). The range of `percent` is 0 to
  /// 100.
  Duration percentile(double percent) const noexcept;

 private:
  // Each value below 16 has its own bucket; above, each power of two has 16 buckets.
  static constexpr unsigned sub_bucket_bits = 4;
  static constexpr std::size_t sub_buckets = std::size_t{1} << sub_bucket_bits;
  static constexpr std::size_t bucket_count = (63 - sub_bucket_bits + 1) * sub_buckets;

  static std::size_t bucket_of(std::uint64_t value) noexcept;
  static std::uint64_t bucket_max(std::size_t bucket) noexcept;

  std::array<std::uint64_t, bucket_count> buckets_{};
  std::uint64_t count_ = 0;
  long double sum_ = 0;  // in nanoseconds; exact for 500 years
  Duration minimum_ = Duration::max();
  Duration maximum_{};
};

/// Counts and durations of one type of event on one core.
struct EventSummary {
  std::string_view type;  ///< The type's name, as in AnyEvent::type_name().
  std::uint64_t count = 0;
  Duration minimum{};
  Duration average{};
  Duration maximum{};
  Duration p99{};  ///< The 99th percentile; see EventHistogram::percentile().
};

/// EventStatistics registers two interceptors of all events of a core for its lifetime. The
/// interceptors measure the time from before the first handler to after the last one, by the
/// platform's clock. Vetoed events are not counted. The time of a task handler after its first
/// wait is not included. The cost is two clock reads for each event and 8 KiB for each type that
/// has occurred. Events have no extra cost without an EventStatistics.
/// Threads: its core's.
/// Lifetime: may outlive the CoreEvents, and keeps its counts then.
class EventStatistics {
 public:
  explicit EventStatistics(CoreEvents& events);
  EventStatistics(const EventStatistics&) = delete;
  EventStatistics& operator=(const EventStatistics&) = delete;

  /// Returns a summary for each type that has occurred, in the order of AnyEvent::type_index().
  std::vector<EventSummary> all() const;
  /// Returns the summary of T; all its numbers are 0 if no T has occurred.
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

  loop::PlatformClock& clock_;
  Instant started_at_{};
  std::vector<std::unique_ptr<Entry>> entries_;  // by type_index(); nullptr if none has occurred
  EventRegistration before_;
  EventRegistration after_;
};

}  // namespace weir
