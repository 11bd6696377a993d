// Tests of the admin listener with hostile requests and with clients that do not read.
#include <gtest/gtest.h>
#include <malloc.h>

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/admin/listener.hpp"
#include "weir/app/http_server.hpp"
#include "weir/app/test/app_fixture.hpp"
#include "weir/http.hpp"
#include "weir/http/test/heap_fixture.hpp"
#include "weir/http_testing/detail/http_answers.hpp"
#include "weir/http_testing/detail/http_attacks.hpp"
#include "weir/log/log_service.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"

namespace weir::hostile_input_test {
namespace {

using namespace std::chrono_literals;

std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  while (count-- > 0) all += text;
  return all;
}

class AdminHostileTest : public AppTest {
 protected:
  void serve(AdminListenerOptions options = {}) {
    options.endpoint = at_;
    options.logs = &logs_;
    static_cast<void>(logs_.logger("shop"));
    admin_.emplace(std::move(options));
    serve_admin(app_, *admin_);
    router_.get("/", [] { return http::text("service\n"); });
    http::ServeOptions serving;
    serving.endpoint = service_;
    serve_http(app_, router_, serving);
    ASSERT_TRUE(start());
  }
  void TearDown() override {
    EXPECT_EQ(logs_.level("shop"), LogLevel::info) << "a hostile request has changed it";
    expect_answers();
    peers_.clear();
    stop();
    AppTest::TearDown();
  }

  MemoryPeer& connect() { return peers_.emplace_back(platform_, at_); }
  void pass(Duration length) { platform_.advance(*loop_, length); }
  /// Returns the statuses of the answers to `bytes`, such as "200 404-".
  std::string statuses(std::string_view bytes) {
    MemoryPeer peer(platform_, at_);
    std::string answers;
    while (!bytes.empty()) {
      const std::size_t sent = peer.send(bytes);
      bytes.remove_prefix(sent);
      pass(10ms);
      answers = peer.received();
      if (sent == 0) break;
    }
    for (int round = 0; round < 20; ++round) {
      pass(50ms);
      answers = peer.received();
    }
    EXPECT_FALSE(answers.contains("hunter2")) << "a token is never sent back";
    return sim::statuses_of(sim::parse_http_responses(answers));
  }
  std::string status_of_get(std::string_view target, std::string_view headers = {}) {
    return statuses("GET " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n" +
                    std::string(headers) + "\r\n");
  }
  std::string post_level(std::string_view body, std::string_view headers = own_page) {
    return statuses("POST /weir/log_levels HTTP/1.1\r\nHost: localhost\r\n" + std::string(headers) +
                    "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
  }
  std::string answer_of(const Endpoint& server, std::string_view path) {
    MemoryPeer peer(platform_, server);
    peer.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    pass(1s);
    return peer.received();
  }
  void expect_answers() {
    EXPECT_TRUE(answer_of(at_, "/livez").starts_with("HTTP/1.1 200 "));
    EXPECT_TRUE(answer_of(service_, "/").starts_with("HTTP/1.1 200 "));
  }

  static constexpr std::string_view own_page = "Sec-Fetch-Site: same-origin\r\n";
  const Endpoint at_ = Endpoint::loopback(9090);
  const Endpoint service_ = Endpoint::loopback(80);
  LogService logs_{platform_};
  http::Router router_;
  std::optional<AdminListener> admin_;
  std::deque<MemoryPeer> peers_;
};

TEST_F(AdminHostileTest, RefusesOversizedHeads) {
  serve();
  EXPECT_EQ(status_of_get("/livez", "X: " + std::string(20'000, 'x') + "\r\n"), "431");
  EXPECT_EQ(status_of_get("/livez", repeated("X: y\r\n", 5000)), "431");
  EXPECT_EQ(status_of_get("/" + std::string(9000, 'x')), "414");
  EXPECT_EQ(status_of_get("/weir/cores?" + std::string(9000, 'q')), "414");
  EXPECT_EQ(status_of_get("/weir/cores?" + std::string(7000, 'q')), "200");
  EXPECT_EQ(status_of_get("/weir/cores?" + repeated("a=1&", 1500)), "200");
  EXPECT_EQ(status_of_get("/readyz?" + repeated("verbose&", 800)), "200");
}

TEST_F(AdminHostileTest, RefusesBadHosts) {
  serve();
  for (const std::string_view host :
       {"evil.example", "localhost.evil.example", "evil.example:9090", "localhost@evil.example",
        "127.0.0.1.evil.example", "2130706433", "0x7f000001", "127.1", "localhost:9090:80", "[::1",
        "localhost evil.example", "localhost,evil.example", "%6cocalhost", ""}) {
    const std::string status =
        statuses("GET /weir/cores HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n");
    EXPECT_TRUE(status == "400" || status == "421") << host << ": " << status;
  }
  EXPECT_EQ(statuses("GET /weir/cores HTTP/1.1\r\n\r\n"), "400");
  EXPECT_EQ(statuses("GET /weir/cores HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"),
            "400");
  EXPECT_EQ(statuses("GET http://evil.example/weir/cores HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            "421")
      << "the target counts";
}

TEST_F(AdminHostileTest, RefusesBadMethods) {
  serve();
  for (const std::string_view method :
       {"PUT", "DELETE", "PATCH", "POST", "TRACE", "BREW", "get", "PROPFIND"}) {
    for (const std::string_view path :
         {"/weir/cores", "/livez", "/metrics", "/weir/overview.json"}) {
      const std::string status = statuses(std::string(method) + " " + std::string(path) +
                                          " HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: "
                                          "same-origin\r\nContent-Length: 0\r\n\r\n");
      EXPECT_TRUE(status == "405" || status == "501") << method << path << ": " << status;
    }
  }
  EXPECT_NE(statuses("CONNECT localhost:22 HTTP/1.1\r\nHost: localhost:22\r\n\r\n").substr(0, 1),
            "2");
  EXPECT_EQ(statuses("G\x01T / HTTP/1.1\r\nHost: localhost\r\n\r\n"), "400");
}

TEST_F(AdminHostileTest, AnswersPipelinedGarbageOnce) {
  serve();
  const std::string good = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_EQ(statuses(good + good + "\x01\x02garbage\r\n\r\n" + good), "200 200 400");
  EXPECT_EQ(statuses(good + "GET /livez HTTP/9.9\r\n\r\n" + good), "200 505");
  EXPECT_EQ(statuses(repeated(good, 500)), repeated("200 ", 499) + "200");
  EXPECT_EQ(statuses("GET /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
                     "Content-Length: 5\r\n\r\n0\r\n\r\n" +
                     good),
            "400")
      << "request smuggling";
  EXPECT_EQ(statuses("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").substr(0, 1), "5")
      << "plain HTTP/2 is not offered";
  EXPECT_NE(statuses(std::string("\x16\x03\x01\x02\0\x01\0\x01\xfc", 9) + "\r\n\r\n"), "200");
}

TEST_F(AdminHostileTest, HasNoPathsBeyondItsRoutes) {
  serve();
  for (const std::string_view path :
       {"/../etc/passwd", "/weir/../../etc/passwd", "/weir/..%2f..%2fetc%2fpasswd",
        "/weir/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/weir/cores.json/../../x",
        "/weir/cores%00.json", "/weir/cores.json%0d%0aX:y", "/weir/..\\..\\etc", "/profile/../x",
        "/weir/%", "/weir/%zz", "/weir/%c0%ae", "/weir/cores;x=y", "/WEIR/CORES"}) {
    const std::string answer = answer_of(at_, path);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 404 ") || answer.starts_with("HTTP/1.1 400 "))
        << path << ": " << answer.substr(0, 60);
    EXPECT_FALSE(answer.contains("root:")) << path;
    EXPECT_FALSE(answer.contains("\r\nX:y")) << path;
  }
}

TEST_F(AdminHostileTest, RefusesWrongTokens) {
  serve({.token = "hunter2-of-an-operator"});
  for (const std::string_view credentials :
       {"Bearer hunter2", "Bearer hunter2-of-an-operatoR", "Bearer hunter2-of-an-operator-1",
        "Bearer", "Bearer ", "Bearer  ", "Basic", "Basic !!!!",
        "Basic aHVudGVyMg==", "Basic YWRtaW46aHVudGVyMg==", "Digest username=admin", "bearer x",
        "hunter2-of-an-operator", "Negotiate hunter2-of-an-operator"}) {
    for (const std::string_view path :
         {"/weir/cores", "/metrics", "/profile", "/weir/log_levels", "/weir/none", "/",
          "/readyz?verbose", "/weir/admin.css", "/livez/", "//livez"}) {
      EXPECT_EQ(status_of_get(path, "Authorization: " + std::string(credentials) + "\r\n"), "401")
          << credentials << path;
    }
  }
  EXPECT_EQ(post_level("name=shop&level=trace"), "401");
  EXPECT_EQ(status_of_get("/livez/../weir/cores"), "400");
  const std::string twice =
      "Authorization: Bearer x\r\nAuthorization: Bearer hunter2-of-an-operator\r\n";
  EXPECT_NE(status_of_get("/weir/cores", twice), "200");
  EXPECT_EQ(status_of_get("/weir/cores", "Authorization: Bearer hunter2-of-an-operator\r\n"),
            "200");
  EXPECT_EQ(status_of_get("/weir/cores?token=hunter2-of-an-operator"), "401");
  EXPECT_EQ(status_of_get("/livez"), "200");
}

TEST_F(AdminHostileTest, ChangesNothingByGetOrHead) {
  serve();
  for (const std::string_view method : {"GET", "HEAD", "OPTIONS"}) {
    for (const std::string_view path :
         {"/weir/log_levels?name=shop&level=trace",
          "/weir/log_levels?level=trace&name=", "/weir/log_levels.json?name=shop&level=trace"}) {
      std::ignore = statuses(std::string(method) + " " + std::string(path) +
                             " HTTP/1.1\r\nHost: localhost\r\n\r\n");
      EXPECT_EQ(logs_.level("shop"), LogLevel::info) << method << path;
    }
  }
  const std::string body = "name=shop&level=trace";
  std::ignore = status_of_get("/weir/log_levels",
                              "Content-Type: application/x-www-form-urlencoded\r\n"
                              "Content-Length: " +
                                  std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_EQ(logs_.level("shop"), LogLevel::info) << "a GET with a body";
  std::ignore = status_of_get("/weir/log_levels", "X-HTTP-Method-Override: POST\r\n");
  EXPECT_EQ(logs_.level("shop"), LogLevel::info);
}

TEST_F(AdminHostileTest, RefusesBadForms) {
  serve();
  for (const std::string_view body :
       {"", "name=shop", "level=trace", "name=shop&level=", "name=shop&level=trace%", "%=%",
        "name=%zz&level=trace", "name=nobody&level=trace", "name=%00&level=trace",
        "{\"name\":\"shop\",\"level\":\"trace\"}"}) {
    EXPECT_EQ(post_level(body).substr(0, 1), "4") << body;
  }
  EXPECT_EQ(post_level("name=" + std::string(10'000, 'n') + "&level=trace").substr(0, 1), "4");
  EXPECT_EQ(post_level(std::string(20'000, 'x')).substr(0, 3), "413");
  for (const std::string_view foreign :
       {"Origin: http://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n", "Origin: null\r\n",
        "Sec-Fetch-Site: same-site\r\n"}) {
    EXPECT_EQ(post_level("name=shop&level=trace", foreign), "403") << foreign;
  }
}

TEST_F(AdminHostileTest, ManyPostsAddNoLoggers) {
  serve();
  const std::size_t before = logs_.levels().size();
  for (int number = 0; number < 300; ++number) {
    EXPECT_EQ(post_level("name=new" + std::to_string(number) + "&level=trace"), "404");
  }
  for (int number = 0; number < 300; ++number) {
    EXPECT_EQ(post_level(number % 2 == 0 ? "name=shop&level=debug" : "name=shop&level=info"),
              "303");
  }
  EXPECT_EQ(logs_.levels().size(), before);
}

TEST_F(AdminHostileTest, SurvivesTheAttacksOnServers) {
  serve();
  for (const sim::HttpAttack& attack : sim::http_attacks()) {
    MemoryPeer& peer = connect();
    peer.send(attack.initial_data);
    if (attack.end_action == sim::HttpAttack::EndAction::half_close) peer.finish();
    if (attack.end_action == sim::HttpAttack::EndAction::reset) peer.reset();
    for (int round = 0; round < 40 && peer.connected(); ++round) {
      if (!attack.repeated_data.empty() && round < 20) peer.send(attack.repeated_data);
      if (attack.read_size != 0) peer.read(attack.read_size);
      pass(1s);
    }
    peers_.clear();
    expect_answers();
  }
}

/// Returns the bytes of the heap in use.
std::size_t heap_bytes(Loop& loop) {
  loop.blocks().collect();
  if (const std::size_t counted = allocated_bytes(); counted != 0) return counted;
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

TEST_F(AdminHostileTest, ClosesClientsThatDoNotRead) {
  AdminListenerOptions options;
  options.connections_max = 16;
  for (int number = 0; number < 4000; ++number) {
    static_cast<void>(logs_.logger("logger." + std::to_string(number)));
  }
  serve(std::move(options));
  std::ignore = answer_of(at_, "/weir/log_levels");
  pass(20s);
  const std::size_t before = heap_bytes(*loop_);
  const std::string request = "GET /weir/log_levels HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (int number = 0; number < 15; ++number) connect().send(repeated(request, 100));
  pass(1s);
  const std::size_t held = heap_bytes(*loop_) - before;
  EXPECT_GT(held, 1'000'000U) << "the pages are longer than the buffers of the connections";
  EXPECT_LT(held, admin_->memory_bound(1).in_use());
  expect_answers();  // one connection is left
  for (MemoryPeer& each : peers_) EXPECT_TRUE(each.connected());
  pass(10s);
  for (MemoryPeer& each : peers_) {
    EXPECT_LT(each.received().size(), 20'000'000U);
    EXPECT_TRUE(each.ended() || each.was_reset());
  }
  peers_.clear();
  pass(20s);
  EXPECT_LT(heap_bytes(*loop_), before + 1'000'000);
}

TEST_F(AdminHostileTest, ClosesClientsThatReadVerySlowly) {
  for (int number = 0; number < 4000; ++number) {
    static_cast<void>(logs_.logger("logger." + std::to_string(number)));
  }
  serve();
  MemoryPeer& peer = connect();
  peer.send("GET /weir/log_levels HTTP/1.1\r\nHost: localhost\r\n\r\n");
  for (int round = 0; round < 300; ++round) {
    peer.read(100);
    pass(100ms);
  }
  EXPECT_FALSE(peer.received().contains("</html>"));
  EXPECT_TRUE(peer.ended() || peer.was_reset());
}

}  // namespace
}  // namespace weir::hostile_input_test
