// Character classes of RFC 9110 and RFC 3986 as one table of 256 bytes, and texts of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "weir/base/text/detail/ascii_case.hpp"

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

namespace detail {

template <class Word>
Word word_at(const char* text) noexcept {
  Word word;
  std::memcpy(&word, text, sizeof(word));
  return word;
}

/// Compares like equals_ignoring_case(); the bytes of a word are characters.
inline bool words_equal_ignoring_case(std::uint64_t a, std::uint64_t b) noexcept {
  constexpr std::uint64_t each = 0x0101010101010101;
  constexpr std::uint64_t case_bit = 0x20;
  const std::uint64_t different = a ^ b;
  if (different == 0) return true;  // the common case
  if ((different & ~(each * case_bit)) != 0) return false;
  // The highest bit of each byte says if the byte is a letter.
  const std::uint64_t lower = a | each * case_bit;
  const std::uint64_t low_bits = lower & each * 0x7f;
  const std::uint64_t from_a = low_bits + each * (0x80 - 'a');
  const std::uint64_t above_z = low_bits + each * (0x7f - 'z');
  return (different << 2 & ~(from_a & ~above_z & ~lower)) == 0;
}

/// Compares texts of one size like equals_ignoring_case(). They have at least one word.
template <class Word>
bool equal_by_words(const char* a, const char* b, std::size_t size) noexcept {
  const std::size_t last = size - sizeof(Word);
  for (std::size_t index = 0; index < last; index += sizeof(Word)) {
    if (!words_equal_ignoring_case(word_at<Word>(a + index), word_at<Word>(b + index)))
      return false;
  }
  return words_equal_ignoring_case(word_at<Word>(a + last), word_at<Word>(b + last));
}

/// Compares texts of one size like equals_ignoring_case().
constexpr bool same_size_equal(std::string_view a, std::string_view b) noexcept {
  if (!std::is_constant_evaluated() && a.size() >= sizeof(std::uint32_t)) {
    return a.size() < sizeof(std::uint64_t)
               ? equal_by_words<std::uint32_t>(a.data(), b.data(), a.size())
               : equal_by_words<std::uint64_t>(a.data(), b.data(), a.size());
  }
  for (std::size_t index = 0; index < a.size(); ++index) {
    if (to_lower(a[index]) != to_lower(b[index])) return false;
  }
  return true;
}

}  // namespace detail

/// Returns true if `a` and `b` are equal when the case of ASCII letters is ignored.
/// The sizes are compared inline, because most texts differ in size.
[[gnu::always_inline]] constexpr bool equals_ignoring_case(std::string_view a,
                                                           std::string_view b) noexcept {
  return a.size() == b.size() && detail::same_size_equal(a, b);
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
