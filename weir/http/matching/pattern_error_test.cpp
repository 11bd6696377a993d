// Tests of the messages of pattern errors.
#include "weir/http/matching/pattern_error.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <system_error>

namespace weir::http::pattern_error_test {
namespace {

struct Row {
  PatternError error;
  std::string_view message;
};

constexpr Row rows[] = {
    {PatternError::none, "nothing is wrong"},
    {PatternError::no_slash, "the pattern does not start with '/'"},
    {PatternError::bad_character,
     "the pattern has a character that is not allowed in a path (percent-encode it)"},
    {PatternError::bad_escape, "the pattern has a bad percent escape"},
    {PatternError::dot_segment, "the pattern has a dot segment, which matches no request"},
    {PatternError::brace_in_literal,
     "the pattern has a brace inside a segment, but a path parameter is a whole segment"},
    {PatternError::unclosed_brace, "the pattern has a brace that is not closed"},
    {PatternError::bad_param_name, "the pattern has a path parameter without a valid name"},
    {PatternError::empty_regex, "the pattern has an empty regular expression"},
    {PatternError::bad_regex, "the pattern has a regular expression that RE2 rejects"},
    {PatternError::ambiguous_groups,
     "the pattern has a regular expression whose groups RE2 counts differently"},
    {PatternError::wildcard_not_last, "the pattern has a segment after its wildcard"},
    {PatternError::too_many_segments, "the pattern has too many segments"},
    {PatternError::too_many_params, "the pattern has too many path parameters"},
    {PatternError::wrong_param_count,
     "the handler does not take as many path parameters as the pattern has"},
    {PatternError::wrong_wildcard_type,
     "the handler must take the wildcard as Wildcard or a string, and no other parameter as "
     "Wildcard"},
};

TEST(PatternError, HasAMessageInWords) {
  for (const Row& each : rows) {
    const std::error_code code = each.error;
    EXPECT_EQ(code.message(), each.message);
    EXPECT_STREQ(code.category().name(), "weir.http.pattern");
  }
}

TEST(PatternError, OtherNumbersAreUnknown) {
  const int count = static_cast<int>(PatternError::wrong_wildcard_type) + 1;
  for (const int number : {-1, count, count + 1, 1000}) {
    EXPECT_EQ(pattern_category().message(number), "unknown error") << number;
  }
}

}  // namespace
}  // namespace weir::http::pattern_error_test
