// Tests of the headers that make browsers strict.
#include "weir/web/protection/security_headers.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string_view>

#include "weir/web/middleware/trusted_proxies.hpp"
#include "weir/web/test/ask.hpp"

namespace weir::http::security_headers_test {
namespace {

Task<Result<>> write_word(BodySink& sink) {
  co_return co_await sink.write("streamed");
}

Router routes(const SecurityOptions& options = {}) {
  Router router;
  router.use<ClientAddress>(trusted_proxies({.proxies = {"0.0.0.0/0", "::/0"}}));
  router.use(security_headers(options));
  router.get("/", [] { return text("hello"); });
  router.get("/stream", [] { return stream("text/plain", write_word); });
  router.get("/framed", [] {
    Response response = text("hello");
    response.set_header("x-frame-options", "SAMEORIGIN");
    response.set_header("strict-transport-security", "max-age=1");
    return response;
  });
  return router;
}

TEST(SecurityHeaders, AreOnAllResponses) {
  TestClient client(routes());
  for (const std::string_view path : {"/", "/stream", "/none"}) {
    const auto answer = client.get(path);
    EXPECT_TRUE(header_of(answer, "Content-Security-Policy").starts_with("default-src 'self';"));
    EXPECT_EQ(header_of(answer, "X-Frame-Options"), "DENY");
    EXPECT_EQ(header_of(answer, "X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(header_of(answer, "Referrer-Policy"), "no-referrer");
    EXPECT_EQ(header_of(answer, "Cross-Origin-Opener-Policy"), "same-origin");
    EXPECT_EQ(header_of(answer, "Cross-Origin-Resource-Policy"), "same-origin");
    EXPECT_EQ(header_of(answer, "Permissions-Policy"), "-");
    EXPECT_EQ(header_of(answer, "strict-transport-security"), "-") << "it was http";
  }
  EXPECT_EQ(header_of(client.head("/"), "X-Frame-Options"), "DENY");
}

TEST(SecurityHeaders, DemandHttpsOverHttps) {
  TestClient client(routes());
  const HeaderList https{{"X-Forwarded-Proto", "https"}};
  EXPECT_EQ(header_of(ask(client, Method::get, "/", https), "strict-transport-security"),
            "max-age=31536000");
  EXPECT_EQ(header_of(ask(client, Method::get, "/framed", https), "strict-transport-security"),
            "max-age=1");
  TestClient whole(routes({.strict_transport = 10s, .strict_transport_subdomains = true}));
  EXPECT_EQ(header_of(ask(whole, Method::get, "/", https), "strict-transport-security"),
            "max-age=10; includeSubDomains");
  TestClient off(routes({.strict_transport = 0s}));
  EXPECT_EQ(header_of(ask(off, Method::get, "/", https), "strict-transport-security"), "-");
}

TEST(SecurityHeaders, HandlersAndOptionsChangeThem) {
  TestClient client(routes());
  EXPECT_EQ(header_of(client.get("/framed"), "X-Frame-Options"), "SAMEORIGIN");
  EXPECT_EQ(client.get("/framed").headers().count(), client.get("/").headers().count() + 1);
  TestClient other(routes({.content_security_policy = "",
                           .frame_options = "SAMEORIGIN",
                           .permissions_policy = "camera=()",
                           .no_sniff = false}));
  const auto answer = other.get("/");
  EXPECT_EQ(header_of(answer, "Content-Security-Policy"), "-");
  EXPECT_EQ(header_of(answer, "X-Frame-Options"), "SAMEORIGIN");
  EXPECT_EQ(header_of(answer, "Permissions-Policy"), "camera=()");
  EXPECT_EQ(header_of(answer, "X-Content-Type-Options"), "-");
  EXPECT_THROW(security_headers({.referrer_policy = "a\r\nX: b"}), std::invalid_argument);
}

}  // namespace
}  // namespace weir::http::security_headers_test
