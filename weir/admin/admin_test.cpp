#include "weir/admin/admin.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "weir/app/test/app_fixture.hpp"
#include "weir/app/http_server.hpp"
#include "weir/http/router/service_routes.hpp"
#include "weir/testing/http_answers.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"

namespace weir {
namespace {

struct Tick {
  int number = 0;
};

class AdminTest : public AppTest {
 protected:
  HttpAnswer ask(std::string_view path) {
    MemoryPeer peer(host_, inside_);
    peer.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n");
    host_.run_until_idle(*loop_);
    const auto answers = read_http_answers(peer.received());
    EXPECT_EQ(answers.size(), 1U);
    return answers.empty() ? HttpAnswer() : answers.front();
  }
  const os::Address inside_ = os::Address::loopback(9090);
  http::Router routes_;
  http::Router admin_;
};

TEST_F(AdminTest, ShowsTheAppInAllForms) {
  mount_admin(admin_, app_, {.title = "shop & co"});
  serve_http(app_, routes_, {.endpoint = os::Address::loopback(80)});
  serve_http(app_, admin_, {.endpoint = inside_});
  ASSERT_TRUE(start());
  const HttpAnswer page = ask("/weir/services");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.field("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(page.field("Content-Security-Policy"),
            "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'");
  EXPECT_EQ(page.field("Cache-Control"), "no-store");
  EXPECT_EQ(page.field("X-Content-Type-Options"), "nosniff");
  EXPECT_NE(page.body.find("<title>shop &amp; co: services</title>"), std::string::npos);
  EXPECT_NE(page.body.find("weir::Journal"), std::string::npos);
  EXPECT_EQ(page.body.find("style="), std::string::npos) << "the policy forbids it";
  const HttpAnswer json = ask("/weir/services.json");
  EXPECT_EQ(json.field("Content-Type"), "application/json");
  EXPECT_TRUE(json.body.starts_with("{\"services\":[{\"name\":\"weir::Journal\""));
  EXPECT_TRUE(json.body.ends_with("\"events\":[]}"));
  EXPECT_TRUE(ask("/weir/services.dot").body.starts_with("digraph services {"));
  EXPECT_TRUE(ask("/weir/services.txt").body.starts_with("weir::Journal: running"));
  EXPECT_EQ(ask("/weir/services.css").field("Content-Type"), "text/css; charset=utf-8");
  stop();
}

TEST_F(AdminTest, IsNowhereUnlessItIsMounted) {
  serve_http(app_, routes_, {.endpoint = inside_});
  ASSERT_TRUE(start());
  EXPECT_EQ(ask("/weir/services").status, 404);
  stop();
}

TEST_F(AdminTest, TellsTheRatesOfEvents) {
  EventBus bus(1);
  mount_admin(admin_, app_, {.events = &bus});
  serve_http(app_, admin_, {.endpoint = inside_});
  ASSERT_TRUE(start());
  EXPECT_NE(ask("/weir/services").body.find("<h2>Events</h2>"), std::string::npos);
  Events& events = bus.local(*loop_);
  for (int number = 0; number < 30; ++number) ASSERT_TRUE(events.publish(Tick{number}));
  host_.advance(*loop_, 3s);
  const std::string json = ask("/weir/services.json").body;
  EXPECT_NE(json.find("\"handled\":30,\"per_second\":10"), std::string::npos) << json;
  stop();
}

}  // namespace
}  // namespace weir
