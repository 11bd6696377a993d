// Tests of the character classes.
#include "weir/http/syntax/detail/char_class.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <cstring>

namespace weir::http {
namespace {

TEST(CharClass, ClassesFollowTheGrammars) {
  for (int each = 0; each < 256; ++each) {
    const auto character = static_cast<char>(each);
    const bool ascii = each > 0 && each < 128;
    const bool alnum = ascii && std::isalnum(each) != 0;
    const auto among = [&](const char* set) { return ascii && std::strchr(set, each) != nullptr; };
    EXPECT_EQ(is_in(character, CharClass::token), alnum || among("!#$%&'*+-.^_`|~")) << each;
    EXPECT_EQ(is_in(character, CharClass::target), alnum || among("-._~!$&'()*+,;=:@/?%")) << each;
    EXPECT_EQ(is_in(character, CharClass::host), alnum || among("-._~!$&'()*+;=")) << each;
    EXPECT_EQ(is_in(character, CharClass::value), each == '\t' || (each >= 32 && each != 127))
        << each;
    EXPECT_EQ(is_in(character, CharClass::hex), ascii && std::isxdigit(each) != 0) << each;
    EXPECT_EQ(is_in(character, CharClass::digit), ascii && std::isdigit(each) != 0) << each;
    EXPECT_EQ(hex_value(character) >= 0, ascii && std::isxdigit(each) != 0) << each;
  }
}

TEST(CharClass, ConvertsHexDigits) {
  EXPECT_EQ(hex_value('0'), 0);
  EXPECT_EQ(hex_value('9'), 9);
  EXPECT_EQ(hex_value('a'), 10);
  EXPECT_EQ(hex_value('F'), 15);
}

TEST(CharClass, OnlyLettersIgnoreCase) {
  EXPECT_TRUE(equals_ignoring_case("Content-Length", "cONTENT-lENGTH"));
  EXPECT_FALSE(equals_ignoring_case("Content-Length", "Content_Length"));
  EXPECT_FALSE(equals_ignoring_case("a", "ab"));
  EXPECT_FALSE(equals_ignoring_case("[", "{"));
  EXPECT_FALSE(equals_ignoring_case("@", "`"));
}

TEST(CharClass, TrimRemovesOnlySpaceAndTab) {
  EXPECT_EQ(trim(" \t a b\t "), "a b");
  EXPECT_EQ(trim(" \t "), "");
  EXPECT_EQ(trim("\va\r"), "\va\r");
}

}  // namespace
}  // namespace weir::http
