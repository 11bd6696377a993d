#include "weir/http/message/authorization.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "weir/http/test/http_request.hpp"

namespace weir::http::authorization_test {
namespace {

/// Returns the token of a request with these header lines, or the status and the challenge.
std::string read(std::string_view lines) {
  TextRequest request("GET /", {}, lines);
  const auto bearer = Bearer::from_request(request.request());
  if (bearer) return "token " + std::string(bearer->token);
  return std::to_string(code_of(bearer.error().status())) + " " +
         std::string(bearer.error().headers().get("WWW-Authenticate").value_or("none"));
}
std::string read_value(std::string_view value) {
  return read("Authorization: " + std::string(value) + "\r\n");
}

TEST(Bearer, TakesTheTokenOfRfc6750) {
  EXPECT_EQ(read_value("Bearer mF_9.B5f-4.1JqM"), "token mF_9.B5f-4.1JqM");
  EXPECT_EQ(read_value("Bearer azAZ09-._~+/=="), "token azAZ09-._~+/==");
  EXPECT_EQ(read_value("bearer a"), "token a") << "a scheme has no case (RFC 9110 §11.1)";
  EXPECT_EQ(read_value("BEARER   a"), "token a");
  EXPECT_EQ(read("X: Bearer x\r\nauthorization: Bearer a\r\n"), "token a");
}

TEST(Bearer, DemandsATokenWithoutAnErrorIfThereIsNone) {
  for (const std::string_view lines :
       {"", "Authorization: Basic dXNlcjpzZWNyZXQ=\r\n", "Authorization:\r\n",
        "Authorization: Bearerer a\r\n", "Authorization: Bear a\r\n", "Authorization: a\r\n",
        "Authorization: Bearer\ta\r\n"}) {
    EXPECT_EQ(read(lines), "401 Bearer") << lines;
  }
}

TEST(Bearer, RejectsAMalformedToken) {
  for (const std::string_view value :
       {"Bearer", "Bearer =", "Bearer a b", "Bearer a,b", "Bearer a=b", "Bearer \"a\"",
        "Bearer a\tb", "Bearer \xc3\xa9", "Bearer a;", "Bearer a, Bearer b", "Bearer  \ta"}) {
    EXPECT_EQ(read_value(value), "401 Bearer error=\"invalid_token\"") << value;
  }
}

TEST(Bearer, RejectsSeveralHeaders) {
  EXPECT_EQ(read("Authorization: Bearer a\r\nauthorization: Bearer a\r\n"),
            "400 Bearer error=\"invalid_request\"");
  EXPECT_EQ(read("Authorization: Basic a\r\nAuthorization: Bearer a\r\n"),
            "400 Bearer error=\"invalid_request\"");
}

TEST(Unauthorized, HasTheChallenge) {
  const Response response = unauthorized("Basic realm=\"notes\"");
  EXPECT_EQ(response.status(), Status::unauthorized);
  EXPECT_EQ(response.headers().get("WWW-Authenticate"), "Basic realm=\"notes\"");
  EXPECT_TRUE(response.needs_error_page());
}

}  // namespace
}  // namespace weir::http::authorization_test
