// Tests of status codes.
#include "weir/http/syntax/status.hpp"

#include <gtest/gtest.h>

#include "weir/base/result.hpp"
#include "weir/http/syntax/parse_error.hpp"

namespace weir::http {
namespace {

TEST(Status, HasReasonPhrases) {
  EXPECT_EQ(reason_of(Status::ok), "OK");
  EXPECT_EQ(reason_of(Status::not_found), "Not Found");
  EXPECT_EQ(reason_of(Status::unprocessable_content), "Unprocessable Content");
  EXPECT_EQ(reason_of(Status::locked), "Locked");
  EXPECT_EQ(reason_of(Status::version_not_supported), "HTTP Version Not Supported");
  EXPECT_EQ(reason_of(Status{299}), "");
  EXPECT_EQ(reason_of(Status{499}), "");
  EXPECT_EQ(reason_of(Status{0}), "");
}

TEST(Status, OnlySomeStatusesMayHaveABody) {
  for (int code : {100, 101, 103, 199, 204, 304}) {
    EXPECT_FALSE(may_have_body(static_cast<Status>(code))) << code;
  }
  for (int code : {200, 205, 206, 303, 400, 500}) {
    EXPECT_TRUE(may_have_body(static_cast<Status>(code))) << code;
  }
}

TEST(Status, AcceptsOnlyValidNumbers) {
  EXPECT_FALSE(is_valid(Status{99}));
  EXPECT_TRUE(is_valid(Status{100}));
  EXPECT_TRUE(is_valid(Status{599}));
  EXPECT_FALSE(is_valid(Status{600}));
}

TEST(Status, MapsErrorsToStatuses) {
  EXPECT_EQ(to_status(Errc::timed_out), Status::request_timeout);
  EXPECT_EQ(to_status(Errc::limit_reached), Status::content_too_large);
  EXPECT_EQ(to_status(Errc::bad_input), Status::bad_request);
  EXPECT_EQ(to_status(Errc::end_of_stream), Status::bad_request);
  EXPECT_EQ(to_status(Errc::closed), Status::service_unavailable);
  EXPECT_EQ(to_status(Errc::not_found), Status::not_found);
  EXPECT_EQ(to_status(make_error_code(ParseError::unknown_transfer_coding)),
            Status::not_implemented);
  EXPECT_EQ(to_status(make_error_code(ParseError::none)), Status::internal_error);
  EXPECT_EQ(to_status(system_error(EACCES)), Status::internal_error);
  EXPECT_EQ(to_status(system_error(ECONNRESET)), Status::bad_request);
}

}  // namespace
}  // namespace weir::http
