// Tests of the client over HTTP/2 and TLS against servers that follow scripts, in virtual time.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/http/client/detail/client_pool.hpp"
#include "weir/http/test/h2_server_fixture.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/server.hpp"

namespace weir::http::h2_client_tls_test {
namespace {

class H2ClientTlsTest : public H2ServerFixture {
 protected:
  H2ClientTlsTest() {
    tls::SelfSigned certificate;
    certificate.names = {"127.0.0.1"};
    certificate.not_before = platform_.wall_time();
    const tls::Identity identity = tls::Identity::self_signed(certificate).value();
    client_options_.trust = {.system = false, .files = {}, .pem = identity.chain()};
    client_options_.protocols = {"h2", "http/1.1"};
    tls::ServerOptions options;
    options.identities = {identity};
    options.protocols = {"h2", "http/1.1"};
    tls_ = std::make_shared<tls::Server>(std::move(options));
  }
  ClientOptions https() const {
    ClientOptions options;
    options.tls = std::make_shared<tls::Client>(client_options_);
    return options;
  }
  static ClientRequest secure(Method method) {
    return ClientRequest(method, "https://127.0.0.1:81/");
  }

  tls::ClientOptions client_options_;
};

TEST_F(H2ClientTlsTest, APostThatTheServerMayHaveIsNeverSentAgain) {
  // The kernel takes a part of the long body, whose write fails when the server has read the head.
  for (const std::size_t body_bytes : {std::size_t{10}, std::size_t{65'535}}) {
    std::size_t posts = 0;
    const auto lose = [&posts](H2Peer& peer) -> Task<> {
      if (!co_await peer.receive("head 1")) co_return;
      co_await peer.send(frames::answer_text(1, "first"));
      if (co_await peer.receive("head 3")) ++posts;
      peer.close();
    };
    const auto count = [&posts](H2Peer& peer) -> Task<> {
      for (std::uint32_t id = 1; co_await peer.receive("head " + std::to_string(id)); id += 2) {
        ++posts;
        co_await peer.send(frames::answer_text(id, "second"));
      }
    };
    with_scripts({lose, count}, https(), [&](Client& client) -> Task<> {
      EXPECT_EQ(co_await outcome(client, secure(Method::get)), "first");
      ClientRequest post = secure(Method::post);
      post.set_body("text/plain", Body(std::string(body_bytes, 'x')));
      EXPECT_EQ(co_await outcome(client, std::move(post)), text_of(ClientError::connection_lost));
      EXPECT_EQ(posts, 1U);
      EXPECT_EQ(accepted_, 1U);
    });
  }
}

TEST_F(H2ClientTlsTest, ARequestWithAllRightsWaitsForNoOtherConnection) {
  // The origin speaks HTTP/1.1 at first. When the request that waits for room gets it, the origin
  // speaks HTTP/2, and another request opens a connection.
  const auto talk = [this](Scope& scope) -> Task<> {
    tls::ServerOptions old_options = tls_->options();
    old_options.protocols = {"http/1.1"};
    auto old_server =
        co_await tls::Acceptor::make(scope, std::make_shared<tls::Server>(std::move(old_options)));
    auto new_server = co_await tls::Acceptor::make(scope, tls_);
    auto listener = co_await tcp::listen(Endpoint::loopback(81));
    EXPECT_TRUE(old_server && new_server && listener);
    if (!old_server || !new_server || !listener) co_return;
    const auto accept = [](tcp::Listener on, std::shared_ptr<tls::Acceptor> first,
                           std::shared_ptr<tls::Acceptor> later) -> Task<> {
      std::vector<AnyStream> streams;
      while (auto stream = co_await on.accept()) {
        auto accepted = co_await tls::accept(first, AnyStream(std::move(*stream)));
        if (accepted) streams.push_back(std::move(*accepted));
        first = later;
      }
    };
    scope.spawn(accept(std::move(*listener), *old_server, *new_server));
    ClientOptions options = https();
    options.limits.connections_max = 2;
    ClientPool pool(options);
    const Url url = *Url::parse("https://127.0.0.1:81/");
    auto first = pool.try_acquire(url);
    auto other = pool.try_acquire(*Url::parse("https://127.0.0.1:82/"));
    EXPECT_TRUE(first && other);
    if (!first || !other) co_return;
    EXPECT_TRUE(co_await first->connect(url, never));
    EXPECT_FALSE(first->is_http2());
    const auto wait_for_room = [&]() -> Task<> {
      const auto place = co_await pool.acquire(url, never);
      EXPECT_TRUE(place && place->lease) << "it has the rights to a connection";
    };
    scope.spawn(wait_for_room());
    EXPECT_TRUE(co_await first->connect(url, never));
    EXPECT_TRUE(first->is_http2());
    other.reset();
    static_cast<void>(co_await sleep(std::chrono::seconds(10)));
    first.reset();
    scope.cancel();
  };
  static_cast<void>(weir::run(*loop_, with_scope(OnFailure::isolate, talk)));
}

TEST_F(H2ClientTlsTest, AProxyIsOfferedHttp1Only) {
  routes_.get("/", [](Request& request) {
    return text(std::string(request.authority()) + " " + request.tls()->protocol);
  });
  serve();
  const auto use = [this]() -> Task<> {
    ClientOptions options = https();
    options.proxy.url = *Url::parse("https://127.0.0.1:80/");
    options.proxy.bypass = {};
    Client client(std::move(options));
    auto response = co_await client.get("http://a.test/");
    EXPECT_TRUE(response);
    if (!response) co_return;
    const auto body = co_await response->body();
    EXPECT_TRUE(body && *body == "a.test http/1.1");
  };
  weir::run(*loop_, use());
  settle();
  expect_at_rest();
}

}  // namespace
}  // namespace weir::http::h2_client_tls_test
