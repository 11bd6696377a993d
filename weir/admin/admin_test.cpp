// Tests of the admin routes.
#include "weir/admin/admin.hpp"

#include <atomic>
#include <deque>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weir/app/http_server.hpp"
#include "weir/app/test/app_fixture.hpp"
#include "weir/http/router/service_routes.hpp"
#include "weir/http/test/http_request.hpp"
#include "weir/http_testing/detail/http_answers.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"

namespace weir::admin_test {
namespace {

struct Tick {
  int number = 0;
};

class AdminTest : public AppTest {
 protected:
  sim::HttpResponse ask(std::string_view path) {
    MemoryPeer peer(platform_, inside_);
    peer.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n");
    platform_.run_until_idle(*loop_);
    const auto answers = sim::parse_http_responses(peer.received());
    EXPECT_EQ(answers.size(), 1U);
    return answers.empty() ? sim::HttpResponse() : answers.front();
  }
  const os::Address inside_ = os::Address::loopback(9090);
  http::Router routes_;
  http::Router admin_;
};

TEST_F(AdminTest, ShowsTheAppInAllFormats) {
  mount_admin(admin_, app_, {.title = "shop & co"});
  serve_http(app_, routes_, {.endpoint = os::Address::loopback(80)});
  serve_http(app_, admin_, {.endpoint = inside_});
  ASSERT_TRUE(start());
  const sim::HttpResponse page = ask("/weir/services");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(page.header("Content-Security-Policy"),
            "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'");
  EXPECT_EQ(page.header("Cache-Control"), "no-store");
  EXPECT_EQ(page.header("X-Content-Type-Options"), "nosniff");
  EXPECT_NE(page.body.find("<title>shop &amp; co: services</title>"), std::string::npos);
  EXPECT_NE(page.body.find("weir::Journal"), std::string::npos);
  EXPECT_EQ(page.body.find("style="), std::string::npos) << "the policy forbids it";
  const sim::HttpResponse json = ask("/weir/services.json");
  EXPECT_EQ(json.header("Content-Type"), "application/json");
  EXPECT_TRUE(json.body.starts_with("{\"services\":[{\"name\":\"weir::Journal\""));
  EXPECT_TRUE(json.body.ends_with("\"events\":[]}"));
  EXPECT_TRUE(ask("/weir/services.dot").body.starts_with("digraph services {"));
  EXPECT_TRUE(ask("/weir/services.txt").body.starts_with("weir::Journal: running"));
  EXPECT_EQ(ask("/weir/services.css").header("Content-Type"), "text/css; charset=utf-8");
  stop();
}

TEST_F(AdminTest, HasNoRoutesUnlessMounted) {
  serve_http(app_, routes_, {.endpoint = inside_});
  ASSERT_TRUE(start());
  EXPECT_EQ(ask("/weir/services").status, 404);
  stop();
}

TEST_F(AdminTest, ShowsTheRatesOfEvents) {
  EventBus bus(1);
  mount_admin(admin_, app_, {.events = &bus});
  serve_http(app_, admin_, {.endpoint = inside_});
  ASSERT_TRUE(start());
  EXPECT_NE(ask("/weir/services").body.find("<h2>Events</h2>"), std::string::npos);
  CoreEvents& events = bus.local(*loop_);
  for (int number = 0; number < 30; ++number) ASSERT_TRUE(events.publish(Tick{number}));
  platform_.advance(*loop_, 3s);
  const std::string json = ask("/weir/services.json").body;
  EXPECT_NE(json.find("\"handled\":30,\"per_second\":10"), std::string::npos) << json;
  stop();
}

TEST_F(AdminTest, EachAnswerHasItsTypeAndTheSecurityHeaders) {
  mount_admin(admin_, app_);
  serve_http(app_, admin_, {.endpoint = inside_});
  ASSERT_TRUE(start());
  const std::vector<std::pair<std::string, std::string>> types{
      {"/weir/services", "text/html; charset=utf-8"},
      {"/weir/services.json", "application/json"},
      {"/weir/services.dot", "text/vnd.graphviz; charset=utf-8"},
      {"/weir/services.txt", "text/plain; charset=utf-8"},
      {"/weir/services.css", "text/css; charset=utf-8"}};
  for (const auto& [path, type] : types) {
    const sim::HttpResponse answer = ask(path);
    EXPECT_EQ(answer.status, 200) << path;
    EXPECT_EQ(answer.header("Content-Type"), type) << path;
    EXPECT_TRUE(answer.header("Content-Security-Policy").starts_with("default-src 'none'; "))
        << path;
    EXPECT_EQ(answer.header("X-Content-Type-Options"), "nosniff") << path;
    EXPECT_EQ(answer.header("Referrer-Policy"), "no-referrer") << path;
    EXPECT_EQ(answer.header("Cache-Control"), "no-store") << path;
  }
  stop();
}

TEST_F(AdminTest, ThePageReloadsEveryTwoSecondsByDefault) {
  mount_admin(admin_, app_);
  serve_http(app_, admin_, {.endpoint = inside_});
  ASSERT_TRUE(start());
  const std::string page = ask("/weir/services").body;
  EXPECT_NE(page.find("<title>Weir: services</title>"), page.npos);
  EXPECT_NE(page.find("<meta http-equiv=\"refresh\" content=\"2\">"), page.npos);
  stop();
}

TEST_F(AdminTest, ThePageReloadsAtTheGivenInterval) {
  mount_admin(admin_, app_, {.refresh = 7s});
  mount_admin(routes_, app_, {.refresh = Duration::zero()});
  serve_http(app_, admin_, {.endpoint = inside_});
  serve_http(app_, routes_, {.endpoint = os::Address::loopback(9091)});
  ASSERT_TRUE(start());
  const std::string page = ask("/weir/services").body;
  EXPECT_NE(page.find("<meta http-equiv=\"refresh\" content=\"7\">"), page.npos);
  {
    MemoryPeer peer(platform_, os::Address::loopback(9091));
    peer.send("GET /weir/services HTTP/1.1\r\nHost: a\r\n\r\n");
    platform_.run_until_idle(*loop_);
    const auto answers = sim::parse_http_responses(peer.received());
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].status, 200);
    EXPECT_EQ(answers[0].body.find("http-equiv"), std::string::npos);
  }
  stop();
}

TEST_F(AdminTest, ARateIsThatOfTheLastSamples) {
  EventBus bus(1);
  mount_admin(admin_, app_, {.events = &bus});
  serve_http(app_, admin_, {.endpoint = inside_});
  ASSERT_TRUE(start());
  CoreEvents& events = bus.local(*loop_);
  const auto publish = [&](int count) {
    for (int number = 0; number < count; ++number) ASSERT_TRUE(events.publish(Tick{number}));
  };
  const auto expect_rate = [&](int handled, std::string_view rate) {
    const std::string json = ask("/weir/services.json").body;
    EXPECT_NE(json.find("\"handled\":" + std::to_string(handled) +
                        ",\"per_second\":" + std::string(rate) + ","),
              json.npos)
        << json;
  };
  expect_rate(0, "0.0");
  publish(10);
  platform_.advance(*loop_, 500ms);
  expect_rate(10, "20.0");
  platform_.advance(*loop_, 500ms);
  expect_rate(10, "10.0");  // the second sample
  publish(20);
  platform_.advance(*loop_, 1s);
  expect_rate(30, "15.0");
  publish(30);
  platform_.advance(*loop_, 1s);
  expect_rate(60, "20.0");
  publish(40);
  platform_.advance(*loop_, 1s);
  expect_rate(100, "25.0");  // the fifth sample
  publish(50);
  platform_.advance(*loop_, 1s);
  expect_rate(150, "35.0");  // since the second sample
  stop();
}

TEST_F(AdminTest, ShowsTheCountersOfEachCore) {
  EventBus bus(2, {.capacity = 3});
  mount_admin(admin_, app_, {.events = &bus});
  serve_http(app_, admin_, {.endpoint = inside_});
  ASSERT_TRUE(start());
  CoreEvents& events = bus.local(*loop_);
  const auto ticks = events.on([](const Tick& tick) {
    if (tick.number == 1) throw std::runtime_error("out of step");
  });
  for (int number = 0; number < 3; ++number) ASSERT_TRUE(events.publish(Tick{number}));
  for (int number = 3; number < 5; ++number) EXPECT_FALSE(events.publish(Tick{number}));
  platform_.run_until_idle(*loop_);
  const std::string json = ask("/weir/services.json").body;
  EXPECT_TRUE(json.ends_with(
      "\"events\":[{\"core\":0,\"handled\":3,\"per_second\":0.0,\"rejected\":2,\"failures\":1},"
      "{\"core\":1,\"handled\":0,\"per_second\":0.0,\"rejected\":0,\"failures\":0}]}"))
      << json;
  stop();
}

/// Sends requests for the page, and checks that each response has the counters of two cores.
Task<> ask_repeatedly(Scope&, const http::Router& router) {
  for (int i = 0; i < 20; ++i) {
    http::TextRequest request("GET /weir/services.json");
    http::RouteMatch match;
    router.match(request.head(), match);
    const http::Response response = co_await match.start(request.request());
    EXPECT_EQ(response.body().text(),
              "{\"services\":[],\"events\":[{\"core\":0,\"handled\":0,\"per_second\":0.0,"
              "\"rejected\":0,\"failures\":0},{\"core\":1,\"handled\":0,\"per_second\":0.0,"
              "\"rejected\":0,\"failures\":0}]}");
  }
}

RuntimeOptions two_cores() {
  RuntimeOptions options;
  options.cores = 2;
  options.pin = false;
  options.announce = false;
  return options;
}

/// The routers of several rounds. In each round, two cores begin at the same time.
struct Rounds {
  std::deque<http::Router> routers;
  std::atomic<unsigned> arrivals{0};
};

Task<> ask_in_rounds(Scope&, Rounds& rounds) {
  unsigned arrivals = 0;
  for (const http::Router& router : rounds.routers) {
    http::TextRequest request("GET /weir/services.json");
    http::RouteMatch match;
    router.match(request.head(), match);
    ++rounds.arrivals;
    arrivals += 2;
    while (rounds.arrivals.load() < arrivals) std::this_thread::yield();
    const http::Response response = co_await match.start(request.request());
    EXPECT_EQ(response.status(), http::Status::ok);
  }
}

// Only the first request of a router samples the counters, so each round has a new router. The app
// does not run, so no request waits for the other core.
TEST(AdminOnThreads, CoresMaySendTheFirstRequestsAtTheSameTime) {
  Runtime runtime(two_cores());
  App app;
  EventBus bus(2);
  Rounds rounds;
  for (int round = 0; round < 300; ++round) {
    mount_admin(rounds.routers.emplace_back(), app, {.events = &bus});
  }
  EXPECT_EQ(runtime.run_on_each_core(ask_in_rounds, std::ref(rounds)), 0);
}

TEST(AdminOnThreads, AllCoresMayServeTheRoutesAtTheSameTime) {
  Runtime runtime(two_cores());
  App app;
  EventBus bus(2);
  http::Router router;
  mount_admin(router, app, {.events = &bus});
  EXPECT_EQ(runtime.run_on_each_core(ask_repeatedly, std::cref(router)), 0);
}

}  // namespace
}  // namespace weir::admin_test
