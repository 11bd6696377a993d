#include "weir/http/matching/path_params.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace weir::http {
namespace {

struct Even {
  int value;
  static std::optional<Even> from_capture(std::string_view text) {
    const auto number = capture_as<int>(text);
    if (!number || *number % 2 != 0) return std::nullopt;
    return Even{*number};
  }
};

static_assert(CaptureType<Even> && CaptureType<int> && CaptureType<std::uint8_t> &&
              CaptureType<double> && CaptureType<std::string> && CaptureType<Rest>);
static_assert(!CaptureType<bool> && !CaptureType<char> && !CaptureType<wchar_t> &&
              !CaptureType<const char*> && !CaptureType<std::vector<int>>);

TEST(CaptureAs, TakesNumbersOnlyWhole) {
  EXPECT_EQ(capture_as<int>("42"), 42);
  EXPECT_EQ(capture_as<int>("-42"), -42);
  EXPECT_EQ(capture_as<int>("007"), 7);
  for (const char* text : {"", "+1", " 1", "1 ", "1x", "x", "0x10", "1.0", "--1", "1\n"}) {
    EXPECT_FALSE(capture_as<int>(text)) << text;
  }
}

TEST(CaptureAs, TakesNumbersOnlyInRange) {
  EXPECT_EQ(capture_as<std::uint8_t>("255"), 255);
  EXPECT_FALSE(capture_as<std::uint8_t>("256"));
  EXPECT_FALSE(capture_as<std::uint8_t>("-1"));
  EXPECT_EQ(capture_as<std::int8_t>("-128"), -128);
  EXPECT_EQ(capture_as<std::uint64_t>("18446744073709551615"),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(capture_as<std::uint64_t>("18446744073709551616"));
  EXPECT_EQ(capture_as<std::int64_t>("-9223372036854775808"),
            std::numeric_limits<std::int64_t>::min());
}

TEST(CaptureAs, TakesFiniteFloatingPointNumbers) {
  EXPECT_EQ(capture_as<double>("2.5"), 2.5);
  EXPECT_EQ(capture_as<double>("-1e3"), -1000.0);
  EXPECT_EQ(capture_as<float>("0.5"), 0.5F);
  for (const char* text : {"", "nan", "inf", "-infinity", "1e999", "+1", "1.5kg", "0x1p3"}) {
    EXPECT_FALSE(capture_as<double>(text)) << text;
  }
}

TEST(CaptureAs, TakesEveryTextAsText) {
  EXPECT_EQ(capture_as<std::string_view>(""), "");
  EXPECT_EQ(capture_as<std::string>("a b"), "a b");
}

TEST(CaptureAs, AsksTypesOfTheUser) {
  EXPECT_EQ(capture_as<Even>("4")->value, 4);
  EXPECT_FALSE(capture_as<Even>("5"));
  EXPECT_FALSE(capture_as<Even>("four"));
}

std::vector<std::string> decoded_segments(Rest rest) {
  std::vector<std::string> segments;
  for (auto it = rest.begin(); it != rest.end(); ++it) segments.push_back(it.decoded());
  return segments;
}

TEST(Rest, GivesDecodedSegmentsOfARawRemainder) {
  EXPECT_EQ(Rest("a%2Fb/c").raw(), "a%2Fb/c");
  EXPECT_EQ(decoded_segments(Rest("a%2Fb/c%20d")), (std::vector<std::string>{"a/b", "c d"}));
}

TEST(Rest, KeepsEmptySegments) {
  EXPECT_EQ(decoded_segments(Rest("")), std::vector<std::string>{""});
  EXPECT_EQ(decoded_segments(Rest("/a")), (std::vector<std::string>{"", "a"}));
  EXPECT_EQ(decoded_segments(Rest("a//")), (std::vector<std::string>{"a", "", ""}));
}

TEST(Captures, MoveWithTheBytesThatTheyShow) {
  const std::string before = "GET /one/two";
  const std::string after = before;
  const std::string elsewhere = "decoded";
  Captures captures;
  captures.add(std::string_view(before).substr(5, 3));
  captures.add(elsewhere);
  captures.add(std::string_view(before).substr(9));
  captures.rebase(before, after.data());
  EXPECT_EQ(captures[0].data(), after.data() + 5);
  EXPECT_EQ(captures[0], "one");
  EXPECT_EQ(captures[1].data(), elsewhere.data());
  EXPECT_EQ(captures[2].data(), after.data() + 9);
  EXPECT_EQ(captures[2], "two");
}

TEST(Captures, WhatIsRightBehindTheBytesStays) {
  const std::string both = "headother";
  const std::string moved = "head";
  Captures captures;
  captures.add(std::string_view(both).substr(4));
  captures.rebase(std::string_view(both).substr(0, 4), moved.data());
  EXPECT_EQ(captures[0].data(), both.data() + 4);
}

}  // namespace
}  // namespace weir::http
