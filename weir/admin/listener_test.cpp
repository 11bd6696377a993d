// Tests of the admin listener: its checks of requests, and its pages.
#include "weir/admin/listener.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/app/test/app_fixture.hpp"
#include "weir/http_testing/detail/http_answers.hpp"
#include "weir/json.hpp"
#include "weir/log/log_service.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"

namespace weir::listener_test {
namespace {

using namespace std::chrono_literals;

struct CoreRow {
  unsigned core = 0;
  double busy = 0;
  std::string state;
};
struct CoresJson {
  std::vector<CoreRow> cores;
};
constexpr json::ReadOptions lenient{.unknown_fields = json::UnknownFields::skip};

/// An app with an admin listener, and raw requests to it.
class AdminListenerTest : public AppTest {
 protected:
  void serve(AdminListenerOptions options = {}) {
    options.endpoint = at_;
    admin_.emplace(std::move(options));
    serve_admin(app_, *admin_);
  }
  void start_serving(AdminListenerOptions options = {}) {
    serve(std::move(options));
    ASSERT_TRUE(start());
  }
  void TearDown() override {
    stop();
    AppTest::TearDown();
  }

  sim::HttpResponse ask(const std::string& path, const std::string& headers = "Host: localhost\r\n",
                        const std::string& method = "GET", const std::string& body = "") {
    MemoryPeer peer(platform_, at_);
    peer.send(method + " " + path + " HTTP/1.1\r\n" + headers + "\r\n" + body);
    platform_.advance(*loop_, 1s);
    const auto answers = sim::parse_http_responses(peer.received());
    EXPECT_EQ(answers.size(), 1U) << path;
    return answers.empty() ? sim::HttpResponse() : answers.front();
  }
  int status_for_host(const std::string& host) {
    return ask("/weir/timers.txt", "Host: " + host + "\r\n").status;
  }
  int status_with(const std::string& path, const std::string& credentials) {
    return ask(path, "Host: [::1]:80\r\nAuthorization: " + credentials + "\r\n").status;
  }

  os::Address at_ = os::Address::loopback(9090);
  std::optional<AdminListener> admin_;
};

TEST(AdminListenerCheck, NeedsATokenWhereOtherMachinesReachIt) {
  std::string why;
  EXPECT_EQ(AdminListener({.endpoint = Endpoint::any(9090)}).check(&why).error(),
            Errc::bad_configuration);
  EXPECT_EQ(why,
            "other machines reach the admin pages at [::]:9090: set a token, or use a loopback "
            "address or a Unix socket");
  EXPECT_FALSE(AdminListener({.endpoint = *Endpoint::parse("10.0.0.1:1")}).check());
  EXPECT_FALSE(AdminListener({.endpoint = *Endpoint::parse("128.0.0.1:1")}).check());
  EXPECT_FALSE(AdminListener({.endpoint = *Endpoint::parse("[::2]:1")}).check());
  EXPECT_TRUE(AdminListener({.endpoint = Endpoint::any(9090), .token = "t"}).check());
  EXPECT_TRUE(AdminListener().check());
  EXPECT_TRUE(AdminListener({.endpoint = *Endpoint::parse("127.0.0.2:1")}).check());
  EXPECT_TRUE(AdminListener({.endpoint = *Endpoint::parse("[::1]:1")}).check());
  EXPECT_TRUE(AdminListener({.endpoint = *Endpoint::parse("unix:/run/admin.sock")}).check());
}

TEST_F(AdminListenerTest, ShowsEachPageInThreeFormats) {
  start_serving({.title = "shop <1>"});
  for (const std::string page : {"overview", "cores", "routes", "connections", "clients",
                                 "slow_turns", "pools", "memory", "timers", "tasks"}) {
    const sim::HttpResponse html = ask("/weir/" + page);
    ASSERT_EQ(html.status, 200) << page;
    EXPECT_EQ(html.header("Content-Type"), "text/html; charset=utf-8");
    EXPECT_EQ(html.header("Content-Security-Policy"),
              "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; "
              "frame-ancestors 'none'");
    EXPECT_EQ(html.header("Cache-Control"), "no-store");
    EXPECT_EQ(html.header("X-Content-Type-Options"), "nosniff");
    EXPECT_TRUE(html.body.contains("shop &lt;1&gt;")) << page;
    EXPECT_FALSE(html.body.contains("<script")) << page;
    EXPECT_TRUE(html.body.ends_with("</html>\n")) << page;
    const sim::HttpResponse as_json = ask("/weir/" + page + ".json");
    EXPECT_EQ(as_json.header("Content-Type"), "application/json");
    EXPECT_TRUE(as_json.body.starts_with("{\"page\":\"" + page + "\"")) << as_json.body;
    EXPECT_EQ(ask("/weir/" + page + ".txt").header("Content-Type"), "text/plain; charset=utf-8");
  }
  EXPECT_TRUE(ask("/metrics").body.contains("# TYPE weir_"));
  EXPECT_EQ(ask("/profile").status, 501) << "a platform in memory takes no profiles";
  EXPECT_EQ(ask("/weir/admin.css").header("Content-Type"), "text/css; charset=utf-8");
  EXPECT_EQ(ask("/").header("Location"), "/weir/overview");
  EXPECT_EQ(ask("/weir/services").status, 404) << "there is no app to show";
}

TEST_F(AdminListenerTest, ChoosesTheFormatByQueryOrAccept) {
  start_serving({.app = &app_});
  const std::string host = "Host: localhost\r\n";
  for (const std::string page : {"cores", "tasks", "services"}) {
    const std::string path = "/weir/" + page;
    EXPECT_EQ(ask(path + "?format=json").header("Content-Type"), "application/json") << page;
    EXPECT_EQ(ask(path + "?format=text").header("Content-Type"), "text/plain; charset=utf-8");
    EXPECT_EQ(ask(path, host + "Accept: application/json\r\n").header("Content-Type"),
              "application/json");
    EXPECT_EQ(ask(path, host + "Accept: text/html,*/*;q=0.8\r\n").header("Content-Type"),
              "text/html; charset=utf-8");
  }
  EXPECT_EQ(ask("/weir/cores").header("Vary"), "Accept");
  EXPECT_TRUE(ask("/weir/services").body.contains("<a href=\"overview\">"));
}

TEST_F(AdminListenerTest, ReportsTheCoreThatAnswers) {
  start_serving();
  const auto cores = json::read<CoresJson>(ask("/weir/cores.json").body, lenient);
  ASSERT_TRUE(cores.has_value());
  ASSERT_EQ(cores->cores.size(), 1U);
  EXPECT_EQ(cores->cores[0].state, "answers");
}

TEST_F(AdminListenerTest, RefusesOtherMethodsAndOtherOrigins) {
  start_serving();
  EXPECT_EQ(ask("/weir/cores", "Host: localhost\r\n", "POST").status, 405);
  EXPECT_EQ(ask("/weir/overview", "Host: localhost\r\n", "DELETE").status, 405);
  EXPECT_EQ(ask("/weir/cores", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", "POST").status,
            403);
  EXPECT_EQ(ask("/weir/nothing").status, 404);
  EXPECT_GE(ask("/weir/" + std::string(20'000, 'x')).status, 400);
}

// A page of the web could otherwise start a profile, by an image with this address.
TEST_F(AdminListenerTest, RefusesRequestsOfOtherPages) {
  start_serving();
  for (const std::string path :
       {"/profile?seconds=60&hz=999", "/weir/overview", "/metrics", "/livez", "/", "/none"}) {
    for (const std::string method : {"GET", "OPTIONS", "POST"}) {
      for (const std::string lines :
           {"Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n",
            "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n",
            "Origin: https://evil.example\r\n", "Origin: null\r\n",
            "Origin: http://evil.example\r\nReferer: http://localhost/\r\n"}) {
        const sim::HttpResponse refused = ask(path, "Host: localhost\r\n" + lines, method);
        EXPECT_EQ(refused.status, 403) << method << path << lines;
        EXPECT_EQ(refused.header("Cross-Origin-Resource-Policy"), "same-origin");
      }
    }
  }
  for (const std::string site : {"same-origin", "none"}) {
    const sim::HttpResponse page =
        ask("/weir/timers.txt", "Host: localhost\r\nSec-Fetch-Site: " + site + "\r\n");
    EXPECT_EQ(page.status, 200) << site;
    EXPECT_EQ(page.header("Cross-Origin-Resource-Policy"), "same-origin");
  }
}

// Over plain HTTP, browsers send Sec-Fetch-Site only to localhost, 127.0.0.0/8 and [::1].
TEST_F(AdminListenerTest, RefusesImagesOfOtherPagesThatDoNotSaySo) {
  start_serving();
  const std::string profile = "/profile?seconds=2&hz=999";
  for (const std::string host :
       {"0.0.0.0:9090", "[::]:9090", "[::ffff:127.0.0.1]:9090", "[::ffff:7f00:1]", "10.1.2.3"}) {
    EXPECT_EQ(ask(profile, "Host: " + host + "\r\n").status, 421) << host;
    EXPECT_EQ(ask("/weir/cores", "Host: " + host + "\r\n").status, 421) << host;
  }
  EXPECT_EQ(ask(profile, "Host: localhost\r\nReferer: http://evil.example/\r\n").status, 403);
  EXPECT_EQ(ask(profile, "Host: localhost\r\nReferer: http://localhost/weir/cores\r\n").status, 501)
      << "a platform in memory takes no profiles";
}

TEST_F(AdminListenerTest, StartsAProfileOfAnotherMachineOverPlainHttpByBearerOnly) {
  at_ = *os::Address::parse("10.1.2.3:9090");
  start_serving({.token = "s3cret"});
  const std::string host = "Host: 10.1.2.3:9090\r\n";
  const std::string basic = host + "Authorization: Basic YWRtaW46czNjcmV0\r\n";  // admin:s3cret
  EXPECT_EQ(ask("/weir/cores", basic).status, 200);
  const sim::HttpResponse refused = ask("/profile", basic);
  EXPECT_EQ(refused.status, 401);
  EXPECT_TRUE(refused.header("WWW-Authenticate").starts_with("Bearer"));
  EXPECT_EQ(ask("/%70rofile?seconds=60", basic).status, 401);
  EXPECT_EQ(ask("/profile", host + "Authorization: Bearer s3cret\r\n").status, 501)
      << "a platform in memory takes no profiles";
  EXPECT_EQ(ask("/weir/cores", "Host: 0.0.0.0:9090\r\n").status, 421);
}

TEST_F(AdminListenerTest, RefusesRequestsOfOtherPagesBeforeItAsksForTheToken) {
  start_serving({.token = "s3cret"});
  const sim::HttpResponse refused =
      ask("/weir/cores", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.header("WWW-Authenticate"), "");
}

TEST_F(AdminListenerTest, RefusesNamesOfOtherHosts) {
  start_serving({.hosts = {"admin.example.org"}});
  EXPECT_EQ(status_for_host("evil.example"), 421);
  EXPECT_EQ(status_for_host("127.0.0.1.evil.example"), 421);
  EXPECT_EQ(status_for_host("localhost.evil.example:9090"), 421);
  EXPECT_EQ(status_for_host("unix:80"), 421) << "this is a name with a port, not a path";
  EXPECT_EQ(status_for_host("unix"), 421);
  EXPECT_EQ(status_for_host("localhost:9090"), 200);
  EXPECT_EQ(status_for_host("127.0.0.1:9090"), 200);
  EXPECT_EQ(status_for_host("[::1]"), 200);
  EXPECT_EQ(status_for_host("127.8.0.1"), 200) << "rebinding needs a name";
  EXPECT_EQ(status_for_host("admin.example.org"), 200);
  const sim::HttpResponse refused = ask("/", "Host: evil.example\r\n");
  EXPECT_TRUE(refused.header("Content-Security-Policy").starts_with("default-src 'none'"));
}

TEST_F(AdminListenerTest, AsksForTheToken) {
  serve({.token = "s3cret"});
  admin_->router().get("/own", [] { return http::text("1\n"); });
  ASSERT_TRUE(start());
  const sim::HttpResponse without = ask("/weir/cores");
  EXPECT_EQ(without.status, 401);
  EXPECT_TRUE(without.header("WWW-Authenticate").starts_with("Basic realm=\"admin\""));
  EXPECT_FALSE(without.body.contains("core"));
  EXPECT_EQ(status_with("/weir/cores", "Bearer s3cret"), 200);
  EXPECT_EQ(status_with("/weir/cores", "Bearer s3cre"), 401);
  EXPECT_EQ(status_with("/weir/cores", "Bearer s3cret1"), 401);
  EXPECT_EQ(status_with("/weir/cores", "Bearer "), 401);
  EXPECT_EQ(status_with("/weir/cores", "Basic YWRtaW46czNjcmV0"), 200) << "admin:s3cret";
  EXPECT_EQ(status_with("/weir/cores", "Basic YWRtaW46d3Jvbmc="), 401) << "admin:wrong";
  EXPECT_EQ(status_with("/own", "Bearer s3cret"), 200);
  EXPECT_EQ(status_with("/own", "Bearer other"), 401) << "routes of the program are protected";
  EXPECT_EQ(status_with("/metrics", "Bearer other"), 401);
  EXPECT_EQ(status_with("/livez", "Bearer other"), 200) << "probes have no token";
  EXPECT_EQ(status_with("/readyz", "Bearer other"), 200);
  EXPECT_EQ(status_with("/readyz?verbose", "Bearer other"), 401);
}

TEST_F(AdminListenerTest, ShowsTheConfigurationThatItIsGiven) {
  start_serving({.configuration = [] {
    return std::vector<config::ShownValue>{{"store.<b>", "1", "shop.toml:3"}};
  }});
  EXPECT_TRUE(ask("/weir/configuration").body.contains("store.&lt;b&gt;"));
  EXPECT_TRUE(ask("/weir/configuration.json")
                  .body.contains(R"({"key":"store.<b>","value":"1","origin":"shop.toml:3"})"));
}

TEST_F(AdminListenerTest, SetsALogLevelByPostOnly) {
  LogService logs(platform_);
  static_cast<void>(logs.logger("shop"));
  start_serving({.logs = &logs});
  const auto post = [&](const std::string& body, const std::string& headers) {
    return ask("/weir/log_levels",
               headers + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: " +
                   std::to_string(body.size()) + "\r\n",
               "POST", body);
  };
  const std::string own = "Host: localhost\r\nSec-Fetch-Site: same-origin\r\n";
  EXPECT_TRUE(ask("/weir/log_levels").body.contains("<form method=\"post\""));
  EXPECT_EQ(ask("/weir/log_levels?name=shop&level=trace").status, 200);
  EXPECT_EQ(logs.level("shop"), LogLevel::info) << "a GET changes nothing";
  EXPECT_EQ(post("name=shop&level=debug", own).header("Location"), "/weir/log_levels");
  EXPECT_EQ(logs.level("shop"), LogLevel::debug);
  EXPECT_EQ(
      post("name=shop&level=trace", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n").status,
      403);
  EXPECT_EQ(
      post("name=shop&level=trace", "Host: localhost\r\nOrigin: http://evil.example\r\n").status,
      403);
  EXPECT_EQ(post("name=nobody&level=trace", own).status, 404);
  EXPECT_GE(post("name=shop&level=loud", own).status, 400);
  EXPECT_EQ(logs.level("shop"), LogLevel::debug);
  EXPECT_EQ(post("name=&level=error", own).status, 303);
  EXPECT_EQ(logs.level("other"), LogLevel::error);
}

TEST_F(AdminListenerTest, DoesNotStartWithoutAToken) {
  AdminListener open({.endpoint = os::Address::any(9091)});
  serve_admin(app_, open);
  EXPECT_EQ(start().error(), Errc::bad_configuration);
}

/// Starts when the test allows it.
struct SlowStore {
  Task<Result<>> start() {
    std::ignore = co_await sleep(1h);
    co_return {};
  }
};

/// Starts the app, and sends requests after a second.
class AdminHealthTest : public AdminListenerTest {
 protected:
  Task<Result<>> start_and_look(std::optional<MemoryPeer>& ready,
                                std::optional<MemoryPeer>& started) {
    const auto look = [&](Scope& scope) -> Task<Result<>> {
      scope.spawn(send_later(ready, started));
      co_return co_await app_.start();
    };
    co_return co_await with_scope(OnFailure::isolate, look);
  }
  Task<> send_later(std::optional<MemoryPeer>& ready, std::optional<MemoryPeer>& started) {
    std::ignore = co_await sleep(1s);
    ready.emplace(platform_, at_);
    started.emplace(platform_, at_);
    ready->send("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    started->send("GET /startupz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    std::ignore = co_await sleep(1s);
  }
};

TEST_F(AdminHealthTest, HasTheHealthOfTheServicesWhileTheyStart) {
  serve({.app = &app_});
  app_.per_core<SlowStore>();
  admin_->health().add_check("disk", []() -> Result<> { return {}; });
  // The peers are answered while the start waits.
  std::optional<MemoryPeer> ready;
  std::optional<MemoryPeer> started;
  EXPECT_TRUE(run(start_and_look(ready, started)));
  const std::string answer(ready->received());
  EXPECT_TRUE(answer.contains(" 503 ")) << answer;
  EXPECT_TRUE(answer.contains("SlowStore")) << answer;
  EXPECT_FALSE(answer.contains("disk")) << answer;
  const std::string starting(started->received());
  EXPECT_TRUE(starting.contains(R"({"status":"starting")")) << starting;
  EXPECT_EQ(ask("/readyz").body, R"({"status":"ok"})");
  EXPECT_EQ(ask("/startupz").body, R"({"status":"ok"})");
  EXPECT_TRUE(ask("/weir/services").body.contains("SlowStore"));
}

}  // namespace
}  // namespace weir::listener_test
