// Tests of the access log.
#include "weir/web/middleware/access_log.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/text/detail/printable.hpp"
#include "weir/http/test/h2_connection_fixture.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/log/test/log_fixture.hpp"
#include "weir/task/sleep.hpp"
#include "weir/web/auth/basic_auth.hpp"
#include "weir/web/middleware/request_id.hpp"
#include "weir/web/middleware/trusted_proxies.hpp"
#include "weir/web/test/ask.hpp"

namespace weir::http::access_log_test {
namespace {

AccessRecord example() {
  AccessRecord record;
  record.time = WallTime(std::chrono::seconds(784111777));
  record.duration = 1500us;
  record.peer = "192.0.2.1";
  record.method = "GET";
  record.target = "/notes/7?full=1";
  record.version = "HTTP/1.1";
  record.route = "/notes/{id}";
  record.status = 200;
  record.bytes = 42;
  record.complete = true;
  return record;
}

TEST(AccessLog, WritesTheCommonFormats) {
  AccessRecord record = example();
  EXPECT_EQ(access_line(record, AccessLogFormat::common),
            "192.0.2.1 - - [06/Nov/1994:08:49:37 +0000] \"GET /notes/7?full=1 HTTP/1.1\" 200 42");
  record.bytes = 0;
  record.user_agent = "curl/8";
  EXPECT_EQ(access_line(record, AccessLogFormat::combined),
            "192.0.2.1 - - [06/Nov/1994:08:49:37 +0000] \"GET /notes/7?full=1 HTTP/1.1\" 200 - "
            "\"-\" \"curl/8\"");
  record.user = "ann \"lee\" ";
  EXPECT_TRUE(access_line(record, AccessLogFormat::common)
                  .starts_with("192.0.2.1 - ann\\x20\\x22lee\\x22\\x20 [06/Nov/1994"));
  EXPECT_TRUE(access_line(record, AccessLogFormat::json)
                  .contains(R"("peer":"192.0.2.1","user":"ann \"lee\" ","method")"));
}

TEST(AccessLog, NamesTheUserOfALogin) {
  std::vector<std::string> lines;
  const auto keep = [&](std::string_view line) { lines.emplace_back(line); };
  Router router;
  router.use(access_log(keep, {.format = AccessLogFormat::common}));
  auto group = router.group<AuthenticatedUser>(
      "/admin", basic_auth({.users = {{.name = "ann", .password = "secret"}}}));
  group.get("/name", [](const AuthenticatedUser& user) { return text(user.name); });
  TestClient client(std::move(router));
  // "ann:secret" in base64.
  ask(client, Method::get, "/admin/name", {{"Authorization", "Basic YW5uOnNlY3JldA=="}});
  ask(client, Method::get, "/admin/name");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(lines[0].contains(" - ann [")) << lines[0];
  EXPECT_TRUE(lines[1].contains(" - - [")) << lines[1];
}

// A client may bind its end of a Unix connection to any abstract name.
TEST(AccessLog, ThePeerIsOneField) {
  AccessRecord record = example();
  record.peer =
      "unix:@x - admin [29/Nov/2026:16:00:00 +0000] \"POST / HTTP/1.1\" 200 5 \xc2\x9b\xff\n";
  const std::string line = access_line(record, AccessLogFormat::common);
  EXPECT_TRUE(line.starts_with(
      R"(unix:@x\x20-\x20admin\x20[29/Nov/2026:16:00:00\x20+0000]\x20\x22POST\x20/\x20)"
      R"(HTTP/1.1\x22\x20200\x205\x20\xc2\x9b\xff\x0a - - [06/Nov/1994)"))
      << line;
  record.peer.clear();
  EXPECT_TRUE(access_line(record, AccessLogFormat::combined).starts_with("- - - [06/Nov/1994"));
}

TEST(AccessLog, LinesArePrintable) {
  AccessRecord record = example();
  record.peer = "unix:@\xe2\x80\xae\x1b";
  record.user = "\xc2\x85";
  record.user_agent = "a\xc2\x9b\xe2\x80\xae\xe2\x81\xa6\x7f\n\x1b";
  record.target = "/caf\xc3\xa9\xe2\x80\xa8";
  for (const AccessLogFormat format :
       {AccessLogFormat::common, AccessLogFormat::combined, AccessLogFormat::json}) {
    const std::string line = access_line(record, format);
    EXPECT_EQ(printable_prefix(line), line.size()) << line;
  }
  const std::string line = access_line(record, AccessLogFormat::json);
  EXPECT_TRUE(line.contains(R"("user_agent":"a\u009b\u202e\u2066\u007f\n\u001b")")) << line;
  EXPECT_TRUE(line.contains("\"target\":\"/caf\xc3\xa9\\u2028\"")) << line;
}

TEST(AccessLog, WritesJson) {
  AccessRecord record = example();
  EXPECT_EQ(access_line(record, AccessLogFormat::json),
            R"({"time":"1994-11-06T08:49:37.000000Z","peer":"192.0.2.1","method":"GET",)"
            R"("target":"/notes/7?full=1","version":"HTTP/1.1","route":"/notes/{id}",)"
            R"("status":200,"bytes":42,"duration":0.0015})");
  record.route = "";
  record.id = "k-1";
  record.referer = "https://a.test/";
  record.user_agent = "curl/8";
  record.complete = false;
  const std::string line = access_line(record, AccessLogFormat::json);
  EXPECT_TRUE(line.ends_with(R"("id":"k-1","referer":"https://a.test/","user_agent":"curl/8",)"
                             R"("cut":true})"))
      << line;
  EXPECT_FALSE(line.contains("route"));
}

TEST(AccessLog, NoByteEndsALineOrAField) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  AccessRecord record = example();
  record.method = record.target = record.user_agent = record.referer = all;
  for (const auto format :
       {AccessLogFormat::common, AccessLogFormat::combined, AccessLogFormat::json}) {
    const std::string line = access_line(record, format);
    for (const char each : line) {
      const auto byte = static_cast<unsigned char>(each);
      EXPECT_GE(byte, 0x20);
      EXPECT_TRUE(byte < 0x7f || format == AccessLogFormat::json);
    }
  }
  record.target = "/\" 200 1 \"a\\";
  EXPECT_TRUE(access_line(record, AccessLogFormat::common).contains(R"(/\x22 200 1 \x22a\x5c)"));
}

Task<Result<>> write_slowly(BodySink& sink) {
  WEIR_CO_TRY(co_await sink.write("12345"));
  WEIR_CO_TRY(co_await sleep(1s));
  co_return co_await sink.write("67890");
}
Task<Result<>> write_and_fail(BodySink& sink) {
  WEIR_CO_TRY(co_await sink.write("123"));
  co_return fail(Errc::not_found);
}
Task<Response> answer_slowly() {
  std::ignore = co_await sleep(2s);
  co_return text("slow");
}

/// A service whose lines are "GET /target route status bytes seconds".
class AccessLogTest : public testing::Test {
 protected:
  Router routes(AccessLogOptions options = {}) {
    Router router;
    router.use<ClientAddress>(trusted_proxies({.proxies = {"0.0.0.0/0", "::/0"}}));
    router.use(AccessLog(
        [this](const AccessRecord& record) {
          std::string line(record.method);
          line.append(" ").append(record.target).append(" ").append(record.route);
          line.append(" ").append(std::to_string(record.status));
          line.append(" ").append(std::to_string(record.bytes));
          const auto seconds = std::chrono::floor<std::chrono::seconds>(record.duration);
          line.append(" ").append(std::to_string(seconds.count()));
          lines_.push_back(line + (record.complete ? "" : " cut"));
          last_ = record.peer + " " + record.id;
        },
        std::move(options)));
    router.use(request_id());
    router.get("/text/{x}", [](std::string_view x) { return text(x); });
    router.get("/slow", answer_slowly);
    router.get("/late", answer_slowly, {.timeout = 1s});
    router.get("/stream", [] { return stream("a/b", write_slowly); });
    router.get("/broken", [] { return stream("a/b", write_and_fail); });
    router.get("/throw", []() -> Response { throw std::runtime_error("thrown"); });
    return router;
  }
  std::string last_line() const { return lines_.empty() ? "" : lines_.back(); }

  std::vector<std::string> lines_;
  std::string last_;
};

TEST_F(AccessLogTest, HasALineForEachRequest) {
  TestClient client(routes());
  client.get("/text/word?q=1");
  EXPECT_EQ(last_line(), "GET /text/word?q=1 /text/{x} 200 4 0");
  client.head("/text/word");
  EXPECT_EQ(last_line(), "HEAD /text/word /text/{x} 200 0 0");
  client.get("/slow");
  EXPECT_EQ(last_line(), "GET /slow /slow 200 4 2");
  client.get("/stream");
  EXPECT_EQ(last_line(), "GET /stream /stream 200 10 1");
  EXPECT_EQ(client.get("/none").status(), 404);
  EXPECT_TRUE(last_line().starts_with("GET /none  404 ")) << last_line();
  client.post("/slow", 1);
  EXPECT_TRUE(last_line().starts_with("POST /slow  405 ")) << last_line();
  client.get("/late");
  EXPECT_TRUE(last_line().starts_with("GET /late /late 503 ")) << last_line();
  client.get("/throw");
  EXPECT_TRUE(last_line().starts_with("GET /throw /throw 500 ")) << last_line();
  EXPECT_THROW(client.get("/broken"), std::runtime_error);
  EXPECT_EQ(last_line(), "GET /broken /broken 200 3 0 cut");
  EXPECT_EQ(lines_.size(), 9U);
}

TEST_F(AccessLogTest, NamesTheClientAndTheRequest) {
  TestClient client(routes());
  const auto answer =
      ask(client, Method::get, "/text/a", {{"X-Forwarded-For", "[2001:db8::1]:80"}});
  EXPECT_EQ(last_, "2001:db8::1 " + std::string(header_of(answer, "X-Request-Id")));
  ask(client, Method::get, "/text/a", {{"X-Forwarded-For", "192.0.2.1"}});
  EXPECT_TRUE(last_.starts_with("192.0.2.1 "));
  ask(client, Method::get, "/text/a", {{"X-Forwarded-For", "::ffff:192.0.2.2"}});
  EXPECT_TRUE(last_.starts_with("192.0.2.2 "));
}

TEST_F(AccessLogTest, LeavesOutWhatTheFilterRejects) {
  const auto only_errors = [](const Request&, const SentResponse& sent) {
    return sent.status >= Status::bad_request;
  };
  TestClient client(routes({.filter = only_errors}));
  client.get("/text/a");
  client.get("/none");
  EXPECT_EQ(lines_.size(), 1U);
}

class AccessLogOfALogger : public HttpTest {
 protected:
  StoredLog stored_;
  LogService logs_{platform_, LogOptions(), one_sink<MemorySink>(stored_)};
};

TEST_F(AccessLogOfALogger, NoTextOfTheClientReplacesTheFacts) {
  routes_.use(access_log(logs_.logger("http")));
  routes_.get("/login", [] { return text("hi"); });
  serve();
  const std::string user_agent(4'000, 'u');
  const std::string target = "/login?" + std::string(6'000, 'a');
  talk(connect(),
       "GET " + target + " HTTP/1.1\r\nHost: a\r\nUser-Agent: " + user_agent + "\r\n\r\n");
  logs_.flush();
  ASSERT_EQ(stored_.records.size(), 1U);
  const std::string& record = stored_.records[0].text;
  for (const std::string_view fact : {" status=200 ", " bytes=2 ", " duration=", " complete=true ",
                                      " route=/login ", " peer=127.0.0.1 ", " method=GET ",
                                      " user_agent=uuu", " target=/login?aaa", " truncated=true"}) {
    EXPECT_TRUE(record.contains(fact)) << fact << " in " << record.substr(0, 400);
  }
}

class AccessLogOfResets : public H2ConnectionFixture, public testing::Test {};

TEST_F(AccessLogOfResets, NamesAClientThatHasReset) {
  std::vector<std::string> peers;
  routes_.use(AccessLog([&](const AccessRecord& record) { peers.push_back(record.peer); }, {}));
  routes_.get("/slow", answer_slowly);
  begin();
  answer(frames::get(1, "/slow"));
  peer_->reset();
  MemoryPeer& other = connect();
  talk(other, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
  other.reset();
  pass(3s);
  EXPECT_EQ(peers, (std::vector<std::string>{"127.0.0.1", "127.0.0.1"}));
}

TEST(AccessLog, PassesLinesToAFunction) {
  std::vector<std::string> lines;
  Router router;
  router.use(access_log([&lines](std::string_view line) { lines.emplace_back(line); },
                        {.format = AccessLogFormat::common}));
  router.get("/", [] { return text("hello"); });
  TestClient client(std::move(router));
  client.get("/?a=%22b");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].ends_with(" HTTP/1.1\" 200 5")) << lines[0];
}

}  // namespace
}  // namespace weir::http::access_log_test
