// Tests of the client over HTTP/2 and TLS against servers that follow scripts, in virtual time.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "weir/http/client/client.hpp"
#include "weir/http/test/h2_server_fixture.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/server.hpp"

namespace weir::http {
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
}  // namespace weir::http
