// web_service: a service with the middleware that most services take. Try:
//   curl -i localhost:8080/text; curl -i localhost:8080/readyz
//   curl localhost:8080/admin/name -u ann:secret; curl localhost:8080/api/name -H 'Authorization:
//   Bearer t-1'
#include <weir/web.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace weir;

struct Payment {
  int cents;
};

/// Puts middleware around all routes. The first one is the outermost.
void add_middleware(http::Router& router) {
  router.use<http::ClientAddress>(http::trusted_proxies({.proxies = {"10.0.0.0/8", "::1"}}));
  const auto print = [](std::string_view line) {
    std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
  };
  router.use(http::access_log(print, {.format = http::AccessLogFormat::combined}));
  router.use(http::request_id());
  router.use(http::allowed_hosts({.hosts = {"localhost", "127.0.0.1", "*.example.org"}}));
  router.use(http::security_headers());
  router.use(http::cross_origin_protection());
  router.use(http::cors({.origins = {"https://app.example.org", "https://*.example.net"}}));
  router.use(http::rate_limit({.limit = {.tokens = 100, .per = 1s, .burst = 200}}));
  router.use(http::etag());
}

http::Response pay(http::Json<Payment> payment) {
  return http::text("paid " + std::to_string(payment->cents) + " cents\n");
}

/// Adds a group for each way to log in.
void add_logins(http::Router& router) {
  const char* const password = std::getenv("ADMIN_PASSWORD");
  const http::Basic ann{.name = "ann", .password = password != nullptr ? password : "secret"};
  auto admin = router.group<http::AuthenticatedUser>("/admin", http::basic_auth({.users = {ann}}));
  admin.get("/name", [](const http::AuthenticatedUser& user) { return http::text(user.name); });

  const http::BearerUser robot{.token = "t-1", .name = "robot"};
  auto api = router.group<http::AuthenticatedUser>("/api", http::bearer_auth({.users = {robot}}));
  api.use(http::idempotency_keys());
  api.get("/name", [](const http::AuthenticatedUser& user) { return http::text(user.name); });
  api.post("/payments", pay, {.timeout = 5s, .body_max = 1024});

  http::JwtOptions tokens{.issuer = "https://login.example.org", .audiences = {"notes"}};
  tokens.keys.push_back({.algorithm = "HS256", .key = "32 bytes that only servers know."});
  auto notes = router.group<http::JwtClaims>("/notes", http::jwt_auth(tokens));
  notes.get("/owner", [](const http::JwtClaims& claims) { return http::text(claims.subject); });
}

/// A filter is middleware that never waits.
struct NoIndex {
  void after(http::Request&, http::Response& response) const {
    response.set_header("X-Robots-Tag", "noindex");
  }
};

int main(int argc, char** argv) {
  http::Router router;
  add_middleware(router);
  router.use(NoIndex());
  add_logins(router);
  router.get("/text", [] { return http::text("hello\n"); });
  http::Health health;
  health.add_check("disk", [] { return Result<>(); });
  health.add_routes(router);
  return http::run(router, argc, argv);
}
