#include "tests/messages/expectations.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "weir/http/detail/h2/frame.hpp"

namespace weir::tests::messages {
namespace {

void expect_fields(const Fields& fields, const ExpectedFields& expected, const std::string& what) {
  for (const auto& [name, value] : expected.present) {
    EXPECT_EQ(find(fields, name).value_or("(none)"), value) << what << ": " << name;
  }
  for (const std::string& name : expected.absent) {
    EXPECT_EQ(find(fields, name).value_or("(none)"), "(none)") << what << ": " << name;
  }
}

}  // namespace

void expect_response(const ReceivedResponse& response, const ExpectedResponse& expected) {
  EXPECT_EQ(response.status, expected.status) << response.body;
  EXPECT_EQ(name_of(response.end), name_of(expected.end));
  if (response.reset) {
    EXPECT_EQ(*response.reset, static_cast<std::uint32_t>(http::H2Error::internal_error));
  }
  if (expected.body) {
    EXPECT_EQ(response.body, *expected.body);
  }
  expect_fields(response.fields, expected.fields, "the response");
  expect_fields(response.trailers, expected.trailers, "the trailers of the response");
}

void expect_request(const ReceivedRequest& request, const ExpectedRequest& expected) {
  EXPECT_EQ(name_of(request.end), name_of(expected.end)) << "the received request";
  if (expected.body) {
    EXPECT_EQ(request.body, *expected.body);
  }
  if (expected.kind) {
    EXPECT_EQ(static_cast<int>(request.kind), static_cast<int>(*expected.kind)) << "the body";
  }
  expect_fields(request.fields, expected.fields, "the received request");
  expect_fields(request.trailers, expected.trailers, "the trailers of the received request");
}

}  // namespace weir::tests::messages
