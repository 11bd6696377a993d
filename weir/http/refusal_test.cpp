#include "weir/http/syntax/parse_error.hpp"

#include <gtest/gtest.h>

#include <set>

namespace weir::http {
namespace {

TEST(Refusal, NamesAreDistinctAndStatusesAreClientOrServerErrors) {
  std::set<std::string_view> names;
  for (std::size_t index = 1; index < refusal_count; ++index) {
    const auto refusal = static_cast<Refusal>(index);
    EXPECT_TRUE(names.insert(name_of(refusal)).second) << name_of(refusal);
    EXPECT_GE(code_of(status_of(refusal)), 400) << name_of(refusal);
    EXPECT_LT(code_of(status_of(refusal)), 600) << name_of(refusal);
  }
}

TEST(Refusal, TheStatusesThatTheRulesName) {
  EXPECT_EQ(code_of(status_of(Refusal::request_line_too_long)), 414);
  EXPECT_EQ(code_of(status_of(Refusal::fields_too_long)), 431);
  EXPECT_EQ(code_of(status_of(Refusal::too_many_fields)), 431);
  EXPECT_EQ(code_of(status_of(Refusal::unknown_transfer_coding)), 501);
  EXPECT_EQ(code_of(status_of(Refusal::unsupported_version)), 505);
  EXPECT_EQ(code_of(status_of(Refusal::unknown_expectation)), 417);
  EXPECT_EQ(code_of(status_of(Refusal::body_too_large)), 413);
  EXPECT_EQ(code_of(status_of(Refusal::head_timed_out)), 408);
  EXPECT_EQ(code_of(status_of(Refusal::bad_host)), 400);
}

TEST(Refusal, TravelsAsAnErrorCodeAndKeepsItsStatus) {
  const std::error_code error = Refusal::trailers_too_long;
  EXPECT_STREQ(error.category().name(), "weir.http");
  EXPECT_EQ(error.message(), "trailers_too_long");
  EXPECT_EQ(status_for(error), Status::fields_too_large);
  EXPECT_EQ(refusal_category().message(-1), "unknown refusal");
  EXPECT_EQ(refusal_category().message(10'000), "unknown refusal");
}

}  // namespace
}  // namespace weir::http
