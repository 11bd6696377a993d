// Single values in texts without quotes, such as the values of a query or of an option.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "weir/json/detail/shape.hpp"

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
  if (shape >= Shape::sequence && shape <= Shape::tuple) return "an array";
  return shape == Shape::map || shape == Shape::object ? "an object" : "a value";
}

/// TextValue<T> reads a T from the whole of a text. read() leaves the value unchanged if the text
/// does not fit. expected() describes the texts that fit. A type without such a form has no
/// TextValue.
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

/// True if a T has a form as a text without quotes.
template <class T>
concept HasTextValue = requires(std::string_view text, T& value) {
  { TextValue<T>::read(text, value) } -> std::same_as<bool>;
};

}  // namespace weir::json::detail
