// Lengths of time and sizes as people write them: `250ms`, `1h30min`, `64KiB`.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/time.hpp"

namespace weir {

/// A number of bytes, which people write with a unit: `ByteSize body_max = 64_KiB;`.
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

/// `count` times 2 to the power of `shift`; does not compile where that is more than 64 bits.
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

namespace config {

/// A number with a unit, such as `250ms` or `1.5s`, or several with ever smaller units, such as
/// `1h30min`. Units: d, h, min, s, ms, us, ns. No signs, no blanks. nullopt for anything else, for
/// what is no whole number of nanoseconds, and for more than a Duration can hold (292 years).
std::optional<Duration> parse_duration(std::string_view text) noexcept;

/// The same with a size: units are TiB, GiB, MiB, KiB (of 1024), TB, GB, MB, kB (of 1000), B; a
/// number alone is bytes. nullopt where it is no whole number of bytes, or more than 64 bits.
std::optional<ByteSize> parse_byte_size(std::string_view text) noexcept;

/// With the largest unit of which it is a whole number: `90s`, `1h`, `64KiB`, `1500B`. What is not
/// negative comes back from the parse functions.
std::string to_text(Duration length);
std::string to_text(ByteSize size);

}  // namespace config
}  // namespace weir
