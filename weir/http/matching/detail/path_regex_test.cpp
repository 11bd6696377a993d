// Tests of PathRegex.
#include "weir/http/matching/detail/path_regex.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace weir::http::path_regex_test {
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

TEST(PathRegex, GivesAsManyGroupsAsAPatternMayHave) {
  std::string text;
  std::string path;
  for (std::size_t group = 1; group < path_params_max; ++group) {
    text += "([a-z])";
    path += static_cast<char>('a' + group);
  }
  const PathRegex regex = PathRegex::compile(text, path_params_max - 1).value();
  EXPECT_EQ(regex.groups(), path_params_max - 1);
  ASSERT_TRUE(regex.matches(path));
  PathParams params;
  regex.add_groups(path, params);
  ASSERT_EQ(params.size(), path_params_max - 1);
  for (std::size_t index = 0; index < params.size(); ++index) {
    EXPECT_EQ(params[index], path.substr(index, 1));
    EXPECT_EQ(params[index].data(), path.data() + index);
  }
}

TEST(PathRegex, GroupsAreThoseOfTheWholeText) {
  const PathRegex regex = PathRegex::compile("x(a|ab)(c|bcd)?", 2).value();
  PathParams params;
  ASSERT_TRUE(regex.matches("xabcd"));
  regex.add_groups("xabcd", params);
  EXPECT_EQ(params[0], "a");
  EXPECT_EQ(params[1], "bcd");
  const PathRegex plain = PathRegex::compile("a+", 0).value();
  EXPECT_EQ(plain.groups(), 0U);
  plain.add_groups("aa", params);
  EXPECT_EQ(params.size(), 2U);
}

TEST(PathRegex, RejectedExpressionsWriteNoLog) {
  testing::internal::CaptureStderr();
  EXPECT_FALSE(PathRegex::compile("(", 0));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace weir::http::path_regex_test
