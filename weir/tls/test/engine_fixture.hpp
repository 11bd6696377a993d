// Fixture: two engines that talk in memory, without a loop.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/tls/certificate/detail/certificate.hpp"
#include "weir/tls/detail/contexts.hpp"
#include "weir/tls/detail/session_cache.hpp"
#include "weir/tls/detail/ssl_engine.hpp"
#include "weir/tls/test/certificate_authority.hpp"

namespace weir::tls::detail {

/// Returns a buffer with these bytes.
inline Buffer buffer_of(std::string_view text) {
  Buffer buffer = Buffer::with_capacity(static_cast<std::uint32_t>(text.size() + 1));
  std::memcpy(buffer.room().data(), text.data(), text.size());
  buffer.commit(text.size());
  return buffer;
}

class EngineTest : public testing::Test {
 protected:
  using Step = SslEngine::Step;
  using Opened = RecordLayer::Opened;

  EngineTest() {
    server_options_.identities.push_back(
        authority_.issue({.common_name = "server", .names = "DNS:a.example,DNS:*.b.example"}));
    client_options_.trust = {.system = false, .files = {}, .pem = authority_.pem()};
  }

  /// Makes both engines from the options.
  void make(const std::string& host = "a.example", bool checked = true) {
    make_contexts();
    make_engines(host, checked);
  }
  void make_contexts() {
    auto snapshot = std::make_shared<ServerSnapshot>();
    snapshot->identities = server_options_.identities;
    snapshot->trust = server_options_.client_trust.pem;
    snapshot->store = make_store(snapshot->trust).value();
    if (!ticket_keys_) ticket_keys_ = TicketKeys::random().value();
    contexts_ = ServerContexts::make(server_options_, snapshot).value();
    contexts_->set_ticket_keys(std::make_shared<const TicketKeys>(*ticket_keys_));
    ClientSnapshot of_client{.trust = client_options_.trust.pem,
                             .store = make_store(client_options_.trust.pem).value()};
    client_context_ = make_client_context(client_options_, of_client).value();
  }
  /// Makes both engines from the contexts.
  void make_engines(const std::string& host = "a.example", bool checked = true) {
    server_ = SslEngine::make(contexts_->first(), SslEngine::Side::server).value();
    client_ = SslEngine::make(*client_context_, SslEngine::Side::client).value();
    server_->set_time(now_);
    client_->set_time(now_);
    EXPECT_TRUE(client_->set_host(host, checked, sessions_));
  }

  /// Gives `bytes` to an engine during its handshake. Returns its step, and appends its output.
  static Step feed(SslEngine& engine, std::string_view bytes, std::string& out) {
    Buffer input = buffer_of(bytes);
    Buffer output;
    const Step step = engine.handshake(input, output);
    out += output.text();
    return step;
  }

  /// Does the same with the server, and notes in computed_ if the step may have used a key.
  Step feed_server(std::string_view bytes, std::string& out) {
    const bool may_compute = server_->may_compute();
    const Step step = feed(*server_, bytes, out);
    computed_ += may_compute && server_->computed() ? 'y' : 'n';
    return step;
  }

  /// Performs the handshake until both engines have finished or failed. Bytes that remain for the
  /// client are the tickets.
  void shake() {
    std::string to_server;
    std::string to_client;
    client_step_ = feed(*client_, "", to_server);
    server_step_ = Step::needs_input;
    computed_.clear();
    for (int round = 0; round < 8 && !(to_server.empty() && to_client.empty()); ++round) {
      if (server_step_ == Step::needs_input && !to_server.empty()) {
        server_step_ = feed_server(std::exchange(to_server, {}), to_client);
      }
      if (client_step_ != Step::needs_input) break;
      if (!to_client.empty()) {
        client_step_ = feed(*client_, std::exchange(to_client, {}), to_server);
      }
      if (client_step_ == Step::failed && server_step_ == Step::needs_input) {
        server_step_ = feed_server(std::exchange(to_server, {}), to_client);
      }
    }
    if (server_step_ == Step::needs_input && !to_server.empty()) {
      server_step_ = feed_server(to_server, to_client);
    }
    tickets_ = to_client;
  }
  /// Makes the client offer nothing above TLS 1.2, as an old client.
  void limit_to_1_2() { client_->set_version_max(TlsVersion::tls_1_2); }
  static std::string name_of_error(const SslEngine& engine) { return engine.error().message(); }
  bool connected() const {
    return server_step_ == Step::finished && client_step_ == Step::finished;
  }

  /// Returns one record with `plain`.
  static std::string sealed(SslEngine& engine, std::string_view plain) {
    Buffer output;
    EXPECT_FALSE(engine.seal(to_bytes(plain), output));
    return std::string(output.text());
  }
  /// Opens `bytes`. Returns the last result, and appends the data.
  static Opened open(SslEngine& engine, std::string_view bytes, std::string& plain) {
    Buffer input = buffer_of(bytes);
    for (;;) {
      Buffer data;
      Buffer output;
      const Opened opened = engine.open(input, data, output);
      plain += data.text();
      if (opened != Opened::data) return opened;
    }
  }

  CertificateAuthority authority_;
  ServerOptions server_options_;
  ClientOptions client_options_;
  WallTime now_ = test_start;
  std::optional<TicketKeys> ticket_keys_;
  std::shared_ptr<SessionCache> sessions_ = std::make_shared<SessionCache>();
  std::unique_ptr<ServerContexts> contexts_;
  SslContextPtr client_context_;
  std::unique_ptr<SslEngine> server_;
  std::unique_ptr<SslEngine> client_;
  Step server_step_ = Step::needs_input;
  Step client_step_ = Step::needs_input;
  std::string tickets_;
  std::string computed_;  // a letter for each step of the server
};

}  // namespace weir::tls::detail
