// Parses and prints durations and sizes with units, such as `250ms`, `1h30min` and `64KiB`.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/time.hpp"

namespace weir {

/// A ByteSize is a number of bytes that is written with a unit: `ByteSize body_max = 64_KiB;`.
class ByteSize {
 public:
  constexpr ByteSize() noexcept = default;
  constexpr explicit ByteSize(std::uint64_t bytes) noexcept : bytes_(bytes) {}
  constexpr std::uint64_t bytes() const noexcept { return bytes_; }
  constexpr auto operator<=>(const ByteSize&) const noexcept = default;

 private:
  std::uint64_t bytes_ = 0;
};

namespace detail {

/// Returns `count` times 2 to the power of `shift`; does not compile if that exceeds 64 bits.
consteval ByteSize binary_size(unsigned long long count, unsigned shift) {
  if (count > std::numeric_limits<std::uint64_t>::max() >> shift) throw "weir: a size of 2^64";
  return ByteSize(std::uint64_t{count} << shift);
}

}  // namespace detail

inline namespace literals {

consteval ByteSize operator""_B(unsigned long long count) {
  return detail::binary_size(count, 0);
}
consteval ByteSize operator""_KiB(unsigned long long count) {
  return detail::binary_size(count, 10);
}
consteval ByteSize operator""_MiB(unsigned long long count) {
  return detail::binary_size(count, 20);
}
consteval ByteSize operator""_GiB(unsigned long long count) {
  return detail::binary_size(count, 30);
}

}  // namespace literals

namespace json {

/// Parses a number with a unit, such as `250ms` or `1.5s`, or several with units in falling order,
/// such as `1h30min`. The units are d, h, min, s, ms, us and ns. Signs and blanks are not allowed.
/// Returns: nullopt for any other text, for a fraction of a nanosecond, and for a length that a
/// Duration cannot hold (292 years).
std::optional<Duration> parse_duration(std::string_view text) noexcept;

/// Parses a size with one or more units, or a number of bytes without a unit. The units are TiB,
/// GiB, MiB, KiB (of 1024), TB, GB, MB, kB (of 1000) and B.
/// Returns: nullopt for any other text, for a fraction of a byte, and for a size of more than 64
/// bits.
std::optional<ByteSize> parse_byte_size(std::string_view text) noexcept;

/// Returns the text with the largest unit that gives a whole number: `90s`, `1h`, `64KiB`,
/// `1500B`. The parse functions accept every text of a value that is not negative.
std::string to_text(Duration length);
std::string to_text(ByteSize size);

namespace detail {

/// Parses a duration as a number of at most `most` ticks, each of `tick` nanoseconds.
/// Returns: nullopt for a text that parse_duration() rejects, and for a fraction of a tick.
std::optional<std::uint64_t> parse_ticks(std::string_view text, std::uint64_t tick,
                                         std::uint64_t most) noexcept;
/// Returns the text of a duration of `ticks` times `tick` nanoseconds, as to_text() does.
std::string ticks_text(std::uint64_t ticks, std::uint64_t tick);

}  // namespace detail

}  // namespace json
}  // namespace weir
