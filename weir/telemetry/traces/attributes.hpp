// Attributes: names with values, which describe a span, an event of a span or a log record.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace weir::telemetry {

/// The value of an attribute.
using AttributeValue = std::variant<std::string_view, bool, std::int64_t, double>;

/// Attributes in the order in which they were set, in one piece of memory. Their number and their
/// size have limits. Attributes beyond these are counted and left out.
/// Threads: one at a time.
class Attributes {
 public:
  static constexpr std::size_t count_max = 128;   ///< number of attributes
  static constexpr std::size_t key_max = 256;     ///< bytes of a name; a longer one is left out
  static constexpr std::size_t value_max = 4096;  ///< bytes of a text; the rest is cut
  static constexpr std::size_t bytes_max = 16 * 1024;  ///< bytes of all names and values

  /// Sets the value of a name: a bool, a number or a text. An integer that exceeds an int64 is the
  /// largest or smallest one.
  template <class T>
  void set(std::string_view key, const T& value) {
    if constexpr (std::same_as<T, bool>) {
      set_value(key, AttributeValue(value));
    } else if constexpr (std::integral<T>) {
      constexpr auto max = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      if constexpr (std::is_unsigned_v<T>) {
        const std::uint64_t number = value;
        set_value(key, AttributeValue(static_cast<std::int64_t>(std::min(number, max))));
      } else {
        set_value(key, AttributeValue(std::int64_t{value}));
      }
    } else if constexpr (std::floating_point<T>) {
      set_value(key, AttributeValue(static_cast<double>(value)));
    } else {
      set_value(key, AttributeValue(std::string_view(value)));
    }
  }
  void set_value(std::string_view key, const AttributeValue& value);

  std::size_t size() const noexcept { return count_; }
  bool empty() const noexcept { return count_ == 0; }
  /// Returns the number of attributes that were left out.
  std::uint32_t dropped() const noexcept { return dropped_; }
  /// Returns the bytes of memory that the attributes occupy.
  std::size_t bytes() const noexcept { return encoded_.capacity(); }
  /// Allocates memory for about this number of bytes of names and values.
  void reserve(std::size_t bytes) { encoded_.reserve(std::min(bytes, bytes_max)); }

  /// Calls `function(std::string_view key, const AttributeValue& value)` for each attribute.
  template <class F>
  void for_each(F function) const {
    std::string_view rest = encoded_;
    std::string_view key;
    AttributeValue value;
    while (take(rest, key, value)) function(key, value);
  }

 private:
  static bool take(std::string_view& rest, std::string_view& key, AttributeValue& value) noexcept;
  void erase(std::string_view key);

  std::string encoded_;  // for each: its type, the sizes of its name and its value, both of them
  std::uint32_t count_ = 0;
  std::uint32_t dropped_ = 0;
};

}  // namespace weir::telemetry
