// Single values in texts without quotes, such as the values of a query or of an option.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <ratio>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/json/detail/shape.hpp"
#include "weir/json/text/detail/time_text.hpp"
#include "weir/json/text/units.hpp"

namespace weir::json::detail {

/// Return the description of an integer for messages, such as `an integer from 0 to 255`.
std::string expected_signed(std::int64_t min, std::int64_t max);
std::string expected_unsigned(std::uint64_t max);
/// Appends `"a", "b" or "c"`, one name per call; `index` counts from 0 to `count` - 1.
void append_expected_name(std::string& out, std::string_view name, std::size_t index,
                          std::size_t count);

/// Returns the name of a type for messages: `an integer`, `a string`, `an array`.
template <class T>
consteval const char* noun() {
  constexpr Shape shape = shape_of<T>();
  if (shape == Shape::integer) return "an integer";
  if (shape == Shape::real) return "a number";
  if (shape == Shape::text || shape == Shape::view) return "a string";
  if (is_duration<T>) return "a duration";
  if (is_time<T>) return "a time";
  if (PathLike<T>) return "a path";
  if (shape >= Shape::sequence && shape <= Shape::tuple) return "an array";
  return shape == Shape::map || shape == Shape::object ? "an object" : "a value";
}

/// TextValue<T> reads a T from the whole of a text. read() leaves the value unchanged if the text
/// does not fit. expected() describes the texts that fit. A value of Shape::text_value also has
/// write(), whose text read() accepts. A type without such a form has no TextValue.
template <class T>
struct TextValue;

/// Decimal digits, without '+' and blanks.
template <Integer T>
struct TextValue<T> {
  static bool read(std::string_view text, T& value) noexcept {
    T number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end) return false;
    value = number;
    return true;
  }
  static std::string expected() {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_signed_v<T>) {
      return expected_signed(Limits::min(), Limits::max());
    } else {
      return expected_unsigned(Limits::max());
    }
  }
};

template <class T>
  requires(std::same_as<T, float> || std::same_as<T, double>)
struct TextValue<T> {
  static bool read(std::string_view text, T& value) noexcept {
    T number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end || !std::isfinite(number)) return false;
    value = number;
    return true;
  }
  static std::string expected() { return "a number"; }
};

template <>
struct TextValue<bool> {
  static bool read(std::string_view text, bool& value) noexcept {
    if (text != "true" && text != "false") return false;
    value = text == "true";
    return true;
  }
  static std::string expected() { return "true or false"; }
};

template <>
struct TextValue<std::string> {
  static bool read(std::string_view text, std::string& value) {
    value.assign(text);
    return true;
  }
  static std::string expected() { return "a string"; }
};
template <>
struct TextValue<std::string_view> {
  static bool read(std::string_view text, std::string_view& value) noexcept {
    value = text;
    return true;
  }
  static std::string expected() { return "a string"; }
};

template <class T>
  requires(shape_of<T>() == Shape::named_enumeration)
struct TextValue<T> {
  static bool read(std::string_view text, T& value) noexcept {
    for (const Named<T>& each : enumerators<T>) {
      if (each.name != text) continue;
      value = each.value;
      return true;
    }
    return false;
  }
  static std::string expected() {
    std::string names;
    for (std::size_t index = 0; index < enumerators<T>.size(); ++index) {
      append_expected_name(names, enumerators<T>[index].name, index, enumerators<T>.size());
    }
    return names;
  }
};

/// The length of a tick of a duration in nanoseconds.
template <class D>
inline constexpr std::uint64_t tick_of = std::ratio_divide<typename D::period, std::nano>::num;

/// A text with units, such as `250ms`. read() accepts no negative duration.
template <class T>
  requires is_duration<T>
struct TextValue<T> {
  using Rep = typename T::rep;
  static bool read(std::string_view text, T& value) noexcept {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<Rep>::max());
    const auto ticks = parse_ticks(text, tick_of<T>, most);
    if (ticks) value = T(static_cast<Rep>(*ticks));
    return ticks.has_value();
  }
  static std::string expected() {
    std::string form = "a duration such as 250ms, 5s or 1h30min";
    if constexpr (tick_of<T> > 1) form += ", a multiple of " + ticks_text(1, tick_of<T>);
    return form;
  }
  static std::string write(const T& value) {
    const auto count = static_cast<std::uint64_t>(value.count());
    if (std::cmp_less(value.count(), 0)) return "-" + ticks_text(0 - count, tick_of<T>);
    return ticks_text(count, tick_of<T>);
  }
};

/// A text of RFC 3339, such as `2026-11-25T22:14:43Z`.
template <class T>
  requires is_time<T>
struct TextValue<T> {
  using Rep = typename T::rep;
  static constexpr TimeScale scale{tick_of<typename T::duration>, std::numeric_limits<Rep>::min(),
                                   std::numeric_limits<Rep>::max()};
  static bool read(std::string_view text, T& value) {
    const auto ticks = parse_time(text, scale);
    if (ticks) value = T(typename T::duration(static_cast<Rep>(*ticks)));
    return ticks.has_value();
  }
  static std::string expected() { return expected_time(scale); }
  static std::string expected_instead_of(std::string_view text) {
    const auto ticks = parse_time(text, scale);
    return ticks ? expected() : ticks.error();
  }
  static std::string write(const T& value) {
    return time_text(value.time_since_epoch().count(), scale.tick);
  }
};

/// A path is any text without the character NUL, at which the kernel would cut it off.
template <PathLike T>
struct TextValue<T> {
  static bool read(std::string_view text, T& value) {
    if (text.find('\0') != text.npos) return false;
    value = T(std::string(text));
    return true;
  }
  static std::string expected() { return "a path without the character NUL"; }
  static const std::string& write(const T& value) noexcept { return value.native(); }
};

/// Returns the description of the texts that fit, for the error of a text that does not.
template <class T>
std::string expected_instead_of([[maybe_unused]] std::string_view text) {
  if constexpr (requires { TextValue<T>::expected_instead_of(text); }) {
    return TextValue<T>::expected_instead_of(text);
  } else {
    return TextValue<T>::expected();
  }
}

/// True if a T has a form as a text without quotes.
template <class T>
concept HasTextValue = requires(std::string_view text, T& value) {
  { TextValue<T>::read(text, value) } -> std::same_as<bool>;
};

}  // namespace weir::json::detail
