// Tests of client errors.
#include "weir/http/syntax/client_error.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace weir::http::client_error_test {
namespace {

struct Row {
  ClientError error;
  int status;
  std::string_view name;
};

/// 503 for the queue and for what no server has processed, 504 for another timeout, and 502
/// otherwise (RFC 9110 §15.6).
constexpr Row rows[] = {
    {ClientError::connect_failed, 502, "connect_failed"},
    {ClientError::connect_timed_out, 504, "connect_timed_out"},
    {ClientError::queue_full, 503, "queue_full"},
    {ClientError::queue_timed_out, 503, "queue_timed_out"},
    {ClientError::head_timed_out, 504, "head_timed_out"},
    {ClientError::body_timed_out, 504, "body_timed_out"},
    {ClientError::timed_out, 504, "timed_out"},
    {ClientError::connection_lost, 502, "connection_lost"},
    {ClientError::bad_response, 502, "bad_response"},
    {ClientError::body_too_large, 502, "body_too_large"},
    {ClientError::bad_json, 502, "bad_json"},
    {ClientError::bad_redirect, 502, "bad_redirect"},
    {ClientError::too_many_redirects, 502, "too_many_redirects"},
    {ClientError::proxy_refused, 502, "proxy_refused"},
    {ClientError::not_processed, 503, "not_processed"},
};

TEST(ClientError, HasTheStatusAndTheNameOfItsCause) {
  for (const Row& each : rows) {
    const std::error_code code = each.error;
    EXPECT_STREQ(code.category().name(), "weir.http.client");
    EXPECT_EQ(code.message(), each.name);
    EXPECT_EQ(name_of(each.error), each.name);
    EXPECT_EQ(code_of(to_status(each.error)), each.status) << each.name;
    EXPECT_EQ(code_of(to_status(code)), each.status) << each.name;
  }
}

TEST(ClientError, NamesTheStatusOfAnotherServer) {
  EXPECT_EQ(error_of(Status::not_found).message(), "the server answered 404 Not Found");
  EXPECT_EQ(error_of(Status{599}).message(), "the server answered 599");
  EXPECT_EQ(error_of(Status::bad_request).message(), "the server answered 400 Bad Request");
  for (const int status : {400, 404, 500, 504, 513, 599}) {
    const std::error_code error = error_of(Status(status));
    EXPECT_EQ(error.category(), client_error_category());
    EXPECT_EQ(error.value(), status);
    EXPECT_EQ(to_status(error), Status::bad_gateway) << status;
  }
}

TEST(ClientError, UnknownNumbersHaveNoName) {
  EXPECT_EQ(client_error_category().message(0), "unknown error");
  EXPECT_EQ(client_error_category().message(100), "unknown error");
  EXPECT_EQ(name_of(static_cast<ClientError>(100)), "unknown");
  EXPECT_EQ(to_status(static_cast<ClientError>(100)), Status::bad_gateway);
}

}  // namespace
}  // namespace weir::http::client_error_test
