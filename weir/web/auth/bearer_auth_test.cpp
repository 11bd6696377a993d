// Tests of Bearer authentication.
#include "weir/web/auth/bearer_auth.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "weir/web/test/ask.hpp"

namespace weir::http::bearer_auth_test {
namespace {

Router routes(BearerAuthOptions options) {
  Router router;
  router.group<AuthenticatedUser>("", bearer_auth(std::move(options)))
      .get("/name", [](const AuthenticatedUser& user) { return text(user.name); });
  return router;
}
TestResponse with(TestClient& client, std::string_view authorization) {
  return ask(client, Method::get, "/name", {{"Authorization", authorization}});
}

TEST(BearerAuth, LetsKnownTokensIn) {
  TestClient client(routes({.users = {{"t-1", "ann"}, {"t-2", "bob"}}}));
  EXPECT_EQ(with(client, "Bearer t-1").body(), "ann");
  EXPECT_EQ(with(client, "bearer t-2").body(), "bob");
}

TEST(BearerAuth, RefusesAllOthers) {
  TestClient client(routes({.users = {{"t-1", "ann"}}}));
  EXPECT_EQ(header_of(client.get("/name"), "WWW-Authenticate"), "Bearer");
  for (const char* text : {"Bearer t-2", "Bearer t-", "Bearer t-11", "Bearer t-1 x", "Bearer"}) {
    const auto refused = with(client, text);
    EXPECT_EQ(refused.status(), 401) << text;
    EXPECT_EQ(header_of(refused, "WWW-Authenticate"), "Bearer error=\"invalid_token\"") << text;
  }
  EXPECT_EQ(with(client, "Basic t-1").status(), 401);
}

TEST(BearerAuth, AsksAFunctionForOtherTokens) {
  const auto verify = [](std::string_view token) -> std::optional<std::string> {
    if (!token.starts_with("user-")) return std::nullopt;
    return std::string(token.substr(5));
  };
  TestClient client(routes({.users = {{"user-x", "ann"}}, .verify = verify}));
  EXPECT_EQ(with(client, "Bearer user-eve").body(), "eve");
  EXPECT_EQ(with(client, "Bearer user-x").body(), "ann");
  EXPECT_EQ(with(client, "Bearer eve").status(), 401);
}

TEST(BearerAuth, RejectsInvalidOptions) {
  EXPECT_THROW(bearer_auth({}), std::invalid_argument);
  EXPECT_THROW(bearer_auth({.users = {{"", "ann"}}}), std::invalid_argument);
}

}  // namespace
}  // namespace weir::http::bearer_auth_test
