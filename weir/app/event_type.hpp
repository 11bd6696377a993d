// The identity of a type of events, and what queues have to know to keep its values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

#include "weir/base/detail/type_name.hpp"

namespace weir::detail {

/// One constant for each type; its address is the type's identity.
struct EventType {
  std::string_view name;
  void (*destroy)(void* value) noexcept;  ///< nullptr where there is nothing to do
  /// Of a record in a queue that holds the value in place; 0: it must lie outside.
  std::uint32_t record_bytes;
};

/// Each record of a queue begins with an EventTag, and then comes the value or where it is.
inline constexpr std::size_t event_tag_bytes = 8;
/// Larger values lie outside the queues.
inline constexpr std::size_t event_inline_max = 128;

template <class T>
consteval std::uint32_t event_record_bytes() {
  if (sizeof(T) > event_inline_max || alignof(T) > event_tag_bytes) return 0;
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
inline constexpr EventType event_type{wiring::type_name<T>(), event_destroyer<T>(),
                                      event_record_bytes<T>()};

/// What can be an event: an object that moves without failing, since it must not get lost half way.
template <class T>
concept EventValue = std::is_object_v<T> && std::is_same_v<T, std::remove_cv_t<T>> &&
                     std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T> &&
                     alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace weir::detail
