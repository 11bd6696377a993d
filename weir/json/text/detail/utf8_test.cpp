// Tests of UTF-8 sequences, with an independent decoder.
#include "weir/json/text/detail/utf8.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace weir::json::detail {
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

}  // namespace
}  // namespace weir::json::detail
