// Tests of requests through a proxy.
#include "weir/http/client/detail/proxy.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/test/client_fixture.hpp"

namespace weir::http::proxy_test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view tunnel_answer = "HTTP/1.1 200 OK\r\n\r\n";

ClientOptions with_proxy(bool tunnel = false) {
  ClientOptions options;
  options.proxy.url = *Url::parse("http://127.0.0.1:81/");
  options.proxy.authorization = "Basic dTpw";
  options.proxy.tunnel = tunnel;
  return options;
}

using ProxyTest = ClientFixture;

TEST_F(ProxyTest, RequestsHaveTheWholeUrlAndShareConnections) {
  with_server({}, with_proxy(), [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client, "http://a.test/dir?q"), "hello");
    EXPECT_EQ(co_await ask(client, "http://b.test:81/"), "hello");
    EXPECT_EQ(server_of_scripts_.accepted, 1U) << "the proxy is one origin";
    EXPECT_EQ(server_of_scripts_.requests.at(0),
              "GET http://a.test/dir?q HTTP/1.1\r\nHost: a.test\r\n"
              "Proxy-Authorization: Basic dTpw\r\n\r\n");
    EXPECT_TRUE(
        server_of_scripts_.requests.at(1).starts_with("GET http://b.test:81/ HTTP/1.1\r\n"));
  });
}

TEST_F(ProxyTest, HostsOfTheBypassAreAskedDirectly) {
  ClientOptions options = with_proxy();
  options.proxy.url = *Url::parse("http://10.0.0.1:99/");
  with_server({}, std::move(options), [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client, "http://127.0.0.1:82/"), "hello");
    EXPECT_EQ(server_of_scripts_.requests.at(0), "GET / HTTP/1.1\r\nHost: 127.0.0.1:82\r\n\r\n")
        << "only the proxy gets its credentials";
  });
}

TEST_F(ProxyTest, ABypassIncludesTheHostsBelowIt) {
  ClientOptions options = with_proxy();
  const auto uses = [&](const std::string& url) { return uses_proxy(*Url::parse(url), options); };
  options.proxy.bypass = {"a.test", ".b.test", ""};
  EXPECT_FALSE(uses("http://a.test/"));
  EXPECT_FALSE(uses("http://x.y.A.test/"));
  EXPECT_FALSE(uses("http://b.test/"));
  EXPECT_FALSE(uses("http://a.test./"));
  EXPECT_FALSE(uses("http://x.b.test./"));
  EXPECT_TRUE(uses("http://a.test../"));
  EXPECT_TRUE(uses("http://xa.test/"));
  EXPECT_TRUE(uses("http://test/"));
  EXPECT_TRUE(uses("http://a.test.c/"));
  options.proxy.bypass = {"*"};
  EXPECT_FALSE(uses("http://c.test/"));
  options.proxy.bypass = {};
  EXPECT_TRUE(uses("http://localhost/"));
  options.unix_socket = "/socket";
  EXPECT_FALSE(uses("http://c.test/"));
}

TEST_F(ProxyTest, ATunnelCarriesTheRequestsOfOneOrigin) {
  const std::vector<Step> script{{.answer = std::string(tunnel_answer)}};
  with_server({script, script}, with_proxy(true), [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client, "http://a.test/dir?q"), "hello");
    EXPECT_EQ(co_await ask(client, "http://a.test/dir?q"), "hello");
    EXPECT_EQ(co_await ask(client, "http://b.test:81/"), "hello");
    EXPECT_EQ(server_of_scripts_.accepted, 2U) << "each origin has its tunnels";
    const std::vector<std::string> expected = {
        "CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\nProxy-Authorization: Basic dTpw\r\n\r\n",
        "GET /dir?q HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET /dir?q HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "CONNECT b.test:81 HTTP/1.1\r\nHost: b.test:81\r\nProxy-Authorization: Basic dTpw\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: b.test:81\r\n\r\n"};
    EXPECT_EQ(server_of_scripts_.requests, expected);
  });
}

struct HostileRow {
  std::string answer;
  std::string late;
  std::string expected;
};

TEST_F(ProxyTest, ATunnelThatIsNotOpenedIsAnError) {
  const std::vector<HostileRow> rows = {
      {"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno", "",
       "proxy_refused"},
      {"HTTP/1.1 301 Moved\r\nLocation: http://b.test/\r\n\r\n", "", "proxy_refused"},
      {"HTTP/1.1 502 Bad Gateway\r\n\r\n", "", "proxy_refused"},
      {"", "", "connection_lost"},
      {"HTTP/1.1 200 OK\r\n", "", "connection_lost"},
      {"HTTP/1.1 2", "", "connection_lost"},
      {"hello\r\n\r\n", "", "bad_response"},
      {"HTTP/1.1 101 Switching Protocols\r\n\r\n", "", "bad_response"},
      // Bytes that no request has asked for: a response that a proxy wants to smuggle in.
      {std::string(tunnel_answer) + std::string(hello), "", "bad_response"},
  };
  for (const HostileRow& row : rows) {
    const std::vector<Step> script{{.answer = row.answer, .late = row.late, .close = true}};
    with_server({script}, with_proxy(true), [&](Client& client) -> Task<> {
      EXPECT_EQ(co_await ask(client, "http://a.test/"), row.expected) << row.answer;
      EXPECT_EQ(client.connection_count(), 0U);
      EXPECT_EQ(server_of_scripts_.accepted, 1U);
    });
  }
}

TEST_F(ProxyTest, ATunnelIgnoresInterimResponsesAndLengths) {
  const std::string answer =
      "HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 204 OK\r\nContent-Length: 5\r\n\r\n";
  with_server({{{.answer = answer}}}, with_proxy(true), [](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client, "http://a.test/"), "hello");
  });
}

TEST_F(ProxyTest, ASilentProxyCausesATimeoutOfTheConnection) {
  const std::vector<Step> silent{{.answer = "", .pause = 1h}};
  with_server({silent}, with_proxy(true), [](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client, "http://a.test/"), "connect_timed_out");
    EXPECT_EQ(client.connection_count(), 0U);
  });
}

TEST_F(ProxyTest, ALostTunnelIsReplacedForAnIdempotentRequest) {
  const std::vector<Step> closing{
      {.answer = std::string(tunnel_answer)}, {}, {.answer = "", .close = true}};
  const std::vector<Step> other{{.answer = std::string(tunnel_answer)}};
  with_server({closing, other}, with_proxy(true), [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client, "http://a.test/"), "hello");
    EXPECT_EQ(co_await ask(client, "http://a.test/"), "hello");
    EXPECT_EQ(server_of_scripts_.accepted, 2U);
  });
  with_server({closing, other}, with_proxy(true), [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client, "http://a.test/"), "hello");
    EXPECT_EQ(co_await outcome_of(client, ClientRequest(Method::post, "http://a.test/")),
              "connection_lost");
    EXPECT_EQ(server_of_scripts_.accepted, 1U);
  });
}

TEST_F(ProxyTest, CredentialsThatNoHeaderCanHoldAreNotSent) {
  const auto serve = [](WebSocket&) -> Task<Result<>> { co_return Result<>(); };
  for (const bool tunnel : {false, true}) {
    ClientOptions options = with_proxy(tunnel);
    options.proxy.authorization = "Basic a\r\nHost: b";
    with_server({}, std::move(options), [&](Client& client) -> Task<> {
      const auto response = co_await client.get("http://a.test/");
      EXPECT_TRUE(!response && response.error() == Errc::bad_configuration);
      const auto ended = co_await client.websocket("ws://a.test/", serve);
      EXPECT_TRUE(!ended && ended.error() == Errc::bad_configuration);
      EXPECT_EQ(server_of_scripts_.accepted, 0U);
    });
  }
}

}  // namespace
}  // namespace weir::http::proxy_test
