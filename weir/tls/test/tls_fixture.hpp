// Fixture: TLS streams over the connections of each backend and of the simulated network.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "weir/net/test/net_fixture.hpp"
#include "weir/task/combinators.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/server.hpp"
#include "weir/tls/test/certificate_authority.hpp"

namespace weir::tls {

/// Each kind of a network, with servers that have the records of OpenSSL.
inline auto every_net_kind_with_openssl_records() {
  const auto with = [](NetKind kind) {
    kind.openssl_records = true;
    return kind;
  };
  return testing::Values(with(net_in_memory), with(net_on_uring), with(net_on_epoll),
                         with(net_on_poll));
}

/// The two ends of one TLS connection.
struct SecurePair {
  Stream server;
  Stream client;
};

class TlsTest : public NetTest {
 protected:
  void SetUp() override {
    NetTest::SetUp();
    if (GetParam().openssl_records) server_options_.records = RecordCode::openssl;
    // Valid by the simulated and by the real clock.
    server_options_.identities.push_back(
        authority_.issue({.common_name = "server",
                          .names = "DNS:a.example",
                          .not_before = WallTime(std::chrono::seconds(0)),
                          .not_after = WallTime(std::chrono::years(200))}));
    client_options_.trust = {.system = false, .files = {}, .pem = authority_.pem()};
  }
  void TearDown() override {
    if (loop_ == nullptr) return;
    acceptor_.reset();
    connector_.reset();
    loop_->turn(Instant{});  // ends sends that a close has cancelled
    loop_->turn(Instant{});
    NetTest::TearDown();
  }

  /// Makes both sides from the options, unless they exist.
  Task<> make_sides() {
    if (acceptor_ != nullptr) co_return;
    server_ = std::make_unique<Server>(server_options_);
    const auto loaded = co_await server_->load();
    EXPECT_TRUE(loaded) << loaded.error().text();
    client_ = std::make_unique<Client>(client_options_);
    acceptor_ = std::make_unique<Acceptor>(*loop_, *server_);
    connector_ = std::make_unique<Connector>(*loop_, *client_);
  }

  /// Performs the handshake over a new connection.
  Task<SecurePair> secure_pair() {
    co_await make_sides();
    Pair plain = co_await connect_pair();
    AnyStream server_end(std::move(plain.server));
    AnyStream client_end(std::move(plain.client));
    auto accepting = acceptor_->accept(std::move(server_end));
    auto connecting = connector_->connect(std::move(client_end), host_);
    auto both = co_await all(std::move(accepting), std::move(connecting));
    auto& [server, client] = both.value();
    EXPECT_TRUE(server) << server.error().text();
    EXPECT_TRUE(client) << client.error().text();
    co_return SecurePair{std::move(server.value()), std::move(client.value())};
  }

  CertificateAuthority authority_;
  ServerOptions server_options_;
  ClientOptions client_options_;
  std::string host_ = "a.example";
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<Connector> connector_;
};

}  // namespace weir::tls
