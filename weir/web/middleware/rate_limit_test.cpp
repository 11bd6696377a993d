// Tests of the limit of requests.
#include "weir/web/middleware/rate_limit.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "weir/web/middleware/trusted_proxies.hpp"
#include "weir/web/test/ask.hpp"

namespace weir::http::rate_limit_test {
namespace {

Task<Result<>> write_word(BodySink& sink) {
  co_return co_await sink.write("streamed");
}

Router routes(RateLimitOptions options) {
  Router router;
  router.use<ClientAddress>(trusted_proxies({.proxies = {"0.0.0.0/0", "::/0"}, .hops_max = 1}));
  router.use(rate_limit(std::move(options)));
  router.get("/", [] { return text("hello"); });
  router.get("/stream", [] { return stream("text/plain", write_word); });
  return router;
}
int status_of(TestClient& client, std::string_view address) {
  return code_of(ask(client, Method::get, "/", {{"X-Forwarded-For", address}}).status());
}
constexpr RateLimit two_each_minute{.tokens = 2, .per = std::chrono::minutes(1), .burst = 2};

TEST(RateLimit, AnswersTooManyRequestsWith429) {
  for (const RateScope scope : {RateScope::all_cores, RateScope::per_core}) {
    TestClient client(routes({.limit = two_each_minute, .scope = scope}));
    const auto first = client.get("/");
    EXPECT_EQ(first.status(), 200);
    EXPECT_EQ(header_of(first, "RateLimit-Limit"), "2");
    EXPECT_EQ(header_of(first, "RateLimit-Remaining"), "1");
    EXPECT_EQ(header_of(first, "RateLimit-Reset"), "30");
    EXPECT_EQ(header_of(first, "Retry-After"), "-");
    EXPECT_EQ(header_of(client.get("/none"), "RateLimit-Remaining"), "0");
    const auto refused = client.get("/");
    EXPECT_EQ(refused.status(), 429);
    EXPECT_EQ(header_of(refused, "Retry-After"), "30");
    EXPECT_EQ(header_of(refused, "RateLimit-Remaining"), "0");
    EXPECT_EQ(header_of(refused, "Content-Type"), "application/problem+json");
    client.advance(30s);
    EXPECT_EQ(client.get("/stream").body(), "streamed");
    EXPECT_EQ(client.head("/").status(), 429);
  }
}

TEST(RateLimit, CountsEachClientAlone) {
  TestClient client(routes({.limit = two_each_minute}));
  for (const char* address : {"192.0.2.1", "192.0.2.2", "2001:db8:0:1::1", "2001:db8:0:2::1"}) {
    EXPECT_EQ(status_of(client, address), 200) << address;
    EXPECT_EQ(status_of(client, address), 200) << address;
    EXPECT_EQ(status_of(client, address), 429) << address;
  }
}

TEST(RateLimit, ANetworkOfIpv6IsOneClient) {
  TestClient client(routes({.limit = two_each_minute}));
  EXPECT_EQ(status_of(client, "2001:db8::1"), 200);
  EXPECT_EQ(status_of(client, "2001:db8::ffff:2"), 200);
  EXPECT_EQ(status_of(client, "2001:db8::3:4:5:6"), 429);
  EXPECT_EQ(status_of(client, "::ffff:192.0.2.1"), 200);
  EXPECT_EQ(status_of(client, "192.0.2.1"), 200);
  EXPECT_EQ(status_of(client, "192.0.2.1"), 429) << "both forms are one address";
}

TEST(RateLimit, MayHaveAKeyInAHeader) {
  TestClient client(routes({.limit = two_each_minute, .header = "X-Api-Key"}));
  const auto status = [&](std::string_view key) {
    return ask(client, Method::get, "/", {{"X-Api-Key", key}}).status();
  };
  EXPECT_EQ(status("a"), 200);
  EXPECT_EQ(status("a"), 200);
  EXPECT_EQ(status("a"), 429);
  EXPECT_EQ(status("b"), 200);
  EXPECT_EQ(client.get("/").status(), 200);
  EXPECT_EQ(client.get("/").status(), 200);
  EXPECT_EQ(client.get("/").status(), 429) << "without the header, the address is the key";
}

TEST(RateLimit, MayHaveAFunctionOfTheKey) {
  const auto key = [](const Request& request) -> std::optional<std::string> {
    if (request.path_text() == "/stream") return std::nullopt;
    return std::string(request.method_text());
  };
  TestClient client(routes({.limit = two_each_minute, .key = key}));
  for (int times = 0; times < 5; ++times) {
    const auto free = client.get("/stream");
    EXPECT_EQ(free.status(), 200);
    EXPECT_EQ(header_of(free, "RateLimit-Limit"), "-");
  }
  EXPECT_EQ(client.get("/").status(), 200);
  EXPECT_EQ(client.get("/").status(), 200);
  EXPECT_EQ(client.get("/").status(), 429);
  EXPECT_EQ(client.head("/").status(), 200);
}

TEST(RateLimit, MayHaveOtherHeaders) {
  TestClient structured(routes({.limit = two_each_minute, .headers = RateHeaders::structured}));
  const auto answer = structured.get("/");
  EXPECT_EQ(header_of(answer, "RateLimit-Policy"), "\"default\";q=2;w=60");
  EXPECT_EQ(header_of(answer, "RateLimit"), "\"default\";r=1;t=30");
  EXPECT_EQ(header_of(answer, "RateLimit-Limit"), "-");
  TestClient none(routes({.limit = two_each_minute, .headers = RateHeaders::none}));
  EXPECT_EQ(header_of(none.get("/"), "RateLimit-Limit"), "-");
  none.get("/");
  EXPECT_EQ(header_of(none.get("/"), "Retry-After"), "30");
}

TEST(RateLimit, StatesTheTightestOfSeveralLimits) {
  Router router;
  router.use(rate_limit({.limit = {.tokens = 9, .per = std::chrono::minutes(1), .burst = 9}}));
  RouteGroup login = router.group("/login");
  login.use(rate_limit({.limit = two_each_minute}));
  login.get("/form", [] { return text("hello"); });
  router.get("/", [] { return text("hello"); });
  TestClient client(std::move(router));
  const auto wide = client.get("/");
  EXPECT_EQ(header_of(wide, "RateLimit-Limit"), "9");
  EXPECT_EQ(header_of(wide, "RateLimit-Remaining"), "8");
  const auto narrow = client.get("/login/form");
  EXPECT_EQ(header_of(narrow, "RateLimit-Limit"), "2");
  EXPECT_EQ(header_of(narrow, "RateLimit-Remaining"), "1");
  EXPECT_EQ(header_of(narrow, "RateLimit-Reset"), "30");
}

TEST(RateLimit, HasABoundOfItsMemory) {
  EXPECT_LE(rate_limit({.keys_max = 65'536}).memory_bound(8), 1'100'000U);
  EXPECT_LE(rate_limit({.scope = RateScope::per_core, .keys_max = 65'536}).memory_bound(8),
            8'500'000U);
  TestClient client(routes({.limit = two_each_minute, .keys_max = 8}));
  for (int number = 0; number < 300; ++number) {
    EXPECT_EQ(status_of(client, "192.0.2." + std::to_string(number % 250)), 200);
  }
}

TEST(RateLimit, RejectsALimitOfZero) {
  EXPECT_THROW(rate_limit({.limit = {.tokens = 0}}), std::invalid_argument);
  EXPECT_THROW(rate_limit({.limit = {.per = 0s}}), std::invalid_argument);
  EXPECT_THROW(rate_limit({.limit = {.burst = 0}}), std::invalid_argument);
}

}  // namespace
}  // namespace weir::http::rate_limit_test
