#include "weir/http/matching/detail/path_regex.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::http {
namespace {

TEST(Expression, MatchesTheWholeText) {
  const Expression digits = Expression::compile("[0-9]+", 0).value();
  EXPECT_TRUE(digits.matches("123"));
  for (const char* text : {"", "a123", "123a", "12 3", "123\n"}) {
    EXPECT_FALSE(digits.matches(text)) << text;
  }
  const Expression either = Expression::compile("a|ab", 0).value();
  EXPECT_TRUE(either.matches("ab"));
}

TEST(Expression, GivesItsGroupsInOrder) {
  const Expression date = Expression::compile("(\\d+)-((\\d+)|x)(y)?", 4).value();
  Captures captures;
  ASSERT_TRUE(date.matches("2024-11"));
  date.add_groups("2024-11", captures);
  ASSERT_EQ(captures.size(), 4U);
  EXPECT_EQ(captures[0], "2024");
  EXPECT_EQ(captures[1], "11");
  EXPECT_EQ(captures[2], "11");
  EXPECT_EQ(captures[3], "");
}

TEST(Expression, RefusesWhatRe2Refuses) {
  for (const char* text : {"(", "[a", "a**", "(?=a)", "\\1", "a{2000}"}) {
    EXPECT_EQ(Expression::compile(text, 0).error(), PatternFault::bad_expression) << text;
  }
}

TEST(Expression, RefusesAnotherNumberOfGroups) {
  EXPECT_EQ(Expression::compile("(a)", 0).error(), PatternFault::unclear_groups);
  EXPECT_EQ(Expression::compile("a", 1).error(), PatternFault::unclear_groups);
}

TEST(Expression, TakesBytesThatAreNotUtf8) {
  const Expression any = Expression::compile(".*", 0).value();
  EXPECT_FALSE(any.matches("\xff\xfe"));
  const Expression bytes = Expression::compile("\\C*", 0).value();
  EXPECT_TRUE(bytes.matches("\xff\xfe"));
}

TEST(Expression, NeverBacktracks) {
  // Backtracking would take 2^30 steps and more, and time the test out.
  const Expression evil = Expression::compile("(a*)*(a*)*b", 2).value();
  const std::string text(8000, 'a');
  EXPECT_FALSE(evil.matches(text));
  Captures captures;
  EXPECT_TRUE(evil.matches(text + "b"));
  evil.add_groups(text + "b", captures);
  EXPECT_EQ(captures.size(), 2U);
}

}  // namespace
}  // namespace weir::http
