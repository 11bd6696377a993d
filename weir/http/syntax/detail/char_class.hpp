// Character classes of RFC 9110 and RFC 3986 as one table of 256 bytes, and texts of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::http {

/// The bits of the entries in `char_classes`.
struct CharClass {
  static constexpr std::uint8_t token = 1;  ///< tchar, RFC 9110 §5.6.2
  /// pchar, "/", "?" and "%" (RFC 3986 §3.3, §3.4), and "[]{}|^`\", which browsers send raw in
  /// queries and all but the last one in paths (WHATWG URL §1.3).
  static constexpr std::uint8_t target = 2;
  static constexpr std::uint8_t value = 4;  ///< SP, HTAB, VCHAR and obs-text, RFC 9110 §5.5
  static constexpr std::uint8_t host = 8;   ///< reg-name without "%" and ",", RFC 3986 §3.2.2
  static constexpr std::uint8_t digit = 16;
  static constexpr std::uint8_t hex = 32;
};

namespace detail {

constexpr std::array<std::uint8_t, 256> make_char_classes() {
  std::array<std::uint8_t, 256> table{};
  const auto mark = [&table](std::string_view characters, int bits) {
    for (char each : characters) {
      auto& entry = table[static_cast<unsigned char>(each)];
      entry = static_cast<std::uint8_t>(entry | bits);
    }
  };
  using C = CharClass;
  mark("0123456789", C::token | C::target | C::host | C::digit | C::hex);
  mark("ABCDEFabcdef", C::hex);
  mark("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", C::token | C::target | C::host);
  mark("!#$%&'*+-.^_`|~", C::token);
  mark("-._~!$&'()*+,;=:@/?%[]{}|^`\\", C::target);
  mark("-._~!$&'()*+;=", C::host);
  mark("\t", C::value);
  for (std::size_t each = 0x20; each < 256; ++each) {
    if (each != 0x7f) table[each] = static_cast<std::uint8_t>(table[each] | C::value);
  }
  return table;
}

}  // namespace detail

inline constexpr std::array<std::uint8_t, 256> char_classes = detail::make_char_classes();

/// Returns true if `character` is in one of the classes of `bits`.
constexpr bool is_in(char character, std::uint8_t bits) noexcept {
  return (char_classes[static_cast<unsigned char>(character)] & bits) != 0;
}

/// Returns true if every byte of `text` is in one of the classes of `bits`; true for an empty text.
constexpr bool all_in(std::string_view text, std::uint8_t bits) noexcept {
  for (char each : text) {
    if (!is_in(each, bits)) return false;
  }
  return true;
}

/// Returns true if `text` is a non-empty token (RFC 9110 §5.6.2).
constexpr bool is_token(std::string_view text) noexcept {
  return !text.empty() && all_in(text, CharClass::token);
}

/// Returns true if `character` is SP or HTAB, the two bytes of optional white space (RFC 9110
/// §5.6.3).
constexpr bool is_space(char character) noexcept {
  return character == ' ' || character == '\t';
}

/// Returns `text` without white space (SP, HTAB) at both ends.
constexpr std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// Returns an ASCII letter in lower case and every other byte unchanged.
constexpr char to_lower(char character) noexcept {
  return character >= 'A' && character <= 'Z' ? static_cast<char>(character + ('a' - 'A'))
                                              : character;
}

/// Returns true if `a` and `b` are equal when the case of ASCII letters is ignored.
constexpr bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  if (a == b) return true;  // the common case, and much faster
  for (std::size_t index = 0; index < a.size(); ++index) {
    if (to_lower(a[index]) != to_lower(b[index])) return false;
  }
  return true;
}

inline constexpr std::string_view line_end = "\r\n";

/// Returns the text from `start` to before `end`.
constexpr std::string_view between(const char* start, const char* end) noexcept {
  return {start, static_cast<std::size_t>(end - start)};
}

/// Returns the value of a hexadecimal digit, or -1 for any other byte.
constexpr int hex_value(char character) noexcept {
  if (character >= '0' && character <= '9') return character - '0';
  const char lower = to_lower(character);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace weir::http
