// Tests of cross-origin resource sharing.
#include "weir/web/protection/cors.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "weir/http/message/authorization.hpp"
#include "weir/web/test/ask.hpp"

namespace weir::http::cors_test {
namespace {

constexpr std::string_view site = "https://app.example.org";

Task<Result<>> write_word(BodySink& sink) {
  co_return co_await sink.write("streamed");
}

Router routes(CorsOptions options) {
  Router router;
  router.use(cors(std::move(options)));
  router.get("/text", [] { return text("hello"); });
  router.put("/text", [] { return no_content(); });
  router.get("/stream", [] { return stream("text/plain", write_word); });
  router.get("/throw", []() -> Response { throw std::runtime_error("thrown"); });
  const auto refuse = [](Request&, Next) -> Task<Response> { co_return unauthorized("Bearer"); };
  router.group("/private", refuse).get("/text", [] { return text("secret"); });
  return router;
}

TestResponse preflight(TestClient& client, std::string_view path, std::string_view origin,
                       HeaderList more = {}) {
  more.emplace_back("Origin", origin);
  more.emplace_back("Access-Control-Request-Method", "PUT");
  return ask(client, Method::options, path, more);
}
std::string_view origin_of(const TestResponse& response) {
  return header_of(response, "Access-Control-Allow-Origin");
}

TEST(Cors, AllowsTheOriginsOfItsList) {
  const Cors cors(CorsOptions{.origins = {"https://app.example.org", "http://localhost:8080",
                                          "https://*.example.net", "https://*.example.net:444"}});
  for (const char* origin :
       {"https://app.example.org", "http://localhost:8080", "https://a.example.net",
        "https://a.b-c.example.net", "https://a.example.net:444"}) {
    EXPECT_TRUE(cors.allows(origin)) << origin;
  }
  for (const char* origin : {"",
                             "null",
                             "*",
                             "http://app.example.org",
                             "https://app.example.org:443",
                             "https://app.example.org.evil.test",
                             "https://evil-app.example.org",
                             "http://localhost",
                             "https://example.net",
                             "https://.example.net",
                             "https://evilexample.net",
                             "https://evil.test/.example.net",
                             "https://evil.test?.example.net",
                             "https://evil.test:1#.example.net",
                             "https://a@b.example.net",
                             "https://a..example.net",
                             "http://a.example.net",
                             "https://a.example.net:445",
                             "https://APP.example.org",
                             "https://a.example.net.",
                             "https://%00.example.net"}) {
    EXPECT_FALSE(cors.allows(origin)) << origin;
  }
}

TEST(Cors, AllowsNoOriginByDefault) {
  TestClient client(routes({}));
  EXPECT_EQ(origin_of(preflight(client, "/text", site)), "-");
  EXPECT_EQ(origin_of(ask(client, Method::get, "/text", {{"Origin", site}})), "-");
}

TEST(Cors, AnswersPreflightRequests) {
  TestClient client(routes({.origins = {std::string(site)}, .exposed_headers = {"X-Count"}}));
  const auto answer = preflight(client, "/text", site);
  EXPECT_EQ(answer.status(), 204);
  EXPECT_EQ(origin_of(answer), site);
  EXPECT_EQ(header_of(answer, "Access-Control-Allow-Methods"), "PUT, PATCH, DELETE");
  EXPECT_EQ(header_of(answer, "Access-Control-Allow-Headers"), "Authorization, Content-Type");
  EXPECT_EQ(header_of(answer, "Access-Control-Max-Age"), "600");
  EXPECT_EQ(header_of(answer, "Access-Control-Allow-Credentials"), "-");
  EXPECT_EQ(header_of(answer, "Access-Control-Expose-Headers"), "-");
  EXPECT_EQ(header_of(answer, "Vary"), "Origin");
  const auto other = preflight(client, "/text", "https://evil.test");
  EXPECT_EQ(other.status(), 204);
  EXPECT_EQ(origin_of(other), "-");
  EXPECT_EQ(header_of(other, "Access-Control-Allow-Methods"), "-");
  EXPECT_EQ(header_of(other, "Vary"), "Origin");
}

TEST(Cors, AnswersPreflightRequestsBeforeAuthentication) {
  TestClient client(routes({.origins = {std::string(site)}}));
  EXPECT_EQ(preflight(client, "/private/text", site).status(), 204);
  const auto refused = ask(client, Method::get, "/private/text", {{"Origin", site}});
  EXPECT_EQ(refused.status(), 401);
  EXPECT_EQ(origin_of(refused), site) << "a script sees why it was refused";
}

TEST(Cors, OtherOptionsRequestsAreThoseOfTheRouter) {
  TestClient client(routes({.origins = {std::string(site)}}));
  const auto answer = ask(client, Method::options, "/text", {{"Origin", site}});
  EXPECT_EQ(answer.status(), 204);
  EXPECT_EQ(header_of(answer, "Allow"), "GET, HEAD, OPTIONS, PUT");
  EXPECT_EQ(origin_of(answer), site);
}

TEST(Cors, MarksAllResponses) {
  TestClient client(routes({.origins = {std::string(site)}, .exposed_headers = {"X-A", "X-B"}}));
  const auto check = [&](Method method, std::string_view path, int status) {
    const auto answer = ask(client, method, path, {{"Origin", site}});
    EXPECT_EQ(answer.status(), status) << path;
    EXPECT_EQ(origin_of(answer), site) << path;
    EXPECT_EQ(header_of(answer, "Vary"), "Origin") << path;
    EXPECT_EQ(header_of(answer, "Access-Control-Expose-Headers"), "X-A, X-B") << path;
  };
  check(Method::get, "/text", 200);
  check(Method::head, "/text", 200);
  check(Method::get, "/stream", 200);
  check(Method::get, "/none", 404);
  check(Method::post, "/text", 405);
  check(Method::get, "/throw", 500);
}

TEST(Cors, CachesKeepResponsesOfOriginsApart) {
  TestClient client(routes({.origins = {std::string(site)}}));
  EXPECT_EQ(header_of(client.get("/text"), "Vary"), "Origin") << "also without an origin";
  TestClient open(routes({.origins = {"*"}}));
  const auto answer = ask(open, Method::get, "/text", {{"Origin", "https://any.test"}});
  EXPECT_EQ(origin_of(answer), "*");
  EXPECT_EQ(header_of(answer, "Vary"), "-");
  EXPECT_EQ(origin_of(open.get("/text")), "*") << "a cache may give it to another origin";
  EXPECT_EQ(origin_of(open.head("/text")), "*");
}

TEST(Cors, NothingBehindItAllowsMore) {
  Router router;
  router.use(cors({.origins = {std::string(site)}}));
  router.get("/echo", [](const Request& request) {
    Response response = text("secret");
    response.add_header("Access-Control-Allow-Origin",
                        std::string(request.header("Origin").value_or("*")));
    response.add_header("Access-Control-Allow-Credentials", "true");
    response.add_header("X-Other", "kept");
    return response;
  });
  TestClient client(std::move(router));
  for (const std::string_view origin : {site, std::string_view("https://evil.test")}) {
    const auto answer = ask(client, Method::get, "/echo", {{"Origin", origin}});
    EXPECT_EQ(origin_of(answer), origin == site ? site : "-");
    EXPECT_EQ(header_of(answer, "Access-Control-Allow-Credentials"), "-");
    EXPECT_EQ(header_of(answer, "X-Other"), "kept");
  }
  EXPECT_EQ(origin_of(client.get("/echo")), "-");
}

TEST(Cors, SendsCredentialsToNamedOriginsOnly) {
  TestClient client(routes({.origins = {"https://*.example.org"}, .credentials = true}));
  const auto answer = ask(client, Method::get, "/text", {{"Origin", site}});
  EXPECT_EQ(origin_of(answer), site);
  EXPECT_EQ(header_of(answer, "Access-Control-Allow-Credentials"), "true");
  EXPECT_EQ(header_of(preflight(client, "/text", site), "Access-Control-Allow-Credentials"),
            "true");
  const auto other = ask(client, Method::get, "/text", {{"Origin", "https://evil.test"}});
  EXPECT_EQ(header_of(other, "Access-Control-Allow-Credentials"), "-");
}

TEST(Cors, RepeatsTheHeadersThatAreAskedFor) {
  TestClient client(routes({.origins = {"*"}, .headers = {"*"}, .max_age = Duration::zero()}));
  const auto answer =
      preflight(client, "/text", site, {{"Access-Control-Request-Headers", "x-a, x-b"}});
  EXPECT_EQ(header_of(answer, "Access-Control-Allow-Headers"), "x-a, x-b");
  EXPECT_EQ(header_of(answer, "Vary"), "Access-Control-Request-Headers");
  EXPECT_EQ(header_of(answer, "Access-Control-Max-Age"), "-");
  const auto odd =
      preflight(client, "/text", site, {{"Access-Control-Request-Headers", "x-a: \"b\""}});
  EXPECT_EQ(header_of(odd, "Access-Control-Allow-Headers"), "-");
}

TEST(Cors, LetsPublicPagesIntoAPrivateNetworkOnlyIfItShould) {
  const HeaderList asks{{"Access-Control-Request-Private-Network", "true"}};
  const auto header = [&](TestClient& client, const HeaderList& more) {
    return std::string(
        header_of(preflight(client, "/text", site, more), "Access-Control-Allow-Private-Network"));
  };
  TestClient closed(routes({.origins = {"*"}}));
  EXPECT_EQ(header(closed, asks), "-");
  TestClient open(routes({.origins = {"*"}, .private_network = true}));
  EXPECT_EQ(header(open, asks), "true");
  EXPECT_EQ(header(open, {}), "-");
}

TEST(Cors, RejectsOptionsThatAreUnsafe) {
  for (const char* origin :
       {"", "example.org", "https://", "https://a.test/", "https://a.test/b", "https://A.test",
        "https://*", "https://*example.org", "https://a.*.org", "*.example.org", "https://*.*.org",
        "https://a.test ", "*, https://a.test", "https://a.test:443", "http://*.a.test:80"}) {
    EXPECT_THROW(cors({.origins = {origin}}), std::invalid_argument) << origin;
  }
  EXPECT_THROW(cors({.origins = {"*", "https://a.test"}}), std::invalid_argument);
  EXPECT_THROW(cors({.origins = {"*"}, .credentials = true}), std::invalid_argument);
  EXPECT_THROW(cors({.origins = {"null"}, .credentials = true}), std::invalid_argument);
  EXPECT_THROW(cors({.origins = {std::string(site)}, .headers = {"*"}, .credentials = true}),
               std::invalid_argument);
  EXPECT_THROW(cors({.origins = {"*"}, .methods = {"PUT, X"}}), std::invalid_argument);
  EXPECT_THROW(cors({.origins = {"*"}, .exposed_headers = {"X-A\r\nX-B: c"}}),
               std::invalid_argument);
}

}  // namespace
}  // namespace weir::http::cors_test
