// Tests of the numbers in requests.
#include "tools/weir/number_placeholder.hpp"

#include <gtest/gtest.h>

#include <set>

namespace weir::bench::number_placeholder_test {
namespace {

TEST(NumberPlaceholder, FindsTheRun) {
  const auto found = NumberPlaceholder::find("POST / HTTP/1.1\r\n\r\n{\"n\": ####}");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->offset, 25U);
  EXPECT_EQ(found->digits, 4U);
  EXPECT_TRUE(*found);
  EXPECT_FALSE(NumberPlaceholder());
}

TEST(NumberPlaceholder, NeedsExactlyOneRun) {
  for (const char* wrong : {"", "none", "## and ##", "###################"}) {
    EXPECT_FALSE(NumberPlaceholder::find(wrong)) << wrong;
  }
  EXPECT_TRUE(NumberPlaceholder::find("##################"));
}

TEST(NumberPlaceholder, KeepsTheNumberOfDigits) {
  for (const unsigned digits : {1U, 2U, 5U, 18U}) {
    const NumberPlaceholder number_placeholder{.offset = 0, .digits = digits};
    for (unsigned connection = 0; connection < 1000; ++connection) {
      EXPECT_EQ(number_placeholder.text(number_placeholder.first(connection)).size(), digits);
    }
  }
  const NumberPlaceholder two{.offset = 0, .digits = 2};
  EXPECT_EQ(two.next(41), 42U);
  EXPECT_EQ(two.next(99), 10U);
}

TEST(NumberPlaceholder, ConnectionsBeginFarApart) {
  const NumberPlaceholder number_placeholder{.offset = 0, .digits = 9};
  std::set<std::uint64_t> firsts;
  for (unsigned connection = 0; connection < 1000; ++connection) {
    firsts.insert(number_placeholder.first(connection) / 1000);
  }
  EXPECT_GT(firsts.size(), 990U);
}

TEST(NumberPlaceholder, NumbersCountUpAndStartOver) {
  const NumberPlaceholder one{.offset = 0, .digits = 1};
  EXPECT_EQ(one.next(8), 9U);
  EXPECT_EQ(one.next(9), 1U);
  const NumberPlaceholder most{.offset = 0, .digits = NumberPlaceholder::digits_max};
  EXPECT_EQ(most.next(999'999'999'999'999'998), 999'999'999'999'999'999U);
  EXPECT_EQ(most.next(999'999'999'999'999'999), 100'000'000'000'000'000U);
  EXPECT_EQ(NumberPlaceholder().digits, 0U);
}

TEST(NumberPlaceholder, FindsARunAtTheEndOrAtTheBegin) {
  EXPECT_EQ(NumberPlaceholder::find("ab##")->offset, 2U);
  EXPECT_EQ(NumberPlaceholder::find("ab##")->digits, 2U);
  EXPECT_EQ(NumberPlaceholder::find("#ab")->offset, 0U);
  EXPECT_EQ(NumberPlaceholder::find("#ab")->digits, 1U);
  EXPECT_EQ(NumberPlaceholder::find("#a#").error(), Errc::bad_input);
}

}  // namespace
}  // namespace weir::bench::number_placeholder_test
