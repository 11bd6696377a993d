// A SubscriberTable stores the subscribers of one core and calls them for each event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <system_error>
#include <vector>

#include "weir/base/detail/counter.hpp"
#include "weir/base/time.hpp"
#include "weir/event/detail/subscriber.hpp"
#include "weir/loop/metrics.hpp"

namespace weir {

class Loop;

/// Counters of one core's events. The metrics of the core contain, in this order, "events handled",
/// "events rejected", "event failures" and "event runs dropped".
/// Threads: any thread may read them.
struct EventCounters {
  /// Events taken from the queue, each counted once for any number of handlers.
  detail::Counter handled;
  detail::Counter received;  ///< Events from other cores.
  detail::Counter rejected;  ///< Events that were not published because a queue was full or closed.
  detail::Counter vetoed;    ///< Events that an interceptor vetoed.
  detail::Counter failures;  ///< Handlers and interceptors that threw or returned an error.
  /// Events that a task handler dropped: EventTaskOptions::concurrency_max was reached.
  detail::Counter dropped;
};

namespace detail {

/// An EventTopic is one event type and its subscribers, in the order of their registration.
struct EventTopic {
  EventTopic(const EventType& of, std::size_t number) noexcept : type(of), index(number) {}
  const EventType& type;
  const std::size_t index;
  detail::List<Subscriber> handlers;
  detail::List<Subscriber> interceptors;
};

}  // namespace detail

inline AnyEvent::AnyEvent(const detail::EventTopic& topic, const void* value,
                          const EventOptions& options) noexcept
    : type_(&topic.type), index_(topic.index), value_(value), options_(options) {}

namespace detail {

/// A SubscriberTable stores the subscribers of one core.
/// Threads: its core's.
/// Lifetime: registrations may outlive the table, and the table may outlive its loop.
class SubscriberTable final : MetricSource {
 public:
  SubscriberTable();
  ~SubscriberTable();
  SubscriberTable(const SubscriberTable&) = delete;
  SubscriberTable& operator=(const SubscriberTable&) = delete;

  /// Sets the loop that logs failures and whose metrics include the counters.
  void bind(Loop& loop);
  EventCounters& counters() noexcept { return counters_; }

  /// Returns the index of a type's topic, which the first call for the type creates.
  /// Errors: throws std::length_error if there are more types than an EventTag can store.
  std::size_t index_of(const EventType& type) {
    for (std::size_t at = hash(type) & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.type == &type) [[likely]]
        return slot.topic;
      if (slot.type == nullptr) return add_topic(type);
    }
  }
  /// Returns a topic, whose address is stable.
  EventTopic& topic(std::size_t index) const noexcept { return *topics_[index]; }

  EventRegistration add(std::unique_ptr<EventHandler> handler, const EventType& type);
  /// Registers an interceptor of `type`, or of all types if `type` is nullptr.
  EventRegistration add(std::unique_ptr<EventInterceptor> interceptor, const EventType* type);

  /// Freezes the lists for dispatch(): registrations and their ends are queued until
  /// apply_changes().
  void freeze() noexcept;
  /// Returns true if changes are queued; the caller then calls apply_changes() before the next
  /// event.
  bool has_changes() const noexcept { return first_changed_ != nullptr; }
  /// Applies the queued changes and unfreezes the lists. The call may destroy subscribers, whose
  /// destructors may do everything that a handler may do.
  void apply_changes() noexcept;

  /// Calls the interceptors and handlers of an event, between freeze() and apply_changes().
  /// Exceptions are counted and logged.
  void dispatch(const EventTopic& topic, const EventOptions& options, const void* value) {
    if (interceptors_.empty() && topic.interceptors.empty()) [[likely]] {
      call_handlers(topic, options.source, value);
    } else {
      dispatch_intercepted(topic, options, value);
    }
  }

  /// Counts a failure, and logs at most one failure per second.
  void report_failure(const EventType& type, std::error_code error,
                      const std::exception_ptr& thrown);

 private:
  friend class Subscriber;
  struct Slot {
    const EventType* type = nullptr;
    std::size_t topic = 0;
  };

  static std::size_t hash(const EventType& type) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(&type);
    return static_cast<std::size_t>((address >> 4) * 0x9E37'79B9'7F4A'7C15 >> 32);
  }
  void collect(MetricSnapshot& sum) const override;
  std::size_t add_topic(const EventType& type);
  void insert_slot(const EventType& type, std::size_t topic) noexcept;
  EventRegistration insert(Subscriber& subscriber, detail::List<Subscriber>& list) noexcept;
  void remove(Subscriber& subscriber) noexcept;
  void queue_change(Subscriber& subscriber) noexcept;
  static void detach_all(detail::List<Subscriber>& list) noexcept;

  std::size_t call_handlers(const EventTopic& topic, EventSource source, const void* value);
  void dispatch_intercepted(const EventTopic& topic, const EventOptions& options,
                            const void* value);
  bool vetoed(const detail::List<Subscriber>& interceptors, const EventTopic& topic,
              const AnyEvent& event);
  void call_after(const detail::List<Subscriber>& interceptors, const EventTopic& topic,
                  const AnyEvent& event, const EventOutcome& outcome);

  std::vector<std::unique_ptr<EventTopic>> topics_;
  // Open addressing, at most half full; the number of slots is a power of two.
  std::unique_ptr<Slot[]> slots_;
  std::size_t mask_;
  detail::List<Subscriber> interceptors_;  // for events of all types
  Subscriber* first_changed_ = nullptr;
  Subscriber* last_changed_ = nullptr;
  bool frozen_ = false;
  Loop* loop_ = nullptr;
  Instant failure_logged_ = Instant::min();
  EventCounters counters_;
};

/// Writes one log line for a failed subscriber of events of this type.
void log_event_failure(Loop& loop, const EventType& type, std::error_code error,
                       const std::exception_ptr& thrown);

}  // namespace detail
}  // namespace weir
