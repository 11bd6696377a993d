// What stands before each event in a queue.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "weir/event/event.hpp"

namespace weir::detail {

/// Where the value of a queued event lies.
enum class EventPlace : std::uint8_t {
  record,   ///< behind the tag
  parcel,   ///< in a parcel, whose address is behind the tag
  arrived,  ///< the same, and it came from another core
};

/// An event's type, as the index of its topic, its place and its source, in 64 bits.
class EventTag {
 public:
  static constexpr unsigned topic_bits = 16;
  static constexpr unsigned place_bits = 2;
  static constexpr unsigned source_bits = 64 - topic_bits - place_bits;

  EventTag(std::size_t topic, EventPlace place, EventSource source) noexcept
      : bits_(topic | std::uint64_t{static_cast<std::uint8_t>(place)} << topic_bits |
              source.number() << (topic_bits + place_bits)) {
    assert(topic >> topic_bits == 0 && source.number() >> source_bits == 0);
  }

  std::size_t topic() const noexcept { return bits_ & low(topic_bits); }
  EventPlace place() const noexcept {
    return static_cast<EventPlace>(bits_ >> topic_bits & low(place_bits));
  }
  EventSource source() const noexcept { return EventSource(bits_ >> (topic_bits + place_bits)); }
  /// Whether topic and place are the same.
  bool same_kind(EventTag other) const noexcept {
    return ((bits_ ^ other.bits_) & low(topic_bits + place_bits)) == 0;
  }

 private:
  static constexpr std::uint64_t low(unsigned bits) noexcept {
    return (std::uint64_t{1} << bits) - 1;
  }
  std::uint64_t bits_;
};
static_assert(sizeof(EventTag) == event_tag_bytes && alignof(EventTag) == event_tag_bytes);

}  // namespace weir::detail
