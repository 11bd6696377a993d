// Tests of constraints in types: in JSON and in texts without quotes.
#include "weir/json/checked.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "weir/json/read.hpp"
#include "weir/json/write.hpp"

namespace weir::checked_test {
namespace {

using Stars = Checked<int, rule::Range<1, 5>>;
using Title = Checked<std::string, rule::Length<1, 4>>;
using Tag = Checked<std::string, rule::Length<2, 8>, rule::Pattern<"[a-z]+">>;
using Color = Checked<std::string, rule::OneOf<"red", "green">>;

struct Review {
  Title title;
  Stars stars = 3;
  std::optional<Color> color;
};
struct Page {
  std::vector<Review> reviews;
  int number;
};

/// Returns all errors, one line each.
template <class T>
std::string errors_of(std::string_view text, const json::ReadOptions& options = {}) {
  T value{};
  std::string lines;
  for (const json::Error& each : json::read_all_errors(value, text, options)) {
    lines += each.message() + "\n";
  }
  return lines;
}

TEST(Checked, ReadsAndWritesTheValueInIt) {
  const auto review = json::read<Review>(R"({"title":"abcd","stars":5,"color":"red"})");
  ASSERT_TRUE(review.has_value());
  EXPECT_EQ(*review->title, "abcd");
  EXPECT_EQ(review->stars, 5);
  EXPECT_EQ(review->title->size(), 4U);
  EXPECT_EQ(json::write(*review), R"({"title":"abcd","stars":5,"color":"red"})");
}

TEST(Checked, RangeCountsTheTicksOfADuration) {
  using Timeout = Checked<std::chrono::seconds, rule::Range<1, 60>>;
  EXPECT_EQ(*json::read<Timeout>(R"("1s")"), std::chrono::seconds(1));
  EXPECT_EQ(*json::read<Timeout>(R"("1min")"), std::chrono::seconds(60));
  EXPECT_EQ(errors_of<Timeout>(R"("61s")"),
            "expected a duration from 1s to 1min, found \"61s\" (at byte 0)\n");
  EXPECT_EQ(errors_of<Timeout>(R"("0s")"),
            "expected a duration from 1s to 1min, found \"0s\" (at byte 0)\n");
}

TEST(Checked, NamesTheRuleThatIsBroken) {
  EXPECT_EQ(errors_of<Stars>(" 6"), "expected an integer from 1 to 5, found 6 (at byte 1)\n");
  EXPECT_EQ(errors_of<Stars>("0"), "expected an integer from 1 to 5, found 0 (at byte 0)\n");
  EXPECT_EQ(errors_of<Title>("\"\""),
            "expected a string of 1 to 4 characters, found \"\" (at byte 0)\n");
  EXPECT_EQ(
      errors_of<Tag>("\"A1\""),
      "expected a string of 2 to 8 characters that matches [a-z]+, found \"A1\" (at byte 0)\n");
  EXPECT_EQ(errors_of<Color>("\"blue\""),
            "expected a string that is \"red\" or \"green\", found \"blue\" (at byte 0)\n");
  EXPECT_EQ((errors_of<Checked<double, rule::Range<0.5, 1.5>>>("2")),
            "expected a number from 0.5 to 1.5, found 2 (at byte 0)\n");
  EXPECT_EQ((errors_of<Checked<std::vector<int>, rule::Length<1, 2>>>("[]")),
            "expected an array of 1 to 2 elements, found [] (at byte 0)\n");
  EXPECT_EQ(errors_of<Stars>("\"5\""), "expected an integer, found a string (at byte 0)\n");
}

TEST(Checked, AcceptsTheBoundsOfItsRules) {
  for (const char* const text : {"1", "5"}) EXPECT_EQ(errors_of<Stars>(text), "");
  for (const char* const text : {R"("ab")", R"("abcdefgh")"}) EXPECT_EQ(errors_of<Tag>(text), "");
  for (const char* const text : {R"("a")", R"("abcdefghi")", R"("abc ")"}) {
    EXPECT_NE(errors_of<Tag>(text), "");
  }
}

TEST(Checked, CountsCharactersAndNotBytes) {
  EXPECT_EQ(errors_of<Title>("\"\u00e4\u20ac\U0001F600x\""), "");
  EXPECT_NE(errors_of<Title>("\"\u00e4\u20ac\U0001F600xy\""), "");
}

TEST(Checked, AnExpressionThatIsNoneThrows) {
  using Wrong = Checked<std::string, rule::Pattern<"(">>;
  EXPECT_THROW(static_cast<void>(errors_of<Wrong>("\"a\"")), std::invalid_argument);
}

TEST(Checked, IsReadFromATextWithoutQuotes) {
  Stars stars = 2;
  using Text = json::detail::TextValue<Stars>;
  EXPECT_TRUE(Text::read("4", stars));
  EXPECT_EQ(stars, 4);
  EXPECT_FALSE(Text::read("6", stars));
  EXPECT_FALSE(Text::read("x", stars));
  EXPECT_EQ(stars, 4);
  EXPECT_EQ(Text::expected(), "an integer from 1 to 5");
}

TEST(ReadAllErrors, FindsAllOfThemInTheOrderOfTheText) {
  EXPECT_EQ(errors_of<Page>(R"({"reviews":[{"title":"","stars":9},{"stars":"x","color":"blue",)"
                            R"("more":[1,{"a":2}]},7,{"title":"ok","stars":1}],"number":null})"),
            "reviews[0].title: expected a string of 1 to 4 characters, found \"\" (at byte 21)\n"
            "reviews[0].stars: expected an integer from 1 to 5, found 9 (at byte 32)\n"
            "reviews[1].stars: expected an integer, found a string (at byte 44)\n"
            "reviews[1].color: expected a string that is \"red\" or \"green\", found \"blue\" "
            "(at byte 56)\n"
            "reviews[1].more: unknown field (at byte 63)\n"
            "reviews[1].title: missing (at byte 81)\n"
            "reviews[2]: expected an object, found a number (at byte 83)\n"
            "number: expected an integer, found null (at byte 120)\n");
  EXPECT_EQ(errors_of<Page>("{}"), "reviews: missing (at byte 1)\nnumber: missing (at byte 1)\n");
  EXPECT_EQ(errors_of<Page>(R"({"reviews":[],"number":1,"number":2})"),
            "number: given twice (at byte 25)\n");
  EXPECT_EQ(errors_of<Page>(R"({"reviews":[],"number":1})"), "");
}

TEST(ReadAllErrors, EndsWhereTheTextIsMalformed) {
  EXPECT_EQ(errors_of<Page>(R"({"number":"x","reviews":[}])"),
            "number: expected an integer, found a string (at byte 10)\n"
            "reviews[0]: expected an object, found '}' (at byte 25)\n");
  EXPECT_EQ(errors_of<Page>(R"({"number":"x)"),
            "number: expected an integer, found a string (at byte 10)\n");
}

TEST(ReadAllErrors, KeepsALimitedNumber) {
  const std::string text = R"({"reviews":[1,2,3,4,5],"number":1})";
  EXPECT_EQ(errors_of<Page>(text, {.errors_max = 2}),
            "reviews[0]: expected an object, found a number (at byte 12)\n"
            "reviews[1]: expected an object, found a number (at byte 14)\n");
  const auto first = json::read<Page>(text);
  ASSERT_FALSE(first.has_value());
  EXPECT_EQ(first.error().path, "reviews[0]");
  EXPECT_NE(errors_of<Page>(text, {.element_bytes_max = 1}).find("too many elements"),
            std::string::npos);
}

TEST(IsWellFormed, LooksAtNoType) {
  EXPECT_TRUE(json::is_well_formed(R"( {"a":[1,{"b":null}]} )"));
  for (const char* const text : {"", "{", "[1,]", "{}x", "{\"a\"}", "nul"}) {
    EXPECT_FALSE(json::is_well_formed(text)) << text;
  }
}

}  // namespace
}  // namespace weir::checked_test
