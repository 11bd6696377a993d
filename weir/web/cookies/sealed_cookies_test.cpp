// Tests of signed and encrypted cookies of requests and responses.
#include "weir/web/cookies/sealed_cookies.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "weir/http/router/router.hpp"
#include "weir/http_testing/test_client.hpp"

namespace weir::http::sealed_cookies_test {
namespace {

using namespace std::chrono_literals;

/// Returns "name=value" of a Set-Cookie header.
std::string pair_of(const TestResponse& response) {
  const std::string_view text = response.header("Set-Cookie").value_or("");
  return std::string(text.substr(0, text.find(';')));
}

Router routes() {
  static const auto cookies =
      SealedCookies::encrypted_by(CookieKeys::from_secret(std::string(32, 'k')).value());
  Router router;
  router.get("/set/{seconds}", [](int seconds) -> Result<Response> {
    Response response(Status::no_content);
    SetCookie cookie{.name = "a", .value = "any; value"};
    if (seconds > 0) cookie.max_age = std::chrono::seconds(seconds);
    WEIR_TRY(cookies.set(response, cookie));
    return response;
  });
  router.get("/get", [](const Request& request) {
    return text(cookies.get(request, "a").value_or("none"));
  });
  return router;
}

TEST(SealedCookies, ReturnsWhatItSet) {
  TestClient client(routes());
  EXPECT_EQ(client.get("/get").body(), "none");
  client.set_header("Cookie", pair_of(client.get("/set/60")));
  EXPECT_EQ(client.get("/get").body(), "any; value");
}

TEST(SealedCookies, EndsWithTheCookie) {
  TestClient client(routes());
  const auto shorter = pair_of(client.get("/set/60"));
  const auto without = pair_of(client.get("/set/0"));
  client.advance(61s);
  client.set_header("Cookie", shorter);
  EXPECT_EQ(client.get("/get").body(), "none");
  client.set_header("Cookie", without);
  EXPECT_EQ(client.get("/get").body(), "any; value");
  client.advance(24h);
  EXPECT_EQ(client.get("/get").body(), "none");
}

TEST(SealedCookies, FindsTheValidOneAmongFour) {
  TestClient client(routes());
  const std::string valid = pair_of(client.get("/set/60"));
  client.set_header("Cookie", "a=1; a=2; a=3; " + valid);
  EXPECT_EQ(client.get("/get").body(), "any; value");
  client.set_header("Cookie", "a=1; a=2; a=3; a=4; " + valid);
  EXPECT_EQ(client.get("/get").body(), "none");
}

}  // namespace
}  // namespace weir::http::sealed_cookies_test
