// Tests that a connection takes no new request after the proof by the certificate of its client.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "weir/http/server/serve.hpp"
#include "weir/http/test/h2_client_fixture.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/net/files.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/sleep.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/detail/tls_counters.hpp"
#include "weir/tls/server.hpp"
#include "weir/tls/test/certificate_authority.hpp"

namespace weir::http::proof_end_test {
namespace {

using namespace std::chrono_literals;

/// A client that sends requests on one connection, of HTTP/1.1 or HTTP/2.
class Peer {
 public:
  Peer(AnyStream stream, bool http2) : stream_(std::move(stream)), http2_(http2) {}

  bool resumed() const { return stream_->tls()->resumed; }
  /// Sends a request.
  Task<> send(std::string path) {
    received_.clear();
    std::string request = "GET " + path + " HTTP/1.1\r\nHost: a.example\r\n\r\n";
    if (http2_) {
      request = std::exchange(preface_, "") + frames::get(stream_id_, path);
      stream_id_ += 2;
    }
    std::ignore = co_await stream_->write(request);
  }
  /// Returns the response: "200", also with " close" if it says that it is the last one; "ended"
  /// if there is none.
  Task<std::string> response() {
    while (!received_.ends_with(http2_ ? " end\n" : "done")) {
      if (!co_await read(24h)) co_return received_.contains("200") ? "cut" : "ended";
    }
    if (!received_.contains(http2_ ? ":status=200" : "HTTP/1.1 200 ")) co_return received_;
    const bool last = received_.contains(http2_ ? "goaway" : "Connection: close");
    co_return last ? "200 close" : "200";
  }
  Task<std::string> ask(std::string path = "/") {
    co_await send(std::move(path));
    co_return co_await response();
  }
  /// Returns true if the server ends the connection now. It does so orderly.
  Task<bool> ended() {
    bool more = true;
    while (more) more = co_await read(200ms);
    co_return ended_;
  }
  const std::string& received() const { return received_; }

 private:
  Task<bool> read(Duration timeout) {
    const auto bytes = co_await stream_->read({.timeout = timeout});
    if (!bytes) ended_ = bytes.error() == Errc::end_of_stream;
    if (!bytes) co_return false;
    received_ += http2_ ? receiver_.read(bytes->text()) : std::string(bytes->text());
    co_return true;
  }

  AnyStream stream_;
  bool http2_;
  bool ended_ = false;
  std::uint32_t stream_id_ = 1;
  std::string preface_ = frames::preface();
  std::string received_;
  frames::Receiver receiver_;
};

class ProofEndTest : public HttpTest,
                     public testing::WithParamInterface<std::tuple<tls::RecordCode, bool>> {
 protected:
  ProofEndTest() {
    server_options_.records = std::get<0>(GetParam());
    server_options_.identities = {authority_.issue({.names = "DNS:a.example"})};
    server_options_.client_certificates = tls::ClientCertificates::requested;
    server_options_.client_trust.files = {"/trust.pem"};
    client_options_.trust = {.system = false, .files = {}, .pem = authority_.pem()};
    client_options_.protocols = {http2() ? "h2" : "http/1.1"};
    client_options_.identity = alice_.issue({.common_name = "alice"});
    routes_.get("/", [this] {
      ++calls_;
      return text("done");
    });
    routes_.get("/slow", []() -> Task<Response> {
      std::ignore = co_await sleep(30min);
      co_return text("done");
    });
    routes_.get("/untrust", [this]() -> Task<Response> {
      co_await trust(authority_.pem());
      co_return text("done");
    });
  }
  static bool http2() { return std::get<1>(GetParam()); }

  /// Serves with long timeouts while `talk` runs.
  void run(std::function<Task<>()> talk) {
    const auto write = [this]() -> Task<> {
      EXPECT_TRUE(co_await files::write_file("/trust.pem", alice_.pem()));
    };
    weir::run(*loop_, write());
    tls_ = std::make_shared<tls::Server>(server_options_);
    serve({.idle_timeout = 100h});
    client_ = std::make_unique<tls::Client>(client_options_);
    connector_ = std::make_unique<tls::Connector>(*loop_, *client_);
    start_ = loop_->platform().now();
    const auto all = [&]() -> Task<> {
      co_await talk();
      connector_.reset();
    };
    weir::run(*loop_, all());
  }
  Task<Peer> connect() {
    auto plain = co_await tcp::connect(address_);
    AnyStream inner(std::move(*plain));
    auto stream = co_await connector_->connect(std::move(inner), "a.example");
    EXPECT_TRUE(stream) << stream.error().text();
    co_return Peer(AnyStream(std::move(*stream)), http2());
  }
  /// Waits until this time after the start.
  Task<> until(Duration time) {
    std::ignore = co_await sleep(start_ + time - loop_->platform().now());
  }
  /// The server trusts the CAs in `pem` from now on.
  Task<> trust(std::string pem) {
    EXPECT_TRUE(co_await files::write_file("/trust.pem", pem));
    EXPECT_TRUE(co_await tls_->load());
  }
  std::uint64_t failed(tls::Error error) {
    return tls::detail::TlsCounters::of(*loop_).failed[static_cast<std::size_t>(error)].value();
  }

  tls::CertificateAuthority authority_;
  tls::CertificateAuthority alice_{"CA of Alice"};
  tls::ServerOptions server_options_;
  tls::ClientOptions client_options_;
  std::unique_ptr<tls::Client> client_;
  std::unique_ptr<tls::Connector> connector_;
  Instant start_;
  int calls_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Of, ProofEndTest,
                         testing::Combine(testing::Values(tls::RecordCode::weir,
                                                          tls::RecordCode::openssl),
                                          testing::Bool()),
                         [](const auto& info) {
                           const bool own = std::get<0>(info.param) == tls::RecordCode::weir;
                           return std::string(own ? "Weir" : "Openssl") +
                                  (std::get<1>(info.param) ? "H2" : "H1");
                         });

TEST_P(ProofEndTest, ConnectionEndsWithTheFirstCertificateOfTheChain) {
  const tls::CertificateAuthority brief =
      alice_.intermediate({.common_name = "Brief", .not_after = tls::test_start + 1h});
  client_options_.identity = brief.issue({.common_name = "alice"});
  run([this]() -> Task<> {
    Peer peer = co_await connect();
    EXPECT_EQ(co_await peer.ask(), "200");
    co_await until(1h);
    EXPECT_EQ(co_await peer.ask(), "200") << "the second of its not_after";
    co_await until(1h + 1s);
    EXPECT_TRUE(co_await peer.ended());
    Peer next = co_await connect();
    EXPECT_EQ(co_await next.ask(), "ended");
    EXPECT_EQ(calls_, 2);
  });
  EXPECT_EQ(failed(tls::Error::certificate_expired), 1U);
}

TEST_P(ProofEndTest, ResumedConnectionEndsWithTheSession) {
  server_options_.session_lifetime = 1h;
  run([this]() -> Task<> {
    Peer first = co_await connect();
    EXPECT_EQ(co_await first.ask(), "200");
    co_await until(30min);
    Peer resumed = co_await connect();
    EXPECT_EQ(co_await resumed.ask(), "200");
    EXPECT_TRUE(resumed.resumed());
    co_await until(1h);
    EXPECT_EQ(co_await first.ask(), "200");
    EXPECT_EQ(co_await resumed.ask(), "200");
    co_await until(1h + 1s);
    EXPECT_TRUE(co_await first.ended());
    EXPECT_TRUE(co_await resumed.ended());
    Peer next = co_await connect();
    EXPECT_EQ(co_await next.ask(), "200");
    EXPECT_FALSE(next.resumed());
  });
}

TEST_P(ProofEndTest, RunningRequestRunsToItsEnd) {
  server_options_.session_lifetime = 1h;
  run([this]() -> Task<> {
    Peer peer = co_await connect();
    EXPECT_EQ(co_await peer.ask(), "200");
    co_await until(45min);
    co_await peer.send("/slow");
    EXPECT_EQ(co_await peer.response(), "200 close");
    EXPECT_EQ(loop_->platform().now(), start_ + 75min);
    EXPECT_TRUE(co_await peer.ended());
  });
}

TEST_P(ProofEndTest, ReplacedTrustEndsTheConnectionAtItsNextRequest) {
  run([this]() -> Task<> {
    Peer peer = co_await connect();
    EXPECT_EQ(co_await peer.ask(), "200");
    co_await trust(alice_.pem());
    EXPECT_EQ(co_await peer.ask(), "200") << "the CAs are the same";
    co_await trust(authority_.pem());
    EXPECT_EQ(co_await peer.ask(), "ended");
    if (http2()) {
      EXPECT_TRUE(peer.received().contains("goaway 3 e0\n")) << peer.received();
    }
    EXPECT_TRUE(co_await peer.ended());
    EXPECT_EQ(calls_, 2);
    Peer next = co_await connect();
    EXPECT_EQ(co_await next.ask(), "ended");
    EXPECT_EQ(calls_, 2);
  });
  EXPECT_EQ(failed(tls::Error::unknown_ca), 1U);
}

TEST_P(ProofEndTest, WatchedServerEndsIdleConnections) {
  server_options_.watch.emplace();
  run([this]() -> Task<> {
    Peer peer = co_await connect();
    EXPECT_EQ(co_await peer.ask(), "200");
    Peer busy = co_await connect();
    co_await busy.send("/slow");
    co_await until(10s);
    EXPECT_TRUE(co_await files::write_file("/trust.pem", authority_.pem()));
    co_await until(15s);
    EXPECT_TRUE(co_await peer.ended());
    EXPECT_EQ(co_await busy.response(), "200 close");
  });
}

TEST_P(ProofEndTest, RequestDuringTheReplacementIsTheLast) {
  run([this]() -> Task<> {
    Peer peer = co_await connect();
    const std::string expected = http2() ? "200" : "200 close";
    EXPECT_EQ(co_await peer.ask("/untrust"), expected);
    EXPECT_TRUE(co_await peer.ended());
    if (http2()) {
      EXPECT_TRUE(peer.received().ends_with("goaway 1 e0\n")) << peer.received();
    }
  });
}

TEST_P(ProofEndTest, ConnectionWithoutACertificateContinues) {
  server_options_.session_lifetime = 1h;
  client_options_.identity.reset();
  run([this]() -> Task<> {
    Peer peer = co_await connect();
    EXPECT_EQ(co_await peer.ask(), "200");
    co_await until(10h);
    co_await trust(authority_.pem());
    EXPECT_EQ(co_await peer.ask(), "200");
    EXPECT_FALSE(co_await peer.ended());
  });
}

}  // namespace
}  // namespace weir::http::proof_end_test
