// Tests of resumed sessions: how long a session stands for a full handshake, and for which name.
#include "weir/tls/detail/session_proof.hpp"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/tls/test/engine_fixture.hpp"

namespace weir::tls::detail::session_proof_test {
namespace {

class SessionProofTest : public EngineTest, public testing::WithParamInterface<TlsVersion> {
 protected:
  SessionProofTest() {
    server_options_.unknown_name = UnknownName::first_identity;
    client_options_.verification = Verification::any_name;
  }
  void require_certificate() {
    server_options_.client_certificates = ClientCertificates::required;
    server_options_.client_trust.pem = authority_.pem();
    client_options_.identity = authority_.issue({.common_name = "alice"});
  }
  /// Performs a handshake with the newest ticket. The client keeps the tickets that it receives.
  void connect(const std::string& host = "a.example") {
    make(host, false);
    client_->set_version_max(GetParam());
    shake();
    std::string plain;
    if (connected()) open(*client_, tickets_, plain);
  }
  /// Performs a handshake at each of these times after the first one, and returns a letter for
  /// each: 'r' for a resumed session, 'f' for a full handshake, '-' for a failure.
  std::string connect_at(const std::vector<Duration>& times) {
    const WallTime start = now_;
    std::string letters;
    for (const Duration time : times) {
      now_ = start + time;
      connect();
      letters += !connected() ? '-' : server_->info().resumed ? 'r' : 'f';
      if (connected()) {
        EXPECT_EQ(client_->info().resumed, server_->info().resumed);
      }
    }
    return letters;
  }
  /// Gives the ticket for one host to another one.
  void move_ticket(const std::string& from, const std::string& to) {
    SslSessionPtr session = sessions_->take(from);
    ASSERT_NE(session, nullptr);
    sessions_->put(to, std::move(session));
  }
};
INSTANTIATE_TEST_SUITE_P(Of, SessionProofTest,
                         testing::Values(TlsVersion::tls_1_3, TlsVersion::tls_1_2),
                         [](const auto& info) {
                           return info.param == TlsVersion::tls_1_3 ? "Tls13" : "Tls12";
                         });

TEST_P(SessionProofTest, NoTicketProlongsTheProofOfAClient) {
  require_certificate();
  EXPECT_EQ(connect_at({0h, 7h, 14h, 21h, 28h, 35h}), "frfrfr");
  ASSERT_NE(server_->info().peer, nullptr);
  EXPECT_EQ(server_->info().peer->subject, "CN=alice");
}

TEST_P(SessionProofTest, ProofEndsToTheSecond) {
  EXPECT_EQ(connect_at({0h, 4h, 8h}), "frr");
  sessions_ = std::make_shared<SessionCache>();
  EXPECT_EQ(connect_at({0h, 4h, 8h + 1s}), "frf");
}

TEST_P(SessionProofTest, LifetimeIsAnOptionOfTheServer) {
  server_options_.session_lifetime = 1h;
  EXPECT_EQ(connect_at({0min, 30min, 60min, 61min, 90min}), "frrfr");
}

TEST_P(SessionProofTest, LifetimeIsAnOptionOfTheClientToo) {
  sessions_ = std::make_shared<SessionCache>(1h);
  EXPECT_EQ(connect_at({0min, 30min, 60min, 61min, 90min}), "frrfr");
}

TEST_P(SessionProofTest, RotatedKeysDoNotProlongTheProof) {
  ticket_keys_ = TicketKeys::random().value();
  std::string letters;
  for (const bool resumed : {false, true, false, true}) {
    connect();
    ASSERT_TRUE(connected());
    EXPECT_EQ(server_->info().resumed, resumed) << letters;
    letters += resumed ? 'r' : 'f';
    ticket_keys_ = ticket_keys_->rotated().value();
    now_ += 5h;
  }
}

TEST_P(SessionProofTest, ProofEndsWithTheFirstCertificateOfTheChain) {
  const CertificateAuthority brief =
      authority_.intermediate({.common_name = "Brief", .not_after = test_start + 2h});
  require_certificate();
  client_options_.identity = brief.issue({.common_name = "alice"});
  EXPECT_EQ(connect_at({0h, 1h, 2h, 3h}), "frr-");
  EXPECT_EQ(server_->error(), make_error_code(Error::certificate_expired));
  // The same for a server.
  now_ = test_start;
  sessions_ = std::make_shared<SessionCache>();
  server_options_.client_certificates = ClientCertificates::none;
  server_options_.client_trust.pem.clear();
  client_options_.identity.reset();
  server_options_.identities = {brief.issue({.names = "DNS:a.example"})};
  EXPECT_EQ(connect_at({0h, 1h, 2h, 3h}), "frr-");
  EXPECT_EQ(client_->error(), make_error_code(Error::certificate_expired));
}

TEST_P(SessionProofTest, ClockThatGoesBackEndsTheProof) {
  now_ += 1h;
  EXPECT_EQ(connect_at({0h, -30min}), "ff");
}

TEST_P(SessionProofTest, TicketServesItsNameOnly) {
  for (const std::string other : {"x.b.example", "unknown.example", "192.0.2.1"}) {
    SCOPED_TRACE(other);
    sessions_ = std::make_shared<SessionCache>();
    connect();
    ASSERT_TRUE(connected());
    move_ticket("a.example", other);
    connect(other);
    ASSERT_TRUE(connected());
    EXPECT_FALSE(server_->info().resumed);
    EXPECT_EQ(server_->info().server_name, other == "192.0.2.1" ? "" : other);
    // And back, after a full handshake without the first name.
    move_ticket(other, "a.example");
    connect();
    ASSERT_TRUE(connected());
    EXPECT_FALSE(server_->info().resumed);
    EXPECT_EQ(server_->info().server_name, "a.example");
  }
}

TEST_P(SessionProofTest, TicketOpensNoRejectedName) {
  server_options_.unknown_name = UnknownName::rejected;
  connect();
  ASSERT_TRUE(connected());
  move_ticket("a.example", "evil.example");
  connect("evil.example");
  EXPECT_FALSE(connected());
  EXPECT_EQ(server_->error(), make_error_code(Error::unknown_server_name));
}

TEST_P(SessionProofTest, CaseOfTheNameDoesNotCount) {
  make_contexts();
  SSL_CTX_set_info_callback(client_context_.get(), [](const SSL* ssl, int event, int) {
    if (event != SSL_CB_HANDSHAKE_START) return;
    SSL_set_tlsext_host_name(const_cast<SSL*>(ssl), "A.Example");
  });
  make_engines("a.example", false);
  client_->set_version_max(GetParam());
  shake();
  ASSERT_TRUE(connected());
  EXPECT_EQ(server_->info().server_name, "a.example");
  std::string plain;
  open(*client_, tickets_, plain);
  connect();
  EXPECT_TRUE(connected() && server_->info().resumed);
}

TEST_P(SessionProofTest, SessionWithoutAProofIsNotResumed) {
  connect();
  ASSERT_TRUE(connected());
  // A ticket of the client carries the proof of the client; a foreign session has none.
  SslSessionPtr session = sessions_->take("a.example");
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(SessionProof::of_session(*session));
  const std::string short_data = "short";
  SSL_SESSION_set1_ticket_appdata(session.get(), short_data.data(), short_data.size());
  EXPECT_FALSE(SessionProof::of_session(*session));
  EXPECT_FALSE(client_->is_current(*session, 8h));
}

TEST(SessionProof, KeepsItsNumbers) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const SslSessionPtr session(SSL_SESSION_new());
  EXPECT_FALSE(SessionProof::of_session(*session));
  for (const SessionProof each : {SessionProof{0, 0}, SessionProof{1'735'689'600, most},
                                  SessionProof{-5, 0x0102'0304'0506'0708}}) {
    ASSERT_TRUE(each.put_into(*session));
    const auto read = SessionProof::of_session(*session);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->proven_at, each.proven_at);
    EXPECT_EQ(read->valid_until, each.valid_until);
  }
}

TEST(SessionProof, EndsAtTheFirstOfItsBounds) {
  const SessionProof proof{.proven_at = 1000, .valid_until = 1500};
  EXPECT_EQ(proof.seconds_left(1000, 100s), 100);
  EXPECT_EQ(proof.seconds_left(1100, 100s), 0);
  EXPECT_EQ(proof.seconds_left(1101, 100s), -1);
  EXPECT_EQ(proof.seconds_left(1400, 1000s), 100);
  EXPECT_LT(proof.seconds_left(999, 1000s), 0) << "the clock has gone back";
}

}  // namespace
}  // namespace weir::tls::detail::session_proof_test
