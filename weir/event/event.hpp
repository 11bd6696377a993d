// The basic types of events: priority, source, and an event of any type.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

#include "weir/base/detail/type_name.hpp"

namespace weir::detail {

// The identity of an event type, and the facts that a queue needs to store its values.

/// An EventType describes one type. There is one constant for each type, and its address is the
/// type's identity.
struct EventType {
  std::string_view name;
  void (*destroy)(void* value) noexcept;  ///< The destructor; nullptr if it is trivial.
  /// The size of a queue record that holds the value; 0 if the value is stored outside of the
  /// queue.
  std::uint32_t record_bytes;
};

/// The size of the EventTag at the start of each record; the value or its address follows.
inline constexpr std::size_t event_tag_bytes = 8;
/// The size of the largest value that is stored in a queue.
inline constexpr std::size_t event_inline_bytes_max = 128;

template <class T>
consteval std::uint32_t event_record_bytes() {
  if (sizeof(T) > event_inline_bytes_max || alignof(T) > event_tag_bytes) return 0;
  return static_cast<std::uint32_t>(event_tag_bytes + (sizeof(T) + 7) / 8 * 8);
}

template <class T>
constexpr auto event_destroyer() noexcept -> void (*)(void*) noexcept {
  if constexpr (std::is_trivially_destructible_v<T>) {
    return nullptr;
  } else {
    return [](void* value) noexcept { std::destroy_at(static_cast<T*>(value)); };
  }
}

template <class T>
inline constexpr EventType event_type{inject::type_name<T>(), event_destroyer<T>(),
                                      event_record_bytes<T>()};

/// An EventValue is an object type whose move constructor and destructor do not throw, so that no
/// event is lost in a move.
template <class T>
concept EventValue = std::is_object_v<T> && std::is_same_v<T, std::remove_cv_t<T>> &&
                     std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T> &&
                     alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace weir::detail

namespace weir {

namespace detail {
class SubscriberTable;
class EventTag;
struct EventTopic;
}  // namespace detail

/// The priority of an event. A core always handles the events of the most urgent non-empty class
/// first, and the events of a class in the order of their arrival.
enum class EventPriority : std::uint8_t { urgent, high, normal, low };
inline constexpr std::size_t event_priority_count = 4;

/// The publisher of an event: a number that EventBus::make_source() has returned, unique in that
/// bus. The default is no particular source.
/// Threads: a plain value.
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

/// EventOptions sets the priority and the source of a published event.
struct EventOptions {
  EventPriority priority = EventPriority::normal;
  EventSource source = {};
};

/// The decision of an interceptor before an event is handled.
enum class EventVerdict : std::uint8_t {
  pass,  ///< No objection.
  veto,  ///< No handler receives the event.
};

/// The outcome of an event, for interceptors after it.
struct EventOutcome {
  /// The number of handlers that were called, including those that threw.
  std::size_t handlers = 0;
  bool vetoed = false;  ///< True if an interceptor vetoed the event; no handler was then called.
};

/// An AnyEvent is an event of any type, which interceptors of all events receive.
/// Threads: its core's.
/// Lifetime: the call that receives it.
class AnyEvent {
 public:
  /// Returns the event if it is a T, else nullptr.
  template <class T>
  const T* as() const noexcept {
    return type_ == &detail::event_type<T> ? static_cast<const T*>(value_) : nullptr;
  }
  /// Returns the type's name as in C++, with namespaces.
  /// Lifetime: the program's.
  std::string_view type_name() const noexcept { return type_->name; }
  /// Returns the type's number on this core: from 0, in the order in which the core first saw the
  /// types.
  std::size_t type_index() const noexcept { return index_; }
  EventSource source() const noexcept { return options_.source; }
  EventPriority priority() const noexcept { return options_.priority; }

 private:
  friend class detail::SubscriberTable;
  friend class EventStatistics;
  AnyEvent(const detail::EventTopic& topic, const void* value,
           const EventOptions& options) noexcept;
  const detail::EventType* type_;
  std::size_t index_;
  const void* value_;
  EventOptions options_;
};

}  // namespace weir

namespace weir::detail {

// The header of each queued event.

/// The place of a queued event's value.
enum class EventStorage : std::uint8_t {
  in_record,      ///< The queue's record, after the tag.
  shared,         ///< A SharedEvent, whose address follows the tag.
  shared_remote,  ///< A SharedEvent that another core has published.
};

/// An EventTag stores an event's topic index, storage and source in 64 bits.
class EventTag {
 public:
  static constexpr unsigned topic_bits = 16;
  static constexpr unsigned storage_bits = 2;
  static constexpr unsigned source_bits = 64 - topic_bits - storage_bits;

  EventTag(std::size_t topic, EventStorage storage, EventSource source) noexcept
      : bits_(topic | std::uint64_t{static_cast<std::uint8_t>(storage)} << topic_bits |
              source.number() << (topic_bits + storage_bits)) {
    assert(topic >> topic_bits == 0 && source.number() >> source_bits == 0);
  }

  std::size_t topic() const noexcept { return bits_ & low(topic_bits); }
  EventStorage storage() const noexcept {
    return static_cast<EventStorage>(bits_ >> topic_bits & low(storage_bits));
  }
  EventSource source() const noexcept { return EventSource(bits_ >> (topic_bits + storage_bits)); }
  /// Returns true if both tags have the same topic and storage.
  bool has_same_topic_and_storage(EventTag other) const noexcept {
    return ((bits_ ^ other.bits_) & low(topic_bits + storage_bits)) == 0;
  }

 private:
  static constexpr std::uint64_t low(unsigned bits) noexcept {
    return (std::uint64_t{1} << bits) - 1;
  }
  std::uint64_t bits_;
};
static_assert(sizeof(EventTag) == event_tag_bytes && alignof(EventTag) == event_tag_bytes);

}  // namespace weir::detail
