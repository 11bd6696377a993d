// Tests of PathRegex.
#include "weir/http/matching/detail/path_regex.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::http {
namespace {

TEST(PathRegex, MatchesTheWholeText) {
  const PathRegex digits = PathRegex::compile("[0-9]+", 0).value();
  EXPECT_TRUE(digits.matches("123"));
  for (const char* text : {"", "a123", "123a", "12 3", "123\n"}) {
    EXPECT_FALSE(digits.matches(text)) << text;
  }
  const PathRegex either = PathRegex::compile("a|ab", 0).value();
  EXPECT_TRUE(either.matches("ab"));
}

TEST(PathRegex, ReturnsItsGroupsInOrder) {
  const PathRegex date = PathRegex::compile("(\\d+)-((\\d+)|x)(y)?", 4).value();
  PathParams params;
  ASSERT_TRUE(date.matches("2024-11"));
  date.add_groups("2024-11", params);
  ASSERT_EQ(params.size(), 4U);
  EXPECT_EQ(params[0], "2024");
  EXPECT_EQ(params[1], "11");
  EXPECT_EQ(params[2], "11");
  EXPECT_EQ(params[3], "");
}

TEST(PathRegex, RejectsExpressionsThatRe2Rejects) {
  for (const char* text : {"(", "[a", "a**", "(?=a)", "\\1", "a{2000}"}) {
    EXPECT_EQ(PathRegex::compile(text, 0).error(), PatternError::bad_regex) << text;
  }
}

TEST(PathRegex, RejectsAnotherNumberOfGroups) {
  EXPECT_EQ(PathRegex::compile("(a)", 0).error(), PatternError::ambiguous_groups);
  EXPECT_EQ(PathRegex::compile("a", 1).error(), PatternError::ambiguous_groups);
}

TEST(PathRegex, AcceptsBytesThatAreNotUtf8) {
  const PathRegex any = PathRegex::compile(".*", 0).value();
  EXPECT_FALSE(any.matches("\xff\xfe"));
  const PathRegex bytes = PathRegex::compile("\\C*", 0).value();
  EXPECT_TRUE(bytes.matches("\xff\xfe"));
}

TEST(PathRegex, NeverBacktracks) {
  // Backtracking would take at least 2^30 steps, and the test would time out.
  const PathRegex evil = PathRegex::compile("(a*)*(a*)*b", 2).value();
  const std::string text(8000, 'a');
  EXPECT_FALSE(evil.matches(text));
  PathParams params;
  EXPECT_TRUE(evil.matches(text + "b"));
  evil.add_groups(text + "b", params);
  EXPECT_EQ(params.size(), 2U);
}

}  // namespace
}  // namespace weir::http
