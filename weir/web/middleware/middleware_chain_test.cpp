// Tests of all middleware together: each of them sees the responses of the others.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "weir/task/sleep.hpp"
#include "weir/web/auth/bearer_auth.hpp"
#include "weir/web/middleware/access_log.hpp"
#include "weir/web/middleware/etag.hpp"
#include "weir/web/middleware/health.hpp"
#include "weir/web/middleware/idempotency_keys.hpp"
#include "weir/web/middleware/rate_limit.hpp"
#include "weir/web/middleware/request_id.hpp"
#include "weir/web/middleware/trusted_proxies.hpp"
#include "weir/web/protection/allowed_hosts.hpp"
#include "weir/web/protection/cors.hpp"
#include "weir/web/protection/security_headers.hpp"
#include "weir/web/test/ask.hpp"

namespace weir::http::middleware_chain_test {
namespace {

constexpr std::string_view site = "https://app.example.org";
const HeaderList usual{{"Host", "example.org"},
                       {"Origin", site},
                       {"X-Forwarded-For", "192.0.2.1"},
                       {"X-Forwarded-Proto", "https"}};

HeaderList usual_and(std::string_view name, std::string_view value) {
  HeaderList headers = usual;
  headers.emplace_back(name, value);
  return headers;
}

Task<Result<>> write_word(BodySink& sink) {
  WEIR_CO_TRY(co_await sleep(1s));
  co_return co_await sink.write("streamed");
}
Task<Response> answer_later() {
  std::ignore = co_await sleep(2s);
  co_return text("later");
}

/// A service with all middleware, of which the innermost one is a function that waits.
class MiddlewareChainTest : public testing::Test {
 protected:
  MiddlewareChainTest() {
    Router router;
    router.use<ClientAddress>(trusted_proxies({.proxies = {"0.0.0.0/0", "::/0"}, .hops_max = 1}));
    router.use(access_log([this](std::string_view line) { lines_.emplace_back(line); },
                          {.format = AccessLogFormat::common}));
    router.use(request_id());
    router.use(allowed_hosts({.hosts = {"example.org"}}));
    router.use(security_headers());
    router.use(cors({.origins = {std::string(site)}}));
    router.use(rate_limit({.limit = {.tokens = 20, .per = 1h, .burst = 20}}));
    router.use(etag());
    router.get("/text", [] { return text("hello"); });
    router.get("/later", answer_later, {.timeout = 5s});
    router.get("/late", answer_later, {.timeout = 1s});
    router.get("/stream", [] { return stream("text/plain", write_word); });
    router.get("/throw", []() -> Response { throw std::runtime_error("thrown"); });
    auto api = router.group<AuthenticatedUser>("/api", bearer_auth({.users = {{"t-1", "ann"}}}));
    api.use(idempotency_keys());
    api.post("/count",
             [this](const AuthenticatedUser& user, Json<int> step) {
               count_ += *step;
               return text(user.name + " " + std::to_string(count_));
             },
             {.body_max = 8});
    health_.add_routes(router);
    client_ = std::make_unique<TestClient>(std::move(router));
  }

  /// Asks, and expects the marks of all middleware in the response.
  TestResponse ask_marked(Method method, std::string_view path, const HeaderList& headers = usual) {
    auto answer = ask(*client_, method, path, headers);
    EXPECT_EQ(header_of(answer, "Access-Control-Allow-Origin"), site) << path;
    EXPECT_EQ(header_of(answer, "Vary"), "Origin") << path;
    EXPECT_EQ(header_of(answer, "X-Content-Type-Options"), "nosniff") << path;
    EXPECT_EQ(header_of(answer, "strict-transport-security"), "max-age=31536000") << path;
    EXPECT_NE(header_of(answer, "X-Request-Id"), "-") << path;
    EXPECT_NE(header_of(answer, "RateLimit-Remaining"), "-") << path;
    return answer;
  }
  TestResponse post(std::string_view body, std::string_view key, std::string_view token) {
    ClientRequest request = client_->request(Method::post, "/api/count");
    for (const auto& [name, value] : usual) request.add_header(name, value);
    request.set_header("Idempotency-Key", key);
    request.set_header("Authorization", token);
    request.set_body(json_type, Body(body));
    return client_->send(std::move(request));
  }

  std::vector<std::string> lines_;
  int count_ = 0;
  Health health_;
  std::unique_ptr<TestClient> client_;
};

TEST_F(MiddlewareChainTest, MarksEachKindOfResponse) {
  EXPECT_EQ(ask_marked(Method::get, "/text").body(), "hello");
  EXPECT_EQ(ask_marked(Method::head, "/text").status(), 200);
  EXPECT_EQ(ask_marked(Method::get, "/later").body(), "later");
  EXPECT_EQ(ask_marked(Method::get, "/stream").body(), "streamed");
  EXPECT_EQ(ask_marked(Method::head, "/stream").status(), 200);
  EXPECT_EQ(ask_marked(Method::get, "/none").status(), 404);
  EXPECT_EQ(ask_marked(Method::put, "/text").status(), 405);
  EXPECT_EQ(ask_marked(Method::get, "/throw").status(), 500);
  EXPECT_EQ(ask_marked(Method::get, "/late").status(), 503);
  EXPECT_EQ(ask_marked(Method::get, "/readyz").status(), 200);
  EXPECT_EQ(ask_marked(Method::post, "/api/count").status(), 401);
  EXPECT_EQ(lines_.size(), 11U);
}

TEST_F(MiddlewareChainTest, AKnownBodyIsNotSentAgain) {
  const auto first = ask_marked(Method::get, "/text");
  const auto again =
      ask_marked(Method::get, "/text", usual_and("If-None-Match", header_of(first, "ETag")));
  EXPECT_EQ(again.status(), 304);
  EXPECT_TRUE(lines_.back().ends_with("\"GET /text HTTP/1.1\" 304 -")) << lines_.back();
}

TEST_F(MiddlewareChainTest, FiltersThatAnswerStopTheRest) {
  const auto stranger = ask(*client_, Method::get, "/text", {{"Host", "evil.test"}});
  EXPECT_EQ(stranger.status(), 421);
  EXPECT_NE(header_of(stranger, "X-Request-Id"), "-");
  EXPECT_EQ(header_of(stranger, "X-Content-Type-Options"), "-") << "it is inside of the hosts";
  EXPECT_EQ(header_of(stranger, "RateLimit-Remaining"), "-");

  const auto preflight = ask(*client_, Method::options, "/api/count",
                             usual_and("Access-Control-Request-Method", "POST"));
  EXPECT_EQ(preflight.status(), 204);
  EXPECT_EQ(header_of(preflight, "X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(header_of(preflight, "RateLimit-Remaining"), "-") << "it costs no token";

  int allowed = 0;
  while (ask_marked(Method::get, "/text").status() == 200) ++allowed;
  EXPECT_EQ(allowed, 20);
  EXPECT_TRUE(lines_.back().contains("\" 429 ")) << lines_.back();
  EXPECT_TRUE(lines_.back().starts_with("192.0.2.1 - - [")) << lines_.back();
}

TEST_F(MiddlewareChainTest, ARequestHasItsEffectOnce) {
  EXPECT_EQ(post("5", "a", "Bearer t-1").body(), "ann 5");
  EXPECT_EQ(post("5", "a", "Bearer t-1").body(), "ann 5");
  EXPECT_EQ(post("5", "a", "Bearer t-2").status(), 401);
  EXPECT_EQ(post("6", "a", "Bearer t-1").status(), 422);
  EXPECT_EQ(post("6", "b", "Bearer t-1").body(), "ann 11");
  const auto too_large = post("123456789", "c", "Bearer t-1");
  EXPECT_EQ(too_large.status(), 413);
  EXPECT_EQ(header_of(too_large, "Access-Control-Allow-Origin"), site);
  EXPECT_TRUE(lines_.back().contains("\"POST /api/count HTTP/1.1\" 413 ")) << lines_.back();
}

}  // namespace
}  // namespace weir::http::middleware_chain_test
