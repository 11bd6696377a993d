// Tests of Basic authentication.
#include "weir/web/auth/basic_auth.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "weir/base/text/detail/base64.hpp"
#include "weir/web/test/ask.hpp"

namespace weir::http::basic_auth_test {
namespace {

std::string basic(std::string_view credentials) {
  std::string text(base64_size(credentials.size()), '\0');
  write_base64(to_bytes(credentials), text.data());
  return "Basic " + text;
}

Router routes(BasicAuthOptions options) {
  Router router;
  auto group = router.group<AuthenticatedUser>("/admin", basic_auth(std::move(options)));
  group.get("/name", [](const AuthenticatedUser& user) { return text(user.name); });
  router.get("/open", [] { return text("open"); });
  router.get("/parsed",
             [](Basic credentials) { return text(credentials.name + "|" + credentials.password); });
  return router;
}
TestResponse with(TestClient& client, std::string_view authorization,
                  std::string_view path = "/admin/name") {
  return ask(client, Method::get, path, {{"Authorization", authorization}});
}

TEST(BasicAuth, LetsKnownUsersIn) {
  TestClient client(routes({.users = {{"ann", "secret"}, {"bob", "p:w"}, {"", ""}}}));
  EXPECT_EQ(with(client, basic("ann:secret")).body(), "ann");
  EXPECT_EQ(with(client, basic("bob:p:w")).body(), "bob");
  EXPECT_EQ(with(client, "bASIC   " + basic("ann:secret").substr(6)).body(), "ann");
  EXPECT_EQ(with(client, basic(":")).status(), 200);
  EXPECT_EQ(client.get("/open").body(), "open");
}

TEST(BasicAuth, RefusesAllOthers) {
  TestClient client(routes({.realm = "my notes", .users = {{"ann", "secret"}}}));
  const auto refused = client.get("/admin/name");
  EXPECT_EQ(refused.status(), 401);
  EXPECT_EQ(header_of(refused, "WWW-Authenticate"), "Basic realm=\"my notes\", charset=\"UTF-8\"");
  for (const std::string& text :
       {basic("ann:Secret"), basic("ann:secre"), basic("ann:secrets"), basic("Ann:secret"),
        basic("ann"), basic(":secret"), basic("ann:secret\n"), basic("ann:sec\x7fret"),
        std::string("Basic"), std::string("Basic "), std::string("Basic !!!"),
        basic("ann:secret").substr(0, 12), basic("ann:secret") + " ,", std::string("Bearer abc"),
        basic(std::string(5000, 'a') + ":b"), std::string("Basicx ") + basic("ann:secret")}) {
    EXPECT_EQ(with(client, text).status(), 401) << text;
  }
  EXPECT_EQ(ask(client, Method::get, "/admin/name",
                {{"Authorization", basic("ann:secret")}, {"Authorization", basic("a:b")}})
                .status(),
            400);
}

TEST(BasicAuth, AsksAFunctionForOtherUsers) {
  const auto verify = [](std::string_view name, std::string_view password) {
    return name == "eve" && password == "apple";
  };
  TestClient client(routes({.users = {{"ann", "secret"}}, .verify = verify}));
  EXPECT_EQ(with(client, basic("eve:apple")).body(), "eve");
  EXPECT_EQ(with(client, basic("ann:secret")).body(), "ann");
  EXPECT_EQ(with(client, basic("ann:apple")).status(), 401);
}

// The name beside a token proves nothing: the holder would otherwise be each user of the list.
TEST(BasicAuth, ATokenTellsItsUserWhateverTheClientSays) {
  TestClient client(
      routes({.users = {{"ann", "secret"}}, .tokens = {{"t-1", "robot"}, {"t:2", ""}}}));
  for (const auto* name : {"eve", "ann", "root", "robot", ""}) {
    EXPECT_EQ(with(client, basic(std::string(name) + ":t-1")).body(), "robot") << name;
    const auto nameless = with(client, basic(std::string(name) + ":t:2"));
    EXPECT_EQ(nameless.status(), 200) << name;
    EXPECT_EQ(nameless.body(), "") << name;
  }
  EXPECT_EQ(with(client, basic("ann:secret")).body(), "ann");
  for (const auto* other : {"ann:t-", "ann:t-12", "ann:", "t-1:", "ann:ann:secret", "x:secret"}) {
    EXPECT_EQ(with(client, basic(other)).status(), 401) << other;
  }
}

TEST(BasicAuth, AUserWhosePasswordIsAlsoATokenKeepsTheName) {
  TestClient client(routes({.users = {{"ann", "t-1"}}, .tokens = {{"t-1", "robot"}}}));
  EXPECT_EQ(with(client, basic("ann:t-1")).body(), "ann");
  EXPECT_EQ(with(client, basic("bob:t-1")).body(), "robot");
}

TEST(BasicAuth, CredentialsCanBeAnArgument) {
  TestClient client(routes({.users = {{"ann", "secret"}}}));
  EXPECT_EQ(with(client, basic("x:y:z"), "/parsed").body(), "x|y:z");
  EXPECT_EQ(client.get("/parsed").status(), 401);
  EXPECT_EQ(header_of(client.get("/parsed"), "WWW-Authenticate"),
            "Basic realm=\"service\", charset=\"UTF-8\"");
}

TEST(BasicAuth, RejectsInvalidOptions) {
  EXPECT_THROW(basic_auth({}), std::invalid_argument);
  EXPECT_THROW(basic_auth({.tokens = {{"", "robot"}}}), std::invalid_argument);
  EXPECT_THROW(basic_auth({.users = {{"a:b", "c"}}}), std::invalid_argument);
  for (const char* realm : {"a\"b", "a\\b", "a\r\nb", "\xc3\xa4"}) {
    EXPECT_THROW(basic_auth({.realm = realm, .users = {{"a", "b"}}}), std::invalid_argument);
  }
}

}  // namespace
}  // namespace weir::http::basic_auth_test
