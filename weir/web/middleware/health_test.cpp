// Tests of health and readiness.
#include "weir/web/middleware/health.hpp"

#include <gtest/gtest.h>

#include <string>

#include "weir/http/test/http_fixture.hpp"
#include "weir/task/sleep.hpp"
#include "weir/web/test/ask.hpp"

namespace weir::http::health_test {
namespace {

TEST(Health, IsReadyWhenTheServiceSaysSo) {
  Health health(false);
  Router router;
  health.add_routes(router);
  TestClient client(std::move(router));
  EXPECT_EQ(client.get("/livez").status(), 200);
  const auto starting = client.get("/readyz");
  EXPECT_EQ(starting.status(), 503);
  EXPECT_EQ(starting.body(), R"({"status":"unavailable","failed":["not ready"]})");
  EXPECT_EQ(header_of(starting, "Cache-Control"), "no-store");
  health.set_ready(true);
  EXPECT_TRUE(health.is_ready());
  const auto ready = client.get("/readyz");
  EXPECT_EQ(ready.status(), 200);
  EXPECT_EQ(ready.body(), R"({"status":"ok"})");
  EXPECT_EQ(client.head("/readyz").status(), 200);
}

TEST(Health, NamesTheChecksThatFail) {
  Health health;
  bool store_works = true;
  const auto check = [&store_works]() -> Result<> {
    if (!store_works) return fail(Errc::closed);
    return {};
  };
  health.add_check("store", check);
  health.add_check("queue", [] { return Result<>(); });
  Router router;
  auto group = router.group("/health");
  health.add_routes(group);
  TestClient client(std::move(router));
  EXPECT_EQ(client.get("/health/readyz").status(), 200);
  store_works = false;
  const auto answer = client.get("/health/readyz");
  EXPECT_EQ(answer.status(), 503);
  EXPECT_EQ(answer.body(), R"({"status":"unavailable","failed":["store"]})");
  EXPECT_EQ(client.get("/health/livez").status(), 200);
}

TEST(Health, StartsWhenItIsReadyForTheFirstTime) {
  Health health(false);
  Router router;
  health.add_routes(router);
  TestClient client(std::move(router));
  const auto starting = client.get("/startupz");
  EXPECT_EQ(starting.status(), 503);
  EXPECT_EQ(starting.body(), R"({"status":"starting","failed":["not ready"]})");
  health.set_ready(true);
  EXPECT_EQ(client.get("/startupz").body(), R"({"status":"ok"})");
  health.set_ready(false);
  EXPECT_EQ(client.get("/readyz").status(), 503);
  EXPECT_EQ(client.get("/startupz").status(), 200) << "a started service stays started";
}

TEST(Health, ListsChecksAndPartsWithVerbose) {
  Health health;
  health.add_check("queue", [] { return Result<>(); });
  bool store_ready = false;
  health.set_parts([&store_ready]() -> Task<std::vector<HealthPart>> {
    std::ignore = co_await sleep(1ms);
    std::vector<HealthPart> parts;
    parts.push_back({"Store", store_ready, store_ready ? "" : "waits for \"Disk\""});
    co_return parts;
  });
  Router router;
  health.add_routes(router);
  TestClient client(std::move(router));
  EXPECT_EQ(client.get("/readyz").body(), R"({"status":"unavailable","failed":["Store"]})");
  EXPECT_EQ(client.get("/startupz").status(), 503);
  EXPECT_EQ(client.get("/readyz?verbose").body(),
            R"({"status":"unavailable","failed":["Store"],"parts":[)"
            R"({"name":"queue","ready":true},)"
            R"({"name":"Store","ready":false,"reason":"waits for \"Disk\""}]})");
  store_ready = true;
  EXPECT_EQ(client.get("/readyz?verbose").body(),
            R"({"status":"ok","parts":[{"name":"queue","ready":true},)"
            R"({"name":"Store","ready":true}]})");
  EXPECT_EQ(client.get("/startupz").status(), 200);
  store_ready = false;
  EXPECT_EQ(client.get("/startupz").body(), R"({"status":"ok"})");
  EXPECT_EQ(client.get("/livez").body(), R"({"status":"ok"})");
}

TEST(Health, PrintsReasonsPrintably) {
  Health health;
  health.set_parts([]() -> Task<std::vector<HealthPart>> {
    std::vector<HealthPart> parts;
    parts.push_back({"Store", false,
                     "\x1b[2J\xc2\x9b"
                     "31m\xe2\x80\xae\x7f"});
    co_return parts;
  });
  Router router;
  health.add_routes(router);
  TestClient client(std::move(router));
  for (const char* const path : {"/readyz?verbose", "/startupz?verbose"}) {
    const auto answer = client.get(path);
    EXPECT_TRUE(answer.body().contains(R"("reason":"\u001b[2J\u009b31m\u202e\u007f")"))
        << answer.body();
  }
}

class HealthDrainTest : public HttpTest {};

TEST_F(HealthDrainTest, IsNotReadyWhileTheServerDrains) {
  Health health;
  health.add_routes(routes_);
  routes_.get("/slow", []() -> Task<Response> {
    std::ignore = co_await sleep(1s);
    co_return text("slow");
  });
  serve();
  MemoryPeer& peer = connect();
  EXPECT_TRUE(talk(peer, "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 200 "));
  talk(peer, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /readyz HTTP/1.1\r\nHost: a\r\n\r\n");
  MemoryPeer& idle = connect();
  settle();
  drain();
  const std::string answer = talk(idle, "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_TRUE(answer.contains("\"draining\"")) << answer;
}

}  // namespace
}  // namespace weir::http::health_test
