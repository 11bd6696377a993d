// Tests of path parameters and their conversion.
#include "weir/http/matching/path_params.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace weir::http::path_params_test {
namespace {

struct Even {
  int value;
  static std::optional<Even> from_path_param(std::string_view text) {
    const auto number = path_param_as<int>(text);
    if (!number || *number % 2 != 0) return std::nullopt;
    return Even{*number};
  }
};

static_assert(PathParamType<Even> && PathParamType<int> && PathParamType<std::uint8_t> &&
              PathParamType<double> && PathParamType<std::string> && PathParamType<Wildcard>);
static_assert(!PathParamType<bool> && !PathParamType<char> && !PathParamType<wchar_t> &&
              !PathParamType<const char*> && !PathParamType<std::vector<int>>);

TEST(PathParamAs, AcceptsOnlyCompleteNumbers) {
  EXPECT_EQ(path_param_as<int>("42"), 42);
  EXPECT_EQ(path_param_as<int>("-42"), -42);
  EXPECT_EQ(path_param_as<int>("007"), 7);
  for (const char* text : {"", "+1", " 1", "1 ", "1x", "x", "0x10", "1.0", "--1", "1\n"}) {
    EXPECT_FALSE(path_param_as<int>(text)) << text;
  }
}

TEST(PathParamAs, AcceptsOnlyNumbersInRange) {
  EXPECT_EQ(path_param_as<std::uint8_t>("255"), 255);
  EXPECT_FALSE(path_param_as<std::uint8_t>("256"));
  EXPECT_FALSE(path_param_as<std::uint8_t>("-1"));
  EXPECT_EQ(path_param_as<std::int8_t>("-128"), -128);
  EXPECT_EQ(path_param_as<std::uint64_t>("18446744073709551615"),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(path_param_as<std::uint64_t>("18446744073709551616"));
  EXPECT_EQ(path_param_as<std::int64_t>("-9223372036854775808"),
            std::numeric_limits<std::int64_t>::min());
}

TEST(PathParamAs, AcceptsFiniteFloatingPointNumbers) {
  EXPECT_EQ(path_param_as<double>("2.5"), 2.5);
  EXPECT_EQ(path_param_as<double>("-1e3"), -1000.0);
  EXPECT_EQ(path_param_as<float>("0.5"), 0.5F);
  for (const char* text : {"", "nan", "inf", "-infinity", "1e999", "+1", "1.5kg", "0x1p3"}) {
    EXPECT_FALSE(path_param_as<double>(text)) << text;
  }
}

TEST(PathParamAs, AcceptsEveryTextAsText) {
  EXPECT_EQ(path_param_as<std::string_view>(""), "");
  EXPECT_EQ(path_param_as<std::string>("a b"), "a b");
}

TEST(PathParamAs, UsesTheConversionOfUserTypes) {
  EXPECT_EQ(path_param_as<Even>("4")->value, 4);
  EXPECT_FALSE(path_param_as<Even>("5"));
  EXPECT_FALSE(path_param_as<Even>("four"));
}

std::vector<std::string> decoded_segments(Wildcard rest) {
  std::vector<std::string> segments;
  for (auto it = rest.begin(); it != rest.end(); ++it) segments.push_back(it.decoded());
  return segments;
}

TEST(Wildcard, DecodesSegmentsOfTheRawRemainder) {
  EXPECT_EQ(Wildcard("a%2Fb/c").raw(), "a%2Fb/c");
  EXPECT_EQ(decoded_segments(Wildcard("a%2Fb/c%20d")), (std::vector<std::string>{"a/b", "c d"}));
}

TEST(Wildcard, KeepsEmptySegments) {
  EXPECT_EQ(decoded_segments(Wildcard("")), std::vector<std::string>{""});
  EXPECT_EQ(decoded_segments(Wildcard("/a")), (std::vector<std::string>{"", "a"}));
  EXPECT_EQ(decoded_segments(Wildcard("a//")), (std::vector<std::string>{"a", "", ""}));
}

TEST(PathParams, RebaseMovesViewsIntoTheOldBytes) {
  const std::string before = "GET /one/two";
  const std::string after = before;
  const std::string elsewhere = "decoded";
  PathParams params;
  params.add(std::string_view(before).substr(5, 3));
  params.add(elsewhere);
  params.add(std::string_view(before).substr(9));
  params.rebase(before, after.data());
  EXPECT_EQ(params[0].data(), after.data() + 5);
  EXPECT_EQ(params[0], "one");
  EXPECT_EQ(params[1].data(), elsewhere.data());
  EXPECT_EQ(params[2].data(), after.data() + 9);
  EXPECT_EQ(params[2], "two");
}

TEST(PathParams, RebaseKeepsAViewRightAfterTheOldBytes) {
  const std::string both = "headother";
  const std::string moved = "head";
  PathParams params;
  params.add(std::string_view(both).substr(4));
  params.rebase(std::string_view(both).substr(0, 4), moved.data());
  EXPECT_EQ(params[0].data(), both.data() + 4);
}

TEST(PathParams, RebaseMovesEveryViewThatStartsInTheOldBytes) {
  const std::string all = "<bytes>";
  const std::string_view old_bytes = std::string_view(all).substr(1, 5);
  const std::string moved(old_bytes);
  for (std::size_t start = 0; start < all.size(); ++start) {
    PathParams params;
    params.add(std::string_view(all).substr(start, 1));
    params.rebase(old_bytes, moved.data());
    const bool inside = start >= 1 && start <= 5;
    EXPECT_EQ(params[0].data(), inside ? moved.data() + start - 1 : all.data() + start) << start;
    EXPECT_EQ(params[0].size(), 1U);
  }
}

TEST(PathParams, HoldAsManyTextsAsAPatternMayHave) {
  PathParams params;
  EXPECT_EQ(params.size(), 0U);
  const std::string text = "0123456789abcdef";
  for (int round = 0; round < 2; ++round) {
    for (std::size_t index = 0; index < path_params_max; ++index) {
      params.add(std::string_view(text).substr(index));
    }
    ASSERT_EQ(params.size(), 16U);
    for (std::size_t index = 0; index < path_params_max; ++index) {
      EXPECT_EQ(params[index], text.substr(index));
    }
    params.clear();
    EXPECT_EQ(params.size(), 0U);
  }
}

TEST(PathParamAs, AcceptsTheLimitsOfEveryInteger) {
  EXPECT_EQ(path_param_as<std::int8_t>("127"), 127);
  EXPECT_FALSE(path_param_as<std::int8_t>("128"));
  EXPECT_FALSE(path_param_as<std::int8_t>("-129"));
  EXPECT_EQ(path_param_as<std::uint16_t>("65535"), 65535);
  EXPECT_FALSE(path_param_as<std::uint16_t>("65536"));
  EXPECT_EQ(path_param_as<std::uint8_t>("0"), 0);
  EXPECT_EQ(path_param_as<std::int64_t>("9223372036854775807"), INT64_MAX);
  EXPECT_FALSE(path_param_as<std::int64_t>("9223372036854775808"));
  EXPECT_FALSE(path_param_as<std::int64_t>("-9223372036854775809"));
  for (const char* text : {"-", "1-", "1 2", "0x", "1\t", "\xd9\xa1"}) {
    EXPECT_FALSE(path_param_as<std::int64_t>(text)) << text;
  }
  EXPECT_FALSE(path_param_as<float>("1e39"));
  EXPECT_FALSE(path_param_as<float>("NaN"));
  EXPECT_FALSE(path_param_as<double>("1.5 "));
  EXPECT_FALSE(path_param_as<double>("Infinity"));
}

}  // namespace
}  // namespace weir::http::path_params_test
