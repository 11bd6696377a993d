// Tests of UrlencodedPairs.
#include "weir/http/message/detail/urlencoded.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace weir::http::urlencoded_test {
namespace {

/// Returns every pair as "name=value|".
std::string walk(std::string_view raw) {
  std::string seen;
  UrlencodedPairs query(raw);
  while (const auto pair = query.next()) seen += pair->name + "=" + pair->value + "|";
  return seen;
}

TEST(UrlencodedPairs, SplitsPairsBeforeDecoding) {
  EXPECT_EQ(walk("a=1&b=2"), "a=1|b=2|");
  EXPECT_EQ(walk("a=1%262&b%3Dc=3"), "a=1&2|b=c=3|");
  EXPECT_EQ(walk("a=b=c"), "a=b=c|");
  EXPECT_EQ(walk("a;b=1"), "a;b=1|");
}

TEST(UrlencodedPairs, HandlesEmptyNamesValuesAndPairs) {
  EXPECT_EQ(walk(""), "");
  EXPECT_EQ(walk("&&"), "");
  EXPECT_EQ(walk("&a&&b=&=c&="), "a=|b=|=c|=|");
}

TEST(UrlencodedPairs, DecodesPlusAsSpaceAndEscapedPlusAsPlus) {
  EXPECT_EQ(walk("q=a+b%2Bc%20d"), "q=a b+c d|");
  EXPECT_EQ(walk("%C3%A9=%c3%a9"), "\xc3\xa9=\xc3\xa9|");
}

TEST(UrlencodedPairs, AStrayPercentIsItself) {
  EXPECT_EQ(walk("a=%&b=100%&%zz=%+&c=%4&d=%%41&e=%4%41"), "a=%|b=100%|%zz=% |c=%4|d=%A|e=%4A|");
}

TEST(UrlencodedPairs, FindReturnsTheFirstPairWithTheDecodedName) {
  const UrlencodedPairs query("x=%zz&a%20b=1&a+b=2&e");
  EXPECT_EQ(query.find("a b"), "1");
  EXPECT_EQ(query.find("e"), "");
  EXPECT_EQ(query.find("x"), "%zz");
  EXPECT_FALSE(query.find("z").has_value());
  EXPECT_FALSE(query.find("E").has_value());
}

TEST(UrlencodedPairs, DecodesFormText) {
  EXPECT_EQ(decode_form("a+%2b%00"), std::string("a +\0", 4));
  EXPECT_EQ(decode_form("%g1"), "%g1");
}

TEST(UrlencodedPairs, RawPairsKnowTheirEscapes) {
  std::string_view rest = "&a=1&&b%20=2&c=x+y=&=&d";
  std::string seen;
  for (RawPair pair; take_pair(rest, pair);) {
    seen.append(pair.name).append(pair.name_has_escapes ? "!" : "").append(":");
    seen.append(pair.value).append(pair.value_has_escapes ? "!|" : "|");
  }
  EXPECT_EQ(seen, "a:1|b%20!:2|c:x+y=!|:|d:|");
  EXPECT_TRUE(rest.empty());
}

TEST(UrlencodedPairs, DecodesIntoTheRoomOfTheCaller) {
  std::array<char, 4> room;
  EXPECT_EQ(decode_form("a+%26", room), std::nullopt) << "the text is longer than the room";
  EXPECT_EQ(decode_form("%26+", room), "& ");
  EXPECT_EQ(decode_form("%2", room), "%2");
  EXPECT_EQ(decode_form("", room), "");
  std::string value(100, 'x');
  const char* const memory = value.data();
  decode_value({.value = "a%2Bb+", .value_has_escapes = true}, value);
  EXPECT_EQ(value, "a+b ");
  EXPECT_EQ(value.data(), memory);
  decode_value({.value = "%", .value_has_escapes = true}, value);
  EXPECT_EQ(value, "%");
}

TEST(UrlencodedPairs, FindKeepsThePosition) {
  UrlencodedPairs query("a=1&b=2&a=3");
  EXPECT_EQ(query.find("a"), "1");
  EXPECT_EQ(query.next()->value, "1");
  EXPECT_EQ(query.find("a"), "3");
  EXPECT_EQ(query.find("b"), "2");
  EXPECT_EQ(query.next()->name, "b");
  EXPECT_FALSE(query.find("b").has_value());
  EXPECT_EQ(query.next()->value, "3");
  EXPECT_FALSE(query.next().has_value());
  EXPECT_FALSE(query.next().has_value());
}

}  // namespace
}  // namespace weir::http::urlencoded_test
