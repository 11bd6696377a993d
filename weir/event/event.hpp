// The words of typed events: how urgent one is, who published it, and an event of any type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/app/event_type.hpp"

namespace weir {

namespace detail {
class EventRoster;
class EventTag;
struct EventTopic;
}  // namespace detail

/// How urgent an event is. Of those that wait on a core, the next to be handled is always of the
/// most urgent class that has any; within a class it is the one that came first.
enum class EventPriority : std::uint8_t { urgent, high, normal, low };
inline constexpr std::size_t event_priorities = 4;

/// Who publishes: a number that EventBus::make_source() has given to nobody else of that bus, or,
/// by default, nobody in particular. Threads: a plain value.
class EventSource {
 public:
  constexpr EventSource() noexcept = default;
  constexpr explicit operator bool() const noexcept { return number_ != 0; }
  constexpr std::uint64_t number() const noexcept { return number_; }
  friend constexpr bool operator==(EventSource, EventSource) noexcept = default;

 private:
  friend class EventBus;
  friend class detail::EventTag;
  explicit constexpr EventSource(std::uint64_t number) noexcept : number_(number) {}
  std::uint64_t number_ = 0;
};

struct EventOptions {
  EventPriority priority = EventPriority::normal;
  EventSource source = {};
};

/// What an interceptor says to an event before it is handled.
enum class EventVerdict : std::uint8_t {
  pass,  ///< nothing against it
  veto,  ///< no handler gets it
};

/// What became of an event, for interceptors after it.
struct EventOutcome {
  std::size_t handlers = 0;  ///< that were called, those that threw included
  bool vetoed = false;       ///< by an interceptor; then no handler was called
};

/// An event whose type is not known here: what interceptors of all events get.
/// Threads: its core's. Lifetime: that of the call it is handed to.
class AnyEvent {
 public:
  /// The event, if it is a T; else nullptr.
  template <class T>
  const T* as() const noexcept {
    return type_ == &detail::event_type<T> ? static_cast<const T*>(value_) : nullptr;
  }
  /// Its type's name as in C++, with namespaces; lives as long as the program.
  std::string_view type_name() const noexcept { return type_->name; }
  /// Its type's number on this core: from 0, in the order in which types were first seen there.
  std::size_t type_index() const noexcept { return index_; }
  EventSource source() const noexcept { return options_.source; }
  EventPriority priority() const noexcept { return options_.priority; }

 private:
  friend class detail::EventRoster;
  friend class EventStatistics;
  AnyEvent(const detail::EventTopic& topic, const void* value,
           const EventOptions& options) noexcept;
  const detail::EventType* type_;
  std::size_t index_;
  const void* value_;
  EventOptions options_;
};

}  // namespace weir
