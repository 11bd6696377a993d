// Tests of authentication by JSON Web Tokens.
#include "weir/web/auth/jwt_auth.hpp"

#include <gtest/gtest.h>

#include <string>

#include "weir/web/test/ask.hpp"
#include "weir/web/test/signed_tokens.hpp"

namespace weir::http::jwt_auth_test {
namespace {

Router routes(const JwtOptions& options) {
  Router router;
  auto group = router.group<JwtClaims>("/api", jwt_auth(options));
  group.get("/issuer", [](const JwtClaims& claims) { return text(claims.issuer); });
  return router;
}

TEST(JwtAuth, GivesTheClaimsToHandlers) {
  // The token has expired long ago, and the clock of a simulation is later.
  TestClient client(routes({.key_set = std::string(signed_tokens::key_set),
                            .audiences = {"notes"},
                            .leeway = 24h * 36500}));
  const std::string bearer = "Bearer " + std::string(signed_tokens::es256);
  EXPECT_EQ(ask(client, Method::get, "/api/issuer", {{"Authorization", bearer}}).body(), "joe");
  EXPECT_EQ(ask(client, Method::head, "/api/issuer", {{"Authorization", bearer}}).status(), 200);
}

TEST(JwtAuth, RefusesAllOthers) {
  TestClient client(routes({.key_set = std::string(signed_tokens::key_set)}));
  EXPECT_EQ(header_of(client.get("/api/issuer"), "WWW-Authenticate"), "Bearer");
  for (const std::string& bearer : {"Bearer " + std::string(signed_tokens::es256),  // expired
                                    std::string("Bearer a.b.c"), std::string("Bearer")}) {
    const auto refused = ask(client, Method::get, "/api/issuer", {{"Authorization", bearer}});
    EXPECT_EQ(refused.status(), 401);
    EXPECT_EQ(header_of(refused, "WWW-Authenticate"), "Bearer error=\"invalid_token\"");
  }
}

}  // namespace
}  // namespace weir::http::jwt_auth_test
