// Tests of printable text.
#include "weir/base/text/detail/printable.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/text/detail/utf8.hpp"

namespace weir::printable_test {
namespace {

using std::string_view_literals::operator""sv;

std::string utf8_of(std::uint32_t code_point) {
  char bytes[4];
  return {bytes, put_utf8(bytes, code_point)};
}

TEST(Printable, TextStays) {
  for (const std::string_view text :
       {""sv, "plain text ~!\"\\"sv, "caf\xc3\xa9"sv, "\xe6\x97\xa5\xe6\x9c\xac"sv,
        "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d"sv, "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x94\xac"sv,
        "\xe2\x80\x8c"sv, "\xe2\x80\x9c\xe2\x80\x9d"sv, "\xef\xbf\xbd"sv}) {
    EXPECT_EQ(to_printable(text), text);
    EXPECT_EQ(printable_prefix(text), text.size()) << text;
  }
}

TEST(Printable, OtherBytesAreEscaped) {
  struct Row {
    std::string_view text;
    std::string_view printable;
  };
  for (const Row& row :
       {Row{"a\nb\r\tc"sv, "a\\x0ab\\x0d\\x09c"}, Row{"\x1b[31m"sv, "\\x1b[31m"},
        Row{"a\0b"sv, "a\\x00b"}, Row{"\x7f"sv, "\\x7f"},
        Row{"a\xc2\x9b"
            "31mb"sv,
            "a\\xc2\\x9b31mb"},
        Row{"\xc2\x85"sv, "\\xc2\\x85"}, Row{"\xe2\x80\xae"sv, "\\xe2\\x80\\xae"},
        Row{"\xe2\x81\xa6x\xe2\x81\xa9"sv, "\\xe2\\x81\\xa6x\\xe2\\x81\\xa9"},
        Row{"\xe2\x80\xa8"sv, "\\xe2\\x80\\xa8"}, Row{"\xf3\xa0\x81\x81"sv, "\\xf3\\xa0\\x81\\x81"},
        Row{"\x9b"sv, "\\x9b"}, Row{"a\xffz"sv, "a\\xffz"}, Row{"\xc3"sv, "\\xc3"},
        Row{"\xc3("sv, "\\xc3("}, Row{"\xed\xa0\x80"sv, "\\xed\\xa0\\x80"},
        Row{"\xc0\x8a"sv, "\\xc0\\x8a"}, Row{"\xe2\x80"sv, "\\xe2\\x80"}}) {
    EXPECT_EQ(to_printable(row.text), row.printable);
    EXPECT_EQ(to_printable(row.printable), row.printable);
    EXPECT_LT(printable_prefix(row.text), row.text.size());
  }
}

TEST(Printable, KeepsLineFeedsForFormatsThatEscapeThem) {
  EXPECT_EQ(to_printable_lines("a\nb\x1b\n\n\xff"), "a\nb\\x1b\n\n\\xff");
  EXPECT_EQ(to_printable_lines(""), "");
  EXPECT_EQ(to_printable_lines("\n"), "\n");
}

TEST(Printable, PrefixEndsBeforeTheCharacter) {
  EXPECT_EQ(printable_prefix("ab\xe2\x80\xae"), 2U);
  EXPECT_EQ(printable_prefix("\xc3\xa9\n"), 2U);
  EXPECT_EQ(printable_prefix("\xff"), 0U);
}

TEST(Printable, CodePointsThatChangeOtherTextAreHidden) {
  for (const std::uint32_t each :
       {0x0U,     0xAU,      0x1BU,     0x1FU,    0x7FU,    0x80U,    0x9FU,   0xADU,   0x61CU,
        0x200BU,  0x200EU,   0x200FU,   0x2028U,  0x2029U,  0x202AU,  0x202EU, 0x2060U, 0x2066U,
        0x2069U,  0x206FU,   0xD800U,   0xDFFFU,  0xFDD0U,  0xFEFFU,  0xFFFEU, 0xFFFFU, 0x1FFFEU,
        0x1FFFFU, 0x10FFFFU, 0x110000U, 0xE0001U, 0xE0020U, 0xE007FU, 0x1D173U}) {
    EXPECT_FALSE(is_printable(each)) << std::hex << each;
  }
  for (const std::uint32_t each : {0x20U,   0x7EU,   0xA0U,   0xAEU,    0x61BU,   0x600U,   0x200CU,
                                   0x200DU, 0x2010U, 0x2027U, 0x202FU,  0x205FU,  0x2070U,  0xD7FFU,
                                   0xE000U, 0xFFFCU, 0xFFFDU, 0x1F600U, 0xE0100U, 0x10FFFDU}) {
    EXPECT_TRUE(is_printable(each)) << std::hex << each;
  }
}

TEST(Printable, EveryCodePointIsTakenWhole) {
  for (std::uint32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
    const std::string text = utf8_of(code_point);
    const std::size_t expected = is_printable(code_point) ? text.size() : 0;
    ASSERT_EQ(printable_prefix(text), expected) << std::hex << code_point;
  }
}

TEST(Printable, JsonHasEscapes) {
  EXPECT_EQ(to_printable_json("{\"a\":\"caf\xc3\xa9\"}"), "{\"a\":\"caf\xc3\xa9\"}");
  EXPECT_EQ(to_printable_json("\"\x7f\xc2\x9b\xe2\x80\xae\""), "\"\\u007f\\u009b\\u202e\"");
  EXPECT_EQ(to_printable_json("\"\xf3\xa0\x81\x81\""), "\"\\udb40\\udc41\"");
  EXPECT_EQ(to_printable_json("\"\xff\""), "\"\\ufffd\"");
}

}  // namespace
}  // namespace weir::printable_test
