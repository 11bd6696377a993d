// Tests of the Huffman code. hpack_judge_test.cpp compares it with another implementation.
#include "weir/http/detail/h2/huffman.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/test/hpack_fixture.hpp"

namespace weir::http::huffman_test {
namespace {

using Kind = HuffmanText::Kind;

std::string encode(std::string_view text, LetterCase letters = LetterCase::unchanged) {
  std::string code(huffman_size(text, letters), '\0');
  EXPECT_EQ(huffman_encode(text, code.data(), letters), code.data() + code.size());
  return code;
}

struct Decoded {
  Kind kind;
  std::string text;
};

/// Decodes a copy of exactly these bytes, so that the address sanitizer detects an overrun.
Decoded decode(std::string_view code, std::size_t room) {
  const std::vector<char> input(code.begin(), code.end());
  const std::unique_ptr<char[]> output(new char[room]);
  const HuffmanText text =
      huffman_decode(to_bytes({input.data(), input.size()}), {output.get(), room});
  return {text.kind, std::string(output.get(), text.size)};
}

Decoded decode(std::string_view code) {
  return decode(code, code.size() * 8 / 5);
}

TEST(Huffman, HasTheCodesOfTheExamplesInTheRfc) {
  const struct {
    std::string_view text;
    std::string_view code;
  } examples[] = {
      {"", ""},
      {"www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"},
      {"no-cache", "a8eb10649cbf"},
      {"custom-key", "25a849e95ba97d7f"},
      {"custom-value", "25a849e95bb8e8b4bf"},
      {"302", "6402"},
      {"private", "aec3771a4b"},
      {"Mon, 21 Oct 2013 20:13:21 GMT", "d07abe941054d444a8200595040b8166e082a62d1bff"},
      {"https://www.example.com", "9d29ad171863c78f0b97c8e9ae82ae43d3"},
      {"foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
       "94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d500"
       "7"},
  };
  for (const auto& each : examples) {
    EXPECT_EQ(encode(each.text), from_hex(each.code)) << each.text;
    const Decoded decoded = decode(from_hex(each.code));
    EXPECT_EQ(decoded.kind, Kind::complete) << each.text;
    EXPECT_EQ(decoded.text, each.text);
  }
}

TEST(Huffman, DecodesEachPairOfBytes) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text{static_cast<char>(first), static_cast<char>(second)};
      const Decoded decoded = decode(encode(text));
      ASSERT_EQ(decoded.kind, Kind::complete) << first << " " << second;
      ASSERT_EQ(decoded.text, text) << first << " " << second;
    }
  }
}

TEST(Huffman, DecodesRandomTextsOfAllLengths) {
  std::mt19937 random(7541);
  for (std::size_t size = 0; size < 600; ++size) {
    std::string text;
    const bool any_byte = random() % 4 == 0;
    for (std::size_t index = 0; index < size; ++index) {
      const bool rare = random() % 32 == 0;
      text += static_cast<char>(any_byte || rare ? random() % 256 : 'a' + random() % 26);
    }
    const Decoded decoded = decode(encode(text), size);
    ASSERT_EQ(decoded.kind, Kind::complete) << size;
    ASSERT_EQ(decoded.text, text);
  }
}

TEST(Huffman, EncodesLettersInLowerCase) {
  EXPECT_EQ(encode("Content-TYPE@[`{", LetterCase::lower), encode("content-type@[`{"));
  EXPECT_NE(encode("Content-TYPE"), encode("content-type"));
}

TEST(Huffman, ReportsATextThatIsLongerThanItsRoom) {
  for (const std::string_view text : {"a", "0123456789", "text/html; charset=utf-8", "~~~~~~~~~"}) {
    const std::string code = encode(text);
    for (std::size_t room = 0; room < text.size(); ++room) {
      EXPECT_EQ(decode(code, room).kind, Kind::no_room) << text << " " << room;
    }
    EXPECT_EQ(decode(code, text.size()).text, text);
    EXPECT_EQ(decode(code, text.size() + 20).text, text);
  }
}

TEST(Huffman, RejectsPaddingThatIsNotTheStartOfEndOfString) {
  // "a" is 00011, and three bits of padding follow.
  EXPECT_EQ(decode("\x1f").text, "a");
  for (int padding = 0; padding < 7; ++padding) {
    const std::string code(1, static_cast<char>(0x18 | padding));
    EXPECT_EQ(decode(code).kind, Kind::invalid) << padding;
  }
}

TEST(Huffman, RejectsPaddingOfAByteOrMore) {
  EXPECT_EQ(decode("\xff").kind, Kind::invalid);
  EXPECT_EQ(decode("\x1f\xff").kind, Kind::invalid);
  EXPECT_EQ(decode("\x1f\xff\xff\xff").kind, Kind::invalid);
  EXPECT_EQ(decode(encode("01234567")).text, "01234567");  // 40 bits: no padding
  EXPECT_EQ(decode(encode("01234567") + "\xff").kind, Kind::invalid);
}

TEST(Huffman, RejectsEndOfString) {
  EXPECT_EQ(decode("\xff\xff\xff\xff").kind, Kind::invalid);  // EOS and two bits
  EXPECT_EQ(decode("\xff\xff\xff\xfc").kind, Kind::invalid);
  EXPECT_EQ(decode("\x1f\xff\xff\xff\xff").kind, Kind::invalid);  // "a" before it
  EXPECT_EQ(decode(std::string(64, '\xff')).kind, Kind::invalid);
  EXPECT_EQ(decode(encode("0123456789012345") + std::string(12, '\xff')).kind, Kind::invalid);
}

TEST(Huffman, RejectsACodeThatEndsInItsMiddle) {
  const std::string code = encode(std::string(1, '\x0a'));  // 30 bits
  ASSERT_EQ(code.size(), 4U);
  for (std::size_t size = 1; size < 4; ++size) {
    EXPECT_EQ(decode(std::string_view(code).substr(0, size)).kind, Kind::invalid) << size;
  }
}

TEST(Huffman, AcceptsExactlyTheCodesThatItWrites) {
  // A code that decodes is the one that the encoder writes, because the padding is unique.
  std::mt19937 random(2015);
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string code;
    const std::size_t size = 1 + random() % 10;
    for (std::size_t index = 0; index < size; ++index) code += static_cast<char>(random());
    if (round % 2 == 0) code.back() = static_cast<char>(code.back() | 0x1f);
    const Decoded decoded = decode(code);
    ASSERT_NE(decoded.kind, Kind::no_room);
    if (decoded.kind != Kind::complete) continue;
    ++accepted;
    ASSERT_EQ(encode(decoded.text), code);
  }
  EXPECT_GT(accepted, 200);
}

}  // namespace
}  // namespace weir::http::huffman_test
