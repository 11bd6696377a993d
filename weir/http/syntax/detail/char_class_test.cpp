// Tests of the character classes.
#include "weir/http/syntax/detail/char_class.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace weir::http::char_class_test {
namespace {

TEST(CharClass, ClassesFollowTheGrammars) {
  for (int each = 0; each < 256; ++each) {
    const auto character = static_cast<char>(each);
    const bool ascii = each > 0 && each < 128;
    const bool alnum = ascii && std::isalnum(each) != 0;
    const auto among = [&](const char* set) { return ascii && std::strchr(set, each) != nullptr; };
    EXPECT_EQ(is_in(character, CharClass::token), alnum || among("!#$%&'*+-.^_`|~")) << each;
    EXPECT_EQ(is_in(character, CharClass::target), alnum || among("-._~!$&'()*+,;=:@/?%[]{}|^`\\"))
        << each;
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

TEST(CharClass, EveryHexDigitHasItsValue) {
  for (int value = 0; value < 16; ++value) {
    EXPECT_EQ(hex_value("0123456789abcdef"[value]), value);
    EXPECT_EQ(hex_value("0123456789ABCDEF"[value]), value);
  }
  for (const char other : {'/', ':', '@', 'G', '`', 'g', '\x80'}) EXPECT_EQ(hex_value(other), -1);
}

TEST(CharClass, OnlyCapitalLettersGetLower) {
  for (int each = 0; each < 256; ++each) {
    const auto character = static_cast<char>(each);
    const bool capital = each >= 'A' && each <= 'Z';
    EXPECT_EQ(to_lower(character), capital ? static_cast<char>(each + 32) : character) << each;
    EXPECT_EQ(is_space(character), each == ' ' || each == '\t') << each;
    const char lower = to_lower(character);
    EXPECT_TRUE(equals_ignoring_case({&character, 1}, {&lower, 1}));
  }
}

TEST(CharClass, ComparesEveryByteWithoutCase) {
  const std::string text = "Content-Length";
  for (std::size_t index = 0; index < text.size(); ++index) {
    std::string other = text;
    other[index] = '!';
    EXPECT_FALSE(equals_ignoring_case(text, other)) << other;
    EXPECT_FALSE(equals_ignoring_case(other, "CONTENT-LENGTH")) << other;
  }
  EXPECT_TRUE(equals_ignoring_case("", ""));
  EXPECT_FALSE(equals_ignoring_case("a", ""));
  EXPECT_FALSE(equals_ignoring_case("", "a"));
}

TEST(CharClass, ComparesWordsAsItComparesBytes) {
  for (const std::size_t size : {1U, 3U, 4U, 5U, 7U, 8U, 9U, 16U, 17U}) {
    for (std::size_t index = 0; index < size; ++index) {
      std::string text(size, 'k');
      std::string other(size, 'K');
      for (int pair = 0; pair < 256 * 256; ++pair) {
        text[index] = static_cast<char>(pair / 256);
        other[index] = static_cast<char>(pair % 256);
        const bool equal = to_lower(text[index]) == to_lower(other[index]);
        if (equals_ignoring_case(text, other) != equal) ADD_FAILURE() << pair << " at " << index;
      }
    }
  }
}

TEST(CharClass, TokensAreNotEmpty) {
  EXPECT_TRUE(is_token("a"));
  EXPECT_TRUE(is_token("!#$%&'*+-.^_`|~09AZaz"));
  for (const std::string_view text : {"", " a", "a ", "a b", "a:", "\"a\"", "a\x80"}) {
    EXPECT_FALSE(is_token(text)) << text;
  }
  EXPECT_TRUE(all_in("", CharClass::digit));
  EXPECT_TRUE(all_in("123", CharClass::digit));
  EXPECT_FALSE(all_in("x23", CharClass::digit));
  EXPECT_FALSE(all_in("12x", CharClass::digit));
  EXPECT_TRUE(all_in("12f", CharClass::digit | CharClass::hex));
}

TEST(CharClass, TrimsEveryWhiteSpaceAtBothEnds) {
  EXPECT_EQ(trim(""), "");
  EXPECT_EQ(trim("a"), "a");
  EXPECT_EQ(trim(" "), "");
  EXPECT_EQ(trim("\t"), "");
  EXPECT_EQ(trim("a \t "), "a");
  EXPECT_EQ(trim(" \t a"), "a");
}

}  // namespace
}  // namespace weir::http::char_class_test
