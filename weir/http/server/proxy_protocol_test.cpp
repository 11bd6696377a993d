// Tests of servers behind proxies that tell the address of their client.
#include "weir/net/proxy_protocol.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http/client/client.hpp"
#include "weir/http/test/h2_client_fixture.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/sleep.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/server.hpp"

namespace weir::http::proxy_protocol_test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view get = "GET /peer HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view line = "PROXY TCP4 192.0.2.1 10.0.0.1 12345 443\r\n";

TEST(ProxyProtocolTest, HeadersAreExpectedFromTheProxiesOnly) {
  const ProxyProtocol protocol({.proxies = {"10.0.0.0/8", "2001:db8::1", "unix"}});
  EXPECT_TRUE(protocol.expects_header(os::Address::ipv4({10, 1, 2, 3}, 1)));
  EXPECT_TRUE(protocol.expects_header(*os::Address::parse("[2001:db8::1]:1")));
  EXPECT_TRUE(protocol.expects_header(*os::Address::parse("[::ffff:10.0.0.1]:1")));
  EXPECT_TRUE(protocol.expects_header(*os::Address::local("@a")));
  EXPECT_FALSE(protocol.expects_header(os::Address::loopback(1)));
  EXPECT_FALSE(ProxyProtocol({}).expects_header(*os::Address::local("@a")));
  EXPECT_THROW(ProxyProtocol({.proxies = {"any"}}), std::invalid_argument);
}

class ProxiedConnectionTest : public HttpTest {
 protected:
  ProxiedConnectionTest() {
    routes_.get("/peer",
                [](const Request& request) { return text(request.peer_address().to_string()); });
    routes_.get("/late", [](Request& request) -> Task<Response> {
      std::ignore = co_await sleep(1s);
      co_return text(request.peer_address().to_string());
    });
    proxy_protocol_ = protocol("127.0.0.0/8");
  }
  static std::shared_ptr<const ProxyProtocol> protocol(std::string proxies) {
    ProxyProtocolOptions options;
    options.proxies = {std::move(proxies)};
    return std::make_shared<const ProxyProtocol>(options);
  }
  std::string body_of(std::string_view text) {
    const auto answers = sim::parse_http_responses(text);
    return answers.empty() ? "no response" : answers.back().body;
  }
  std::uint64_t rejected() const { return server_->counters().bad_proxy_headers.value(); }
};

TEST_F(ProxiedConnectionTest, PeerIsTheClientOfTheProxy) {
  serve();
  MemoryPeer& peer = connect();
  EXPECT_EQ(body_of(talk(peer, std::string(line) + std::string(get))), "192.0.2.1:12345");
  EXPECT_EQ(body_of(talk(peer, get)), "192.0.2.1:12345") << "for all requests of the connection";
  talk(peer, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
  pass(1s);
  EXPECT_EQ(body_of(peer.take()), "192.0.2.1:12345");
  peer.close();
  settle();
  expect_at_rest();
}

TEST_F(ProxiedConnectionTest, HeaderMayArriveInPieces) {
  serve();
  const std::string binary(
      "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0C\xC0\0\x02\x01\x0A\0\0\1\x30\x39\1\xBB", 28);
  for (const std::string& header : {std::string(line), binary}) {
    MemoryPeer& peer = connect();
    for (const char each : header) talk(peer, {&each, 1});
    EXPECT_EQ(body_of(talk(peer, get)), "192.0.2.1:12345");
  }
}

TEST_F(ProxiedConnectionTest, HeaderWithoutAnAddressKeepsTheRealOne) {
  serve();
  const std::string local("\r\n\r\n\0\r\nQUIT\n\x20\0\0\0", 16);
  for (const std::string& header : {std::string("PROXY UNKNOWN\r\n"), local}) {
    const std::string peer = body_of(talk(connect(), header + std::string(get)));
    EXPECT_TRUE(peer.starts_with("127.0.0.1:")) << peer;
  }
}

TEST_F(ProxiedConnectionTest, MalformedHeaderClosesTheConnection) {
  serve();
  MemoryPeer& peer = connect();
  EXPECT_EQ(talk(peer, get), "");
  EXPECT_TRUE(peer.ended() || peer.was_reset());
  EXPECT_EQ(rejected(), 1U);
  EXPECT_EQ(server_->counters().requests.value(), 0U);
  peer.close();
  settle();
  expect_at_rest();
}

TEST_F(ProxiedConnectionTest, OtherPeersSendNoHeader) {
  proxy_protocol_ = protocol("10.0.0.0/8");
  serve();
  EXPECT_TRUE(body_of(talk(connect(), get)).starts_with("127.0.0.1:"));
  EXPECT_EQ(statuses(std::string(line) + std::string(get)), "400") << "it is no request";
}

TEST_F(ProxiedConnectionTest, SlowHeaderClosesTheConnection) {
  serve();
  MemoryPeer& peer = connect();
  talk(peer, line.substr(0, 20));
  pass(5s - 1ms);
  EXPECT_FALSE(peer.ended());
  pass(1ms);
  settle();
  EXPECT_TRUE(peer.ended());
  EXPECT_EQ(rejected(), 0U);
}

TEST_F(ProxiedConnectionTest, DrainEndsTheWaitForAHeader) {
  serve();
  MemoryPeer& peer = connect();
  settle();
  drain();
  pass(1s);
  EXPECT_TRUE(peer.ended());
}

TEST_F(ProxiedConnectionTest, IdleConnectionIsWithinTheBound) {
  serve();
  const std::size_t before = blocks();
  MemoryPeer& peer = connect();
  talk(peer, std::string(line) + std::string(get));
  EXPECT_EQ(blocks(), before + 3)
      << "the frame of the connection, its address, and the copy for the handler that asks for it";
  MemoryBoundOptions options;
  const auto plain = memory_bound({}, options);
  options.proxy_protocol = true;
  EXPECT_GT(memory_bound({}, options).idle_connection, plain.idle_connection);
  EXPECT_LE(memory_bound({}, options).idle_connection, plain.idle_connection + 128);
}

TEST_F(ProxiedConnectionTest, HeaderComesBeforeHttp2) {
  plain_http2_ = PlainHttp2::prior_knowledge;
  serve();
  MemoryPeer& peer = connect();
  frames::Receiver receiver;
  const std::string received =
      receiver.read(talk(peer, std::string(line) + frames::preface() + frames::get(1, "/peer")));
  EXPECT_NE(received.find("192.0.2.1:12345"), received.npos) << received;
}

/// Passes on what `inner` sends, behind a header.
Task<> relay(Scope& scope, tcp::Listener listener) {
  auto inner = co_await listener.accept();
  EXPECT_TRUE(inner);
  auto outer = co_await tcp::connect(Endpoint::loopback(80));
  EXPECT_TRUE(outer);
  if (!inner || !outer) co_return;
  EXPECT_TRUE(co_await outer->write(line));
  const auto pass_on = [](Stream& from, Stream& to) -> Task<> {
    for (;;) {
      const auto piece = co_await from.read();
      if (!piece) co_return;
      const auto sent = co_await to.write(piece->bytes());
      if (!sent) co_return;
    }
  };
  const auto both = [&](Scope& pair) -> Task<> {
    pair.spawn(pass_on(*inner, *outer));
    co_await pass_on(*outer, *inner);
    pair.cancel();
  };
  std::ignore = co_await with_scope(OnFailure::isolate, both);
  scope.cancel();
}

TEST_F(ProxiedConnectionTest, HeaderComesBeforeTls) {
  tls::SelfSigned certificate;
  certificate.names = {"127.0.0.1"};
  certificate.not_before = platform_.wall_time();
  const tls::Identity identity = tls::Identity::self_signed(certificate).value();
  tls::ServerOptions server_options;
  server_options.identities = {identity};
  tls_ = std::make_shared<tls::Server>(std::move(server_options));
  tls::ClientOptions client_options;
  client_options.trust = {.system = false, .files = {}, .pem = identity.chain()};
  serve();
  const auto talk_by_tls = [&](Scope& scope) -> Task<> {
    auto listener = co_await tcp::listen(Endpoint::loopback(81));
    EXPECT_TRUE(listener);
    if (!listener) co_return;
    scope.spawn(relay(scope, std::move(*listener)));
    ClientOptions options;
    options.tls = std::make_shared<tls::Client>(std::move(client_options));
    Client client(std::move(options));
    auto response = co_await client.get("https://127.0.0.1:81/peer");
    EXPECT_TRUE(response) << response.error().message();
    if (!response) co_return;
    const auto body = co_await response->body();
    EXPECT_TRUE(body && *body == "192.0.2.1:12345");
  };
  std::ignore = weir::run(*loop_, with_scope(OnFailure::isolate, talk_by_tls));
}

}  // namespace
}  // namespace weir::http::proxy_protocol_test
