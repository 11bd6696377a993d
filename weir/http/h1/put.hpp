// Writing pieces of a head one behind the other.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir::http {

inline constexpr std::string_view line_end = "\r\n";
inline constexpr std::string_view empty_line = "\r\n\r\n";  // behind another line
inline constexpr std::size_t digits_max = 20;

/// Each of these returns the end of what it wrote to `out`.
[[gnu::always_inline]] inline char* put(char* out, std::string_view text) noexcept {
  if (!text.empty()) std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

/// put() for what is usually 16 to 32 bytes long: two copies that overlap, and no call.
[[gnu::always_inline]] inline char* put_short(char* out, std::string_view text) noexcept {
  constexpr std::size_t half = 16;
  if (text.size() < half || text.size() > 2 * half) return put(out, text);
  std::memcpy(out, text.data(), half);
  std::memcpy(out + text.size() - half, text.data() + text.size() - half, half);
  return out + text.size();
}

/// The usual lengths have few digits. Needs room for digits_max.
[[gnu::always_inline]] inline char* put_number(char* out, std::uint64_t number) noexcept {
  if (number >= 100) return std::to_chars(out, out + digits_max, number).ptr;
  if (number >= 10) *out++ = static_cast<char>('0' + number / 10);
  *out++ = static_cast<char>('0' + number % 10);
  return out;
}

}  // namespace weir::http
