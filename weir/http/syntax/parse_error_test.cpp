// Tests of parse errors.
#include "weir/http/syntax/parse_error.hpp"

#include <gtest/gtest.h>

#include <set>

namespace weir::http {
namespace {

TEST(ParseError, NamesAreDistinctAndStatusesAreClientOrServerErrors) {
  std::set<std::string_view> names;
  for (std::size_t index = 1; index < parse_error_count; ++index) {
    const auto error = static_cast<ParseError>(index);
    EXPECT_TRUE(names.insert(name_of(error)).second) << name_of(error);
    EXPECT_GE(code_of(to_status(error)), 400) << name_of(error);
    EXPECT_LT(code_of(to_status(error)), 600) << name_of(error);
  }
}

TEST(ParseError, MapsErrorsToTheStatusesOfTheRfcs) {
  EXPECT_EQ(code_of(to_status(ParseError::request_line_too_long)), 414);
  EXPECT_EQ(code_of(to_status(ParseError::headers_too_long)), 431);
  EXPECT_EQ(code_of(to_status(ParseError::too_many_headers)), 431);
  EXPECT_EQ(code_of(to_status(ParseError::unknown_transfer_coding)), 501);
  EXPECT_EQ(code_of(to_status(ParseError::unsupported_version)), 505);
  EXPECT_EQ(code_of(to_status(ParseError::unknown_expectation)), 417);
  EXPECT_EQ(code_of(to_status(ParseError::body_too_large)), 413);
  EXPECT_EQ(code_of(to_status(ParseError::head_timed_out)), 408);
  EXPECT_EQ(code_of(to_status(ParseError::bad_host)), 400);
}

TEST(ParseError, ConvertsToAnErrorCodeAndKeepsItsStatus) {
  const std::error_code error = ParseError::trailers_too_long;
  EXPECT_STREQ(error.category().name(), "weir.http");
  EXPECT_EQ(error.message(), "trailers_too_long");
  EXPECT_EQ(to_status(error), Status::request_header_fields_too_large);
  EXPECT_EQ(parse_error_category().message(-1), "unknown error");
  EXPECT_EQ(parse_error_category().message(10'000), "unknown error");
}

}  // namespace
}  // namespace weir::http
