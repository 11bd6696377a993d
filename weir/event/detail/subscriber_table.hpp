// Who is told of which events on one core, and the telling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <system_error>
#include <vector>

#include "weir/event/detail/subscriber.hpp"
#include "weir/base/detail/counter.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/figures.hpp"

namespace weir {

class Loop;

/// Of one core. Any thread may read them.
struct EventCounters {
  Counter handled;   ///< taken from the queue: each once, however many handlers it had
  Counter arrived;   ///< that came from other cores
  Counter refused;   ///< not published: a queue was full, or closed
  Counter vetoed;    ///< by interceptors
  Counter failures;  ///< of handlers and interceptors: they threw, or returned an error
  Counter dropped;   ///< of handlers that wait: more runs than EventTaskOptions::running_max
};

namespace detail {

/// One type of events and its receivers, in the order in which they were registered.
struct EventTopic {
  EventTopic(const EventType& of, std::size_t number) noexcept : type(of), index(number) {}
  const EventType& type;
  const std::size_t index;
  List<EventReceiver> handlers;
  List<EventReceiver> interceptors;
};

}  // namespace detail

inline AnyEvent::AnyEvent(const detail::EventTopic& topic, const void* value,
                          const EventOptions& options) noexcept
    : type_(&topic.type), index_(topic.index), value_(value), options_(options) {}

namespace detail {

/// Threads: its core's. Lifetime: registrations may outlive it, and it may outlive its loop.
class EventRoster final : FigureSource {
 public:
  EventRoster();
  ~EventRoster();
  EventRoster(const EventRoster&) = delete;
  EventRoster& operator=(const EventRoster&) = delete;

  /// Where failures are logged, and in whose figures its counters are.
  void bind(Loop& loop);
  EventCounters& counters() noexcept { return counters_; }

  /// The number of a type's topic, which is made when it is first asked for. Errors: throws
  /// std::length_error beyond the number of types that an EventTag can tell apart.
  std::size_t index_of(const EventType& type) {
    for (std::size_t at = hash(type) & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.type == &type) [[likely]]
        return slot.topic;
      if (slot.type == nullptr) return add_topic(type);
    }
  }
  /// It stays where it is.
  EventTopic& topic(std::size_t index) const noexcept { return *topics_[index]; }

  EventRegistration add(std::unique_ptr<EventHandler> handler, const EventType& type);
  /// Of all types where there is none.
  EventRegistration add(std::unique_ptr<EventInterceptor> interceptor, const EventType* type);

  /// From here to settle(), nobody joins or leaves the lists that tell() walks.
  void hold_still() noexcept;
  /// Whether anybody has asked to join or leave since: then settle() before the next event.
  bool changed() const noexcept { return first_changed_ != nullptr; }
  /// Lets them. Destroys receivers, whose destructors may do anything that handlers may.
  void settle() noexcept;

  /// Calls everybody concerned, between hold_still() and settle(). Exceptions are counted and
  /// logged.
  void tell(const EventTopic& topic, const EventOptions& options, const void* value) {
    if (interceptors_.empty() && topic.interceptors.empty()) [[likely]] {
      call_handlers(topic, options.source, value);
    } else {
      tell_intercepted(topic, options, value);
    }
  }

  /// Counts a failure and logs it, one a second at most.
  void failed(const EventType& type, std::error_code error, const std::exception_ptr& thrown);

 private:
  friend class EventReceiver;
  struct Slot {
    const EventType* type = nullptr;
    std::size_t topic = 0;
  };

  static std::size_t hash(const EventType& type) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(&type);
    return static_cast<std::size_t>((address >> 4) * 0x9E37'79B9'7F4A'7C15 >> 32);
  }
  void tell(FigureSum& sum) const override;
  std::size_t add_topic(const EventType& type);
  void place(const EventType& type, std::size_t topic) noexcept;
  EventRegistration join(EventReceiver& receiver, List<EventReceiver>& list) noexcept;
  void leave(EventReceiver& receiver) noexcept;
  void note_change(EventReceiver& receiver) noexcept;
  static void dismiss(List<EventReceiver>& list) noexcept;

  std::size_t call_handlers(const EventTopic& topic, EventSource source, const void* value);
  void tell_intercepted(const EventTopic& topic, const EventOptions& options, const void* value);
  bool vetoed(const List<EventReceiver>& interceptors, const EventTopic& topic,
              const AnyEvent& event);
  void tell_after(const List<EventReceiver>& interceptors, const EventTopic& topic,
                  const AnyEvent& event, const EventOutcome& outcome);

  std::vector<std::unique_ptr<EventTopic>> topics_;
  // Open addressing, at most half full; the number of slots is a power of two.
  std::unique_ptr<Slot[]> slots_;
  std::size_t mask_;
  List<EventReceiver> interceptors_;  // of all types
  EventReceiver* first_changed_ = nullptr;
  EventReceiver* last_changed_ = nullptr;
  bool still_ = false;
  Loop* loop_ = nullptr;
  Instant failure_logged_ = Instant::min();
  EventCounters counters_;
};

/// One log line for a failure of a receiver of events of this type.
void log_event_failure(Loop& loop, const EventType& type, std::error_code error,
                       const std::exception_ptr& thrown);

}  // namespace detail
}  // namespace weir
