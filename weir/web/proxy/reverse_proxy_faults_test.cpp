// Tests of a reverse proxy whose upstreams fail at each step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/web/test/proxy_fixture.hpp"

namespace weir::http::reverse_proxy_faults_test {
namespace {

constexpr std::string_view post =
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
    "Connection: close\r\n\r\nbody";

class ProxyFaultsTest : public ProxyFixture {
 protected:
  /// Returns the status after an upstream that sends these bytes and closes.
  std::string status_after(std::string answer) {
    Step step;
    step.answer = std::move(answer);
    step.close = true;
    return statuses({{step}, {step}}, get("/"));
  }
  static Step lost(std::size_t reads = std::string::npos) {
    Step step;
    step.answer.clear();
    step.close = true;
    step.reads = reads;
    return step;
  }
  static ReverseProxyOptions impatient() {
    ReverseProxyOptions options;
    options.client.limits.head_timeout = 2s;
    options.client.limits.body_timeout = 2s;
    return options;
  }
};

TEST_F(ProxyFaultsTest, MalformedResponsesAreBadGateway) {
  const std::string length = "Content-Length: 5\r\n";
  for (const std::string& bad :
       {std::string("garbage\r\n\r\n"),
        "HTTP/1.1 200 OK\r\n" + length + "Content-Length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\n" + length + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        std::string("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked, x\r\n\r\n0\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nX\0: a\r\n\r\n", 27),
        "HTTP/1.1 200 OK\r\nX-Long: " + std::string(100'000, 'x') + "\r\n\r\n"}) {
    EXPECT_EQ(status_after(bad), "502") << bad.substr(0, 100);
  }
}

TEST_F(ProxyFaultsTest, EndlessHeadersAreBadGateway) {
  std::string endless = "HTTP/1.1 200 OK\r\n";
  for (int line = 0; line < 100'000; ++line) endless += "X: y\r\n";
  EXPECT_EQ(status_after(endless), "502");
  std::string interim;
  for (int count = 0; count < 1000; ++count) interim += "HTTP/1.1 100 Continue\r\n\r\n";
  const std::string answered = status_after(interim);
  EXPECT_TRUE(answered.starts_with("100 ") && answered.ends_with(" 502")) << answered;
  EXPECT_EQ(answered.size(), 16 * 4 + 3) << "ResponseLimits::interim_max are passed on";
}

TEST_F(ProxyFaultsTest, ResponseThatIsCutOffIsNeverComplete) {
  const std::string short_body(hello);
  const std::string long_body =
      "HTTP/1.1 200 OK\r\nContent-Length: 80000\r\n\r\n" + std::string(80'000, 'x');
  const std::string chunked =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nworld\r\n0\r\n\r\n";
  for (const std::string& whole : {short_body, chunked}) {
    for (std::size_t cut = 0; cut < whole.size(); ++cut) {
      const std::string status = status_after(whole.substr(0, cut));
      EXPECT_TRUE(status == "502" || status == "200-") << status << " at " << cut;
    }
    EXPECT_EQ(status_after(whole), "200");
  }
  for (const std::size_t cut : {100U, 16'000U, 79'000U}) {
    EXPECT_EQ(status_after(long_body.substr(0, cut)), "200-") << cut;
  }
}

TEST_F(ProxyFaultsTest, UpstreamThatLeavesDuringTheRequestIsBadGateway) {
  for (std::size_t reads = 0; reads < 150; reads += 7) {
    EXPECT_EQ(statuses({{lost(reads)}, {lost(reads)}}, std::string(post)), "502") << reads;
  }
}

TEST_F(ProxyFaultsTest, NoUpstreamIsBadGateway) {
  upstreams_ = {"http://127.0.0.1:89", "http://127.0.0.1:88"};
  EXPECT_EQ(statuses({}, get("/")), "502");
  EXPECT_EQ(statuses({}, std::string(post)), "502");
}

TEST_F(ProxyFaultsTest, SlowUpstreamIsGatewayTimeout) {
  Step silent;
  silent.answer.clear();
  silent.pause = 1h;
  EXPECT_EQ(statuses({{silent}}, get("/"), impatient()), "504");
  Step stalls;
  stalls.answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe";
  stalls.pause = 1h;
  EXPECT_EQ(statuses({{stalls}}, get("/"), impatient()), "504") << "nothing was sent yet";
  stalls.answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n";
  EXPECT_EQ(statuses({{stalls}}, get("/"), impatient()), "200-");
}

TEST_F(ProxyFaultsTest, LackOfDescriptorsIsNoFailureOfTheUpstream) {
  ReverseProxyOptions options;
  options.failures_max = 1;
  std::string answers;
  with_proxy({}, options, [&](Client&) -> Task<> {
    auto stream = co_await tcp::connect(Endpoint::loopback(80));
    EXPECT_TRUE(stream);
    if (!stream) co_return;
    const auto ask_once = [&]() -> Task<> {
      std::ignore = co_await stream->write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      const auto piece = co_await stream->read();
      if (piece) answers += std::string(piece->text().substr(0, 13)) + "\n";
    };
    std::ignore = co_await sleep(1s);  // until the proxy has accepted
    platform_.set_descriptors_max(platform_.open_descriptors());
    co_await ask_once();
    platform_.set_descriptors_max(1000);
    co_await ask_once();
  });
  EXPECT_EQ(answers, "HTTP/1.1 503 \nHTTP/1.1 200 \n");
  EXPECT_TRUE(std::ranges::any_of(platform_.logged(), [](const auto& line) {
    return line.contains(system_error(EMFILE).message());
  })) << "the operator sees the reason";
}

TEST_F(ProxyFaultsTest, AnotherUpstreamGetsARequestThatWasNotSent) {
  upstreams_ = {"http://127.0.0.1:89", "http://127.0.0.1:81"};
  for (int count = 0; count < 4; ++count) {
    EXPECT_EQ(statuses({}, std::string(post)), "200");
    EXPECT_EQ(upstream_requests().size(), 1U);
  }
}

TEST_F(ProxyFaultsTest, AnotherUpstreamGetsAnIdempotentRequestAfterALostConnection) {
  upstreams_ = {"http://127.0.0.1:81", "http://127.0.0.1:82"};
  EXPECT_EQ(statuses({{lost()}}, get("/")), "200");
  EXPECT_EQ(upstream_requests().size(), 2U);
  EXPECT_EQ(statuses({{lost()}}, std::string(post)), "502");
  EXPECT_EQ(upstream_requests().size(), 1U) << "a POST is never sent twice";
  const std::string put = "PUT" + std::string(post.substr(4));
  EXPECT_EQ(statuses({{lost()}}, put), "502");
  EXPECT_EQ(upstream_requests().size(), 1U) << "its body cannot be sent again";
  Step broken;
  broken.answer = "HTTP/1.1 20";
  broken.close = true;
  EXPECT_EQ(statuses({{broken}}, get("/")), "200");
  EXPECT_EQ(statuses({{broken}}, std::string(post)), "502");
}

TEST_F(ProxyFaultsTest, NoOtherUpstreamGetsARequestThatMayHaveHadAnEffect) {
  upstreams_ = {"http://127.0.0.1:81", "http://127.0.0.1:82"};
  constexpr std::string_view bare = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(statuses({{lost()}}, std::string(bare)), "502");
  EXPECT_EQ(upstream_requests().size(), 1U) << "a POST without a body";
  Step garbage;
  garbage.answer = "garbage\r\n\r\n";
  EXPECT_EQ(statuses({{garbage}}, get("/")), "502");
  EXPECT_EQ(upstream_requests().size(), 1U) << "a response, although it is malformed";
  Step silent;
  silent.answer.clear();
  silent.pause = 1h;
  EXPECT_EQ(statuses({{silent}}, get("/"), impatient()), "504");
  EXPECT_EQ(upstream_requests().size(), 1U) << "an upstream that may still work";
}

TEST_F(ProxyFaultsTest, KeyOfAClientDoesNotRepeatItsPost) {
  for (const std::string method : {"POST", "PATCH"}) {
    std::string seen;
    const std::string request =
        method + " / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nConnection: close\r\n\r\n";
    with_proxy({{Step(), lost()}}, {}, [&](Client&) -> Task<> {
      seen += co_await talk_to_proxy(get("/"));
      seen += co_await talk_to_proxy(request);
    });
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(seen)), "200 502");
    EXPECT_EQ(upstream_requests().size(), 2U) << "on one connection, which is lost";
  }
}

TEST_F(ProxyFaultsTest, UpstreamIsNotBlamedForTheBodyOfAClient) {
  body_max_ = 10;
  const std::string chunked =
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n" +
      std::string(20, 'x') + "\r\n0\r\n\r\n";
  EXPECT_EQ(statuses({}, chunked), "413");
  EXPECT_EQ(failures(), 0U);
  EXPECT_EQ(statuses({{lost()}}, std::string(post)), "502");
  EXPECT_EQ(failures(), 1U);
}

TEST_F(ProxyFaultsTest, AnotherUpstreamGetsARequestAfterAFailedHandshakeOfTls) {
  upstreams_ = {"https://127.0.0.1:81", "http://127.0.0.1:82"};
  Step no_tls;
  no_tls.answer = "HTTP/1.1 400 Bad Request\r\n\r\n";
  no_tls.reads = 1;
  no_tls.close = true;
  EXPECT_EQ(statuses({{no_tls}}, get("/")), "200");
  EXPECT_EQ(failures(), 1U);
  EXPECT_EQ(statuses({{no_tls}}, std::string(post)), "200");
  EXPECT_EQ(failures(), 2U);
}

TEST_F(ProxyFaultsTest, UpstreamIsNotBlamedForASlowUpload) {
  ReverseProxyOptions options;
  options.client.limits.total_timeout = 2s;
  Step silent;
  silent.answer.clear();
  silent.pause = 1h;
  const std::string part =
      "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 100000\r\n\r\nbody";
  EXPECT_EQ(statuses({{silent}}, part, options), "408");
  EXPECT_EQ(failures(), 0U);
  EXPECT_EQ(statuses({{silent}}, std::string(post), options), "504") << "the client has sent all";
  EXPECT_EQ(failures(), 1U);
}

TEST_F(ProxyFaultsTest, UpstreamIsNotBlamedForEndingASlowUpload) {
  const std::string part =
      "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 100000\r\n\r\nbody";
  for (const Duration pause : {Duration(2s), Duration(100ms)}) {
    Step leaves;
    leaves.answer.clear();
    leaves.pause = pause;
    leaves.close = true;
    EXPECT_EQ(statuses({{leaves}}, part, {}), "502");
    EXPECT_EQ(failures(), pause < 1s ? 1U : 0U) << "an upstream that dies is blamed";
  }
}

TEST_F(ProxyFaultsTest, DateOfTheUpstreamIsPassedOn) {
  const std::string date = "Date: Thu, 01 Jan 1970 00:00:01 GMT\r\n";
  const auto answer_with = [this](const std::string& line) {
    Step step;
    step.answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + line + "\r\nok";
    return ask({{step}}, get("/"));
  };
  const std::string passed = answer_with(date + "Expires: Thu, 01 Jan 1970 00:01:01 GMT\r\n");
  EXPECT_TRUE(passed.contains(date)) << passed;
  EXPECT_EQ(passed.find("Date: "), passed.rfind("Date: "));
  for (const std::string line : {"", "Date: yesterday\r\n"}) {
    const std::string own = answer_with(line);
    EXPECT_TRUE(own.starts_with("HTTP/1.1 200")) << own;
    EXPECT_EQ(own.find("Date: "), own.rfind("Date: "));
    EXPECT_FALSE(own.contains("yesterday"));
    EXPECT_TRUE(own.contains("Date: ")) << own;
  }
}

TEST_F(ProxyFaultsTest, AttemptsAreBounded) {
  upstreams_ = {"http://127.0.0.1:87", "http://127.0.0.1:88", "http://127.0.0.1:89",
                "http://127.0.0.1:81"};
  ReverseProxyOptions options;
  options.attempts_max = 3;
  EXPECT_EQ(statuses({}, get("/"), options), "502");
  options.attempts_max = 4;
  EXPECT_EQ(statuses({}, get("/"), options), "200");
}

TEST_F(ProxyFaultsTest, FailedUpstreamIsEjected) {
  upstreams_ = {"http://127.0.0.1:81", "http://127.0.0.1:82"};
  ReverseProxyOptions options;
  options.failures_max = 2;
  options.attempts_max = 1;
  std::string seen;
  // The scripts are those of connections in the order of accepting. Each request has its own.
  std::vector<std::vector<Step>> scripts(12);
  scripts[0] = scripts[2] = {lost()};
  with_proxy(scripts, options, [&](Client&) -> Task<> {
    for (int count = 0; count < 6; ++count) {
      const std::string answer = co_await talk_to_proxy(get("/"));
      seen += sim::statuses_of(sim::parse_http_responses(answer)) + " ";
      std::ignore = co_await sleep(5s);  // idle connections are closed
    }
  });
  EXPECT_EQ(seen, "502 200 502 200 200 200 ");
  EXPECT_EQ(server_of_scripts_.accepted, 6U);
}

TEST_F(ProxyFaultsTest, FullQueueIsServiceUnavailable) {
  ReverseProxyOptions options;
  options.client.limits.connections_per_origin_max = 1;
  options.client.limits.waiting_max = 0;
  Step slow;
  slow.answer.clear();
  slow.late = std::string(hello);
  slow.pause = 1s;
  std::string second;
  with_proxy({{slow}}, options, [&](Client&) -> Task<> {
    const auto both = [&](Scope& scope) -> Task<> {
      scope.spawn([](std::string request) -> Task<> {
        const std::string text = co_await talk_to_proxy(std::move(request));
        EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(text)), "200");
      }(get("/")));
      std::ignore = co_await sleep(100ms);
      second = co_await talk_to_proxy(get("/"));
    };
    std::ignore = co_await with_scope(OnFailure::isolate, both);
  });
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(second)), "503");
}

}  // namespace
}  // namespace weir::http::reverse_proxy_faults_test
