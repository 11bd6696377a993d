// Tests of base64 and base64url.
#include "weir/base/text/detail/base64.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::base64_test {
namespace {

constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string base64(std::string_view text) {
  std::string out(base64_size(text.size()), '?');
  EXPECT_EQ(write_base64(to_bytes(text), out.data()), out.data() + out.size());
  return out;
}

using Reader = std::optional<std::size_t> (*)(std::string_view text, std::byte* out) noexcept;

std::optional<std::string> decoded(std::string_view text, Reader reader) {
  std::vector<std::byte> room(base64_bytes_max(text.size()));
  const std::optional<std::size_t> size = reader(text, room.data());
  if (!size) return std::nullopt;
  EXPECT_LE(*size, room.size());
  return std::string(to_text(Bytes(room).first(*size)));
}
std::optional<std::string> from_base64(std::string_view text) {
  return decoded(text, &read_base64);
}
std::optional<std::string> from_base64url(std::string_view text) {
  return decoded(text, &read_base64url);
}

const std::vector<std::pair<std::string_view, std::string_view>> rfc_vectors{
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"}};

/// Bytes whose digits are those of the alphabet in order.
std::string bytes_of_all_digits() {
  std::string bytes;
  for (unsigned value = 0; value < 64; value += 4) {
    const unsigned group = value << 18 | (value + 1) << 12 | (value + 2) << 6 | (value + 3);
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(group >> shift);
  }
  return bytes;
}

TEST(Base64, WritesAndReadsTheVectorsOfTheRfc) {
  for (const auto& [bytes, text] : rfc_vectors) {
    EXPECT_EQ(base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, UsesAllCharacters) {
  EXPECT_EQ(base64(bytes_of_all_digits()), digits);
  EXPECT_EQ(from_base64(digits), bytes_of_all_digits());
}

TEST(Base64, RefusesWrongPadding) {
  for (const std::string_view text : {"Zg", "Zg=", "Zg===", "Zm8", "Zm9v=", "Zm9v====", "=",
                                      "====", "Z===", "Zg==Zg==", "=Zg=", "Zm9vA"}) {
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
  }
}

TEST(Base64, RefusesUnusedBits) {
  for (const std::string_view text : {"Zh==", "Zv==", "Zm9=", "Zm+="}) {
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
  }
}

TEST(Base64, RefusesEachOtherCharacter) {
  for (int code = 0; code < 256; ++code) {
    const auto character = static_cast<char>(code);
    const bool standard = digits.find(character) != digits.npos;
    const bool url =
        character == '-' || character == '_' || (standard && character != '+' && character != '/');
    for (std::size_t at = 0; at < 4; ++at) {
      std::string text = "AAAA";
      text[at] = character;
      const bool padding = character == '=' && at == 3;
      EXPECT_EQ(from_base64(text).has_value(), standard || padding) << code;
      EXPECT_EQ(from_base64url(text).has_value(), url) << code;
    }
  }
}

TEST(Base64Url, HasNoPaddingAndTwoOtherCharacters) {
  for (const auto& [bytes, padded] : rfc_vectors) {
    const std::string_view text = padded.substr(0, padded.find('='));
    EXPECT_EQ(to_base64url(to_bytes(bytes)), text);
    EXPECT_EQ(base64url_size(bytes.size()), text.size());
    EXPECT_EQ(from_base64url(text), bytes);
  }
  const std::string text = to_base64url(to_bytes(bytes_of_all_digits()));
  EXPECT_EQ(text.substr(62), "-_");
  EXPECT_EQ(from_base64url(text), bytes_of_all_digits());
}

TEST(Base64Url, RefusesPaddingUnusedBitsAndLoneDigits) {
  for (const std::string_view text : {"Zg==", "Zm8=", "Zh", "Zm9", "Z", "Zm9vZ", "+/+/"}) {
    EXPECT_EQ(from_base64url(text), std::nullopt) << text;
  }
}

TEST(Base64, ReadsInPlace) {
  std::string text = "Zm9vYmFy";
  const std::optional<std::size_t> size =
      read_base64(text, reinterpret_cast<std::byte*>(text.data()));
  ASSERT_EQ(size, 6U);
  EXPECT_EQ(text.substr(0, 6), "foobar");
}

}  // namespace
}  // namespace weir::base64_test
