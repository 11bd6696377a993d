// Tests of UTF-8 sequences, with an independent decoder.
#include "weir/base/text/detail/utf8.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace weir::utf8_test {
namespace {

std::size_t length_of(std::string_view bytes) {
  return utf8_length(bytes.data(), bytes.data() + bytes.size());
}

TEST(Utf8, EveryCodePointIsOneSequence) {
  for (std::uint32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    char bytes[4];
    const auto size = static_cast<std::size_t>(put_utf8(bytes, code) - bytes);
    const std::size_t expected = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    ASSERT_EQ(size, expected) << code;
    ASSERT_EQ(length_of({bytes, size}), size) << code;
    ASSERT_TRUE(size == 1 || length_of({bytes, size - 1}) == 0) << code;
  }
}

/// Returns the length that a simple decoder computes; 0 if the bytes are not acceptable.
std::size_t expected_length(std::string_view bytes) {
  const auto at = [&](std::size_t index) { return static_cast<unsigned char>(bytes[index]); };
  const auto tail = [&](std::size_t index) {
    return index < bytes.size() && (at(index) & 0xC0U) == 0x80;
  };
  const std::size_t size = at(0) < 0x80              ? 1
                           : (at(0) & 0xE0U) == 0xC0 ? 2
                           : (at(0) & 0xF0U) == 0xE0 ? 3
                           : (at(0) & 0xF8U) == 0xF0 ? 4
                                                     : 0;
  if (size <= 1) return size;
  std::uint32_t code = at(0) & (0xFFU >> (size + 1));
  for (std::size_t index = 1; index < size; ++index) {
    if (!tail(index)) return 0;
    code = code << 6 | (at(index) & 0x3FU);
  }
  const std::uint32_t least[] = {0x80, 0x800, 0x10000};
  if (code < least[size - 2] || code > 0x10FFFF) return 0;
  return code >= 0xD800 && code <= 0xDFFF ? 0 : size;
}

TEST(Utf8, LengthMatchesADecoderForAllPairsOfBytes) {
  for (const std::string_view tails :
       {"", "\x80", "\xBF", "\x7F", "\xC0", "\x80\x80", "\xBF\xBF", "\x80\x7F", "\x80\xC0",
        "\xBF\x7F", "\xBF\xC0", "\x7F\x80", "\xC0\x80", "\x80y", "x"}) {
    for (int first = 0; first < 256; ++first) {
      for (int second = 0; second < 256; ++second) {
        std::string bytes{static_cast<char>(first), static_cast<char>(second)};
        bytes += tails;
        ASSERT_EQ(length_of(bytes), expected_length(bytes)) << first << " " << second;
      }
    }
  }
}

/// Checks `text` in pieces of `step` bytes. Returns the number of bytes before the first impossible
/// one, negative if the text is valid so far but incomplete.
int valid_bytes(std::string_view text, std::size_t step) {
  Utf8Checker checker;
  std::size_t valid = 0;
  for (std::size_t at = 0; at < text.size() && valid == at; at += step) {
    valid += checker.check(text.substr(at, step));
    if (valid < std::min(at + step, text.size())) return static_cast<int>(valid);
  }
  return checker.complete() ? static_cast<int>(valid) : -static_cast<int>(valid);
}

/// Returns the same number by the definition: some text that continues the bytes before is valid.
int expected_valid_bytes(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    const std::size_t length = expected_length(rest.substr(0, 4));
    if (length != 0) {
      at += length;
      continue;
    }
    // Finds the longest start of a valid character.
    std::size_t start = 0;
    for (std::size_t size = 1; size <= std::min<std::size_t>(rest.size(), 3); ++size) {
      for (const std::string_view tail : {"\x80", "\xBF", "\x80\x80", "\xBF\x80", "\x90\x80",
                                          "\x80\x80\x80", "\x90\x80\x80", "\xA0\x80"}) {
        const std::string whole = std::string(rest.substr(0, size)) + std::string(tail);
        if (expected_length(whole) == whole.size()) start = size;
      }
    }
    const int found = static_cast<int>(at + start);
    return start == rest.size() ? -found : found;
  }
  return static_cast<int>(at);
}

TEST(Utf8Checker, FindsTheFirstImpossibleByteInAnyPieces) {
  const std::string ascii(70, 'a');
  for (int first = 0; first < 256; ++first) {
    // The bytes around each limit of a range, and some within.
    for (const int second : {0x00, 0x7A, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xE0,
                             0xED, 0xF0, 0xF4, 0xFF}) {
      for (const std::string_view tails :
           {"", "\x80", "\xBF", "\x7F", "\x80\x80", "\xBF\xBF", "\x80\xC0", "\xBF\x80z", "z"}) {
        const std::string text =
            std::string{static_cast<char>(first), static_cast<char>(second)} + std::string(tails);
        const int expected = expected_valid_bytes(text);
        for (const std::size_t step : {1U, 2U, 3U, 80U}) {
          ASSERT_EQ(valid_bytes(text, step), expected) << first << " " << second;
        }
        // Behind 70 bytes of ASCII.
        const int behind = expected < 0 ? expected - 70 : expected + 70;
        const std::string longer = ascii + text;
        ASSERT_EQ(valid_bytes(longer, longer.size()), behind) << first << " " << second;
      }
    }
  }
}

TEST(Utf8Checker, AcceptsLongTextsInAnyPieces) {
  std::string text;
  for (int round = 0; round < 20; ++round) {
    text += std::string(static_cast<std::size_t>(7 * round), 'x') + "\xC3\xA4\xF0\x9F\x98\x80";
    text += "\xE2\x82\xAC";
  }
  for (std::size_t step = 1; step < 70; ++step) {
    ASSERT_EQ(valid_bytes(text, step), static_cast<int>(text.size())) << step;
  }
}

}  // namespace
}  // namespace weir::utf8_test
