// A service of a project with a Weir that lacks each optional part; tests/embed_test.py builds it.
#include <weir/app.hpp>
#include <weir/compression/coding.hpp>
#include <weir/http.hpp>
#include <weir/log.hpp>
#include <weir/tls.hpp>
#include <weir/web.hpp>

#include <stdexcept>

using namespace weir;

const std::string secret(32, 's');

Task<Result<>> echo(http::WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(const auto message, co_await socket.read());
    WEIR_CO_TRY(co_await socket.send(message));
  }
}

struct Target {
  std::string url;
};

/// Asks another server, and returns what it answers or why there is no answer.
Task<http::Response> fetch(http::Client& client, http::Query<Target> target) {
  auto response = co_await client.get(target->url);
  if (!response) co_return http::text("failed: " + response.error().message() + "\n");
  const auto body = co_await response->body();
  co_return http::text(body ? *body : "failed: " + body.error().message() + "\n");
}

http::Response codings() {
  std::string text;
  for (const auto coding : {compression::Coding::gzip, compression::Coding::deflate,
                            compression::Coding::brotli, compression::Coding::zstd}) {
    if (is_available(coding)) text.append(name_of(coding)).append(" ");
  }
  return http::text(text.empty() ? "none" : text);
}

/// Signs a cookie and opens it again; then encrypts one, which needs OpenSSL.
http::Response cookies() {
  const auto keys = http::CookieKeys::from_secret(secret);
  if (!keys) return http::text(keys.error().message());
  const auto now = WallTime();
  const auto later = now + 1h;
  const auto text = keys->seal(http::CookieProtection::signed_value, "name", "value", later);
  if (!text) return http::text(text.error().message());
  const auto opened = keys->open(http::CookieProtection::signed_value, "name", *text, now);
  const auto hidden = keys->seal(http::CookieProtection::encrypted_value, "name", "value", later);
  return http::text(opened.value_or("not opened") + ", " +
                    (hidden ? "encrypted" : hidden.error().message()));
}

/// Returns why a public key cannot verify tokens.
http::Response tokens() {
  http::JwtOptions options;
  options.keys.push_back({.algorithm = "HS256", .key = secret});
  const http::JwtVerifier by_secret(options);
  options.keys.push_back({.algorithm = "RS256", .key = "-----BEGIN PUBLIC KEY-----"});
  try {
    const http::JwtVerifier by_key(options);
  } catch (const std::invalid_argument& error) {
    return http::text(error.what());
  }
  return http::text("verifies");
}

int main(int argc, char** argv) {
  http::Router router;
  router.get("/hello", [] { return http::text("hello"); });
  router.websocket("/echo", echo);
  router.get("/fetch", fetch);
  router.get("/codings", codings);
  router.get("/cookies", cookies);
  router.get("/tokens", tokens);
  auto admin = router.group<http::AuthenticatedUser>(
      "/admin", http::basic_auth({.users = {{"ann", "pass word"}}}));
  admin.get("/name", [](const http::AuthenticatedUser& user) { return http::text(user.name); });
  const auto options = tls::ProgramOptions::from_args(argc, argv);
  App app;
  app.per_core<http::Client>();
  serve_http(app, router, {.endpoint = options.endpoint, .tls = options.tls});
  return app.run(options);
}
