// Tests of the codecs of lists and maps.
#include "weir/json/detail/codec_lists.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "weir/json/read.hpp"
#include "weir/json/write.hpp"

namespace weir::json::codec_lists_test {
namespace {

/// Checks that `value` is written as `text` and read back.
template <class T>
void expect_both_ways(const T& value, std::string_view text) {
  EXPECT_EQ(write(value), text);
  const auto back = read<T>(text);
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(*back, value);
}

template <class T>
std::string error_of(std::string_view text) {
  const auto result = read<T>(text);
  return result ? "it was read" : result.error().message();
}

/// Returns the pointers of all errors, separated by spaces.
template <class T>
std::string pointers_of(std::string_view text) {
  T value{};
  std::string pointers;
  for (const Error& each : read_all_errors(value, text)) pointers.append(each.pointer).append(" ");
  return pointers;
}

struct Item {
  int number;
  auto operator<=>(const Item&) const = default;
};

TEST(Lists, EveryKindIsReadAndWritten) {
  expect_both_ways(std::vector<int>{}, "[]");
  expect_both_ways(std::vector<int>{1, 2, 3}, "[1,2,3]");
  expect_both_ways(std::vector<bool>{true, false}, "[true,false]");
  expect_both_ways(std::vector<std::vector<int>>{{1}, {}, {2, 3}}, "[[1],[],[2,3]]");
  expect_both_ways(std::deque<std::string>{"a", "b"}, R"(["a","b"])");
  expect_both_ways(std::list<double>{0.5}, "[0.5]");
  expect_both_ways(std::set<int>{1, 2}, "[1,2]");
  expect_both_ways(std::unordered_set<std::string>{"one"}, R"(["one"])");
  expect_both_ways(std::array<int, 3>{1, 2, 3}, "[1,2,3]");
  expect_both_ways(std::array<int, 0>{}, "[]");
  expect_both_ways(std::pair<int, std::string>{1, "a"}, R"([1,"a"])");
  expect_both_ways(std::tuple<int, bool, double>{1, true, 0.5}, "[1,true,0.5]");
  expect_both_ways(std::tuple<>{}, "[]");
}

TEST(Lists, BlanksAreSkippedAndCommasChecked) {
  EXPECT_EQ(read<std::vector<int>>(" [ 1 ,\n2 ] "), (std::vector<int>{1, 2}));
  EXPECT_EQ(read<std::vector<int>>("[ ]"), std::vector<int>());
  EXPECT_EQ(error_of<std::vector<int>>("[1,]"), "a trailing comma (at byte 3)");
  EXPECT_EQ(error_of<std::vector<int>>("[,1]"), "[0]: expected an integer, found ',' (at byte 1)");
  EXPECT_EQ(error_of<std::vector<int>>("[1,,2]"),
            "[1]: expected an integer, found ',' (at byte 3)");
  EXPECT_EQ(error_of<std::vector<int>>("[1 2]"), "expected ',' or ']', found a number (at byte 3)");
  EXPECT_EQ(error_of<std::vector<int>>("[1}"), "expected ',' or ']', found '}' (at byte 2)");
  EXPECT_EQ(error_of<std::vector<int>>("[1"),
            "expected ',' or ']', found the end of the text (at byte 2)");
  EXPECT_EQ(error_of<std::vector<int>>("["),
            "[0]: expected an integer, found the end of the text (at byte 1)");
}

TEST(Lists, AFixedLengthIsChecked) {
  using Pairs = std::vector<std::array<int, 2>>;
  using Tuple = std::tuple<int, std::string>;
  EXPECT_EQ(error_of<Pairs>("[[1,2],[1]]"), "[1]: expected an array of 2, found 1 (at byte 10)");
  EXPECT_EQ(error_of<Pairs>("[[1,2,3]]"),
            "[0]: expected an array of 2, found more elements (at byte 6)");
  EXPECT_EQ(error_of<Tuple>("[1,2]"), "[1]: expected a string, found a number (at byte 3)");
  EXPECT_EQ(error_of<std::tuple<>>("[1]"),
            "expected an array of 0, found more elements (at byte 1)");
}

TEST(Lists, SetsRejectDuplicates) {
  EXPECT_EQ(error_of<std::set<int>>("[1,2,1]"), "[2]: given twice (at byte 6)");
}

TEST(Lists, AllErrorsNameTheirElements) {
  constexpr std::string_view text = R"([{"number":"x"},{"number":1},{},7])";
  constexpr std::string_view pointers = "/0/number /2/number /3 ";
  EXPECT_EQ(pointers_of<std::vector<Item>>(text), pointers);
  EXPECT_EQ(pointers_of<std::set<Item>>(text), pointers);
  EXPECT_EQ((pointers_of<std::array<Item, 4>>(text)), pointers);
  EXPECT_EQ((pointers_of<std::tuple<Item, Item, Item, Item>>(text)), pointers);
  EXPECT_EQ((pointers_of<std::vector<std::set<Item>>>("[[{}],[]]")), "/0/0/number ");
  EXPECT_EQ(pointers_of<std::set<int>>("[1,1,\"a\",2]"), "/1 /2 ");
  EXPECT_EQ((pointers_of<std::array<Item, 2>>("[{},{}")), "/0/number /1/number  ");
}

TEST(Maps, AllErrorsNameTheirKeys) {
  using ByText = std::map<std::string, Item>;
  using ByNumber = std::map<int, Item>;
  EXPECT_EQ(pointers_of<ByText>(R"({"a":{"number":"x"},"b":{"number":1},"c":{},"d":7,"b":{}})"),
            "/a/number /c/number /d /b ");
  EXPECT_EQ(pointers_of<ByNumber>(R"({"x":{},"1":{},"2":{"number":2},"2":{"number":2}})"),
            "/x /1/number /2 ");
  EXPECT_EQ((pointers_of<std::map<std::string, ByNumber>>(R"({"a":{"1":{}}})")), "/a/1/number ");
}

TEST(Maps, EveryKindIsReadAndWritten) {
  expect_both_ways(std::map<std::string, int>{}, "{}");
  expect_both_ways(std::map<std::string, int>{{"a", 1}, {"", 2}}, R"({"":2,"a":1})");
  expect_both_ways(std::unordered_map<std::string, std::vector<int>>{{"a\n", {1}}},
                   R"({"a\n":[1]})");
  expect_both_ways(std::map<int, bool>{{-1, true}, {10, false}}, R"({"-1":true,"10":false})");
  expect_both_ways(std::map<std::uint64_t, int>{{UINT64_MAX, 1}}, R"({"18446744073709551615":1})");
  expect_both_ways(std::map<std::string, std::map<std::string, int>>{{"a", {{"b", 1}}}},
                   R"({"a":{"b":1}})");
}

TEST(Maps, IntegerKeysHaveOneText) {
  using Map = std::map<std::int8_t, int>;
  for (const std::string_view text : {R"({"01":1})", R"({"-0":1})", R"({"+1":1})", R"({"1.0":1})",
                                      R"({"":1})", R"({" 1":1})", R"({"128":1})", R"({"x":1})"}) {
    EXPECT_FALSE(read<Map>(text)) << text;
  }
  EXPECT_EQ(read<Map>(R"({"-128":1,"127":2,"0":3})"), (Map{{-128, 1}, {127, 2}, {0, 3}}));
  EXPECT_FALSE(read<Map>(R"({"-129":1})"));
  EXPECT_FALSE((read<std::map<std::uint8_t, int>>(R"({"-1":1})")));
  EXPECT_EQ((read<std::map<std::uint8_t, int>>(R"({"255":1})")),
            (std::map<std::uint8_t, int>{{255, 1}}));
  EXPECT_EQ(error_of<Map>(R"({"128":1})"),
            "128: expected an integer in quotes as the name (at byte 1)");
  EXPECT_EQ(error_of<Map>(R"({"1":1,"1":1})"), "1: given twice (at byte 7)");
  EXPECT_EQ(error_of<Map>(R"({"1":x})"), "1: expected an integer, found 'x' (at byte 5)");
}

TEST(Maps, CommasAndColonsAreChecked) {
  using Map = std::map<std::string, int>;
  EXPECT_EQ(error_of<Map>(R"({"a":1,})"), "a trailing comma (at byte 7)");
  EXPECT_EQ(error_of<Map>(R"({"a":1 "b":2})"), "expected ',' or '}', found a string (at byte 7)");
  EXPECT_EQ(error_of<Map>(R"({"a"})"), "expected ':', found '}' (at byte 4)");
  EXPECT_EQ(error_of<Map>(R"({1:2})"), "expected a name in quotes, found a number (at byte 1)");
  EXPECT_EQ(error_of<Map>(R"({)"),
            "expected a name in quotes, found the end of the text (at byte 1)");
}

}  // namespace
}  // namespace weir::json::codec_lists_test
