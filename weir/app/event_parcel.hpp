// An event whose value lies outside the queues: because it is large, or because other cores get it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "weir/event/event.hpp"

namespace weir::detail {

/// One block of memory: this, the value, and a link for each core that it is sent to. From the
/// moment it is sent nobody changes the value; who is the last to be done with it destroys it, and
/// the memory goes home to the core that made it.
/// Threads: any, but for made(), the maker's.
class EventParcel {
 public:
  /// Its place among what has arrived on one core.
  struct Link {
    Link* next;
    EventParcel* parcel;
  };
  struct LetGo {
    void operator()(EventParcel* parcel) const noexcept { parcel->let_go(); }
  };
  using Owner = std::unique_ptr<EventParcel, LetGo>;

  /// With `value` in it, links for `links` cores, and one holder. Errors: throws std::bad_alloc.
  template <EventValue T>
  static Owner make(T&& value, std::size_t links, const EventOptions& options) {
    EventParcel* const parcel = made(event_type<T>, sizeof(T), links);
    parcel->options_ = options;
    std::construct_at(static_cast<T*>(parcel->value()), std::move(value));
    return Owner(parcel);
  }

  const EventType& type() const noexcept { return type_; }
  const EventOptions& options() const noexcept { return options_; }
  void* value() noexcept { return reinterpret_cast<std::byte*>(this) + value_offset; }
  /// Of the core that comes so many-th; not given out twice.
  Link& link(std::size_t index) noexcept { return links_[index]; }

  /// So many more who will let it go. Before it is sent.
  void hold(std::uint32_t more) noexcept {
    // relaxed: nobody else has it yet.
    holders_.fetch_add(more, std::memory_order_relaxed);
  }
  /// One holder is done with it.
  void let_go() noexcept;

 private:
  static constexpr std::size_t value_offset = 48;

  explicit EventParcel(const EventType& type) noexcept : type_(type) {}
  static EventParcel* made(const EventType& type, std::size_t value_bytes, std::size_t links);

  const EventType& type_;
  Link* links_ = nullptr;
  EventOptions options_;
  std::atomic<std::uint32_t> holders_{1};
};

}  // namespace weir::detail
