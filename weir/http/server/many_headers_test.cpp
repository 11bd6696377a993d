// Tests of heads with more than 100 headers, of requests and of responses, over both versions of
// HTTP.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>

#include "weir/http.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"

namespace weir::http::many_headers_test {
namespace {

constexpr std::uint32_t headers_max = 300;

std::string header_name(std::uint32_t index) {
  return "x-" + std::to_string(index);
}

/// Answers with the headers of the request that begin with "x-", each with its own value.
Response echo(Request& request) {
  Response response = text("ok");
  for (std::size_t index = 0; index < request.head().header_count(); ++index) {
    const HeaderField field = request.head().header_at(index);
    if (field.name.starts_with("x-")) response.add_header(field.name, field.value);
  }
  return response;
}

class ManyHeaders : public HttpTest, public testing::WithParamInterface<PlainHttp2> {
 protected:
  /// Sends a request with `count` headers to a server and by a client with these limits. Returns
  /// the status, and in `headers` the headers of the response that came back.
  Result<Status> ask(std::uint32_t count, std::uint32_t of_client, std::uint32_t& headers) {
    plain_http2_ = GetParam();
    routes_.get("/", echo);
    Limits limits;
    limits.head.headers_max = headers_max;
    serve(limits);
    Result<Status> status = fail(Errc::closed);
    const auto body = [&](Scope& scope) -> Task<> {
      ClientOptions options;
      options.plain_http2 = GetParam() == PlainHttp2::only;
      options.limits.response.head.headers_max = of_client;
      Client client(std::move(options));
      ClientRequest request(Method::get, "http://127.0.0.1/");
      for (std::uint32_t index = 0; index < count; ++index) {
        request.add_header(header_name(index), std::to_string(index));
      }
      const auto response = co_await client.send(std::move(request));
      if (response) {
        status = response->status();
        for (; response->header(header_name(headers)) == std::to_string(headers);) ++headers;
      } else {
        status = fail(response.error());
      }
      scope.cancel();
    };
    static_cast<void>(weir::run(*loop_, with_scope(OnFailure::isolate, body)));
    return status;
  }
};

TEST_P(ManyHeaders, PassIfTheLimitsAreRaised) {
  std::uint32_t headers = 0;
  EXPECT_EQ(ask(280, headers_max, headers), Status::ok);
  EXPECT_EQ(headers, 280U);
}

TEST_P(ManyHeaders, AreRejectedAboveTheLimitOfTheServer) {
  std::uint32_t headers = 0;
  EXPECT_EQ(ask(headers_max + 1, headers_max, headers), Status::request_header_fields_too_large);
}

TEST_P(ManyHeaders, FailAboveTheLimitOfTheClient) {
  std::uint32_t headers = 0;
  const Result<Status> status = ask(200, HeadLimits().headers_max, headers);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error(), ClientError::bad_response);
}

INSTANTIATE_TEST_SUITE_P(Versions, ManyHeaders, testing::Values(PlainHttp2::off, PlainHttp2::only));

}  // namespace
}  // namespace weir::http::many_headers_test
