// Tests handshakes and records of OpenSSL's engine in memory: the facts, and hostile bytes.
#include "weir/tls/detail/ssl_engine.hpp"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <string>
#include <vector>

#include "weir/base/detail/random_source.hpp"
#include "weir/sim/detail/random.hpp"
#include "weir/testing/memory/memory_platform.hpp"
#include "weir/tls/test/engine_fixture.hpp"

namespace weir::tls::detail::ssl_engine_test {
namespace {

class SslEngineTest : public EngineTest {};

TEST_F(SslEngineTest, HandshakeHasItsFacts) {
  make("A.example");
  shake();
  ASSERT_TRUE(connected());
  const TlsInfo server = server_->info();
  EXPECT_EQ(server.version, TlsVersion::tls_1_3);
  EXPECT_FALSE(server.resumed);
  EXPECT_EQ(server.cipher, "TLS_AES_128_GCM_SHA256") << "the cheapest suite";
  EXPECT_EQ(server.protocol, "http/1.1");
  EXPECT_EQ(server.server_name, "a.example");
  EXPECT_EQ(server.peer, nullptr);
  const TlsInfo client = client_->info();
  EXPECT_EQ(client.cipher, server.cipher);
  EXPECT_EQ(client.protocol, "http/1.1");
  ASSERT_NE(client.peer, nullptr);
  EXPECT_EQ(client.peer->subject, "CN=server");
  EXPECT_EQ(client.peer->issuer, "CN=Test Root");
  const std::vector<std::string> names{"DNS:a.example", "DNS:*.b.example"};
  EXPECT_EQ(client.peer->alternative_names, names);
  EXPECT_EQ(client.peer->not_before, test_start - std::chrono::hours(1));
}

TEST_F(SslEngineTest, RecordsArriveWholeAndByteByByte) {
  make();
  shake();
  ASSERT_TRUE(connected());
  std::string plain;
  EXPECT_EQ(open(*client_, tickets_, plain), Opened::none);
  std::string records = sealed(*client_, "hello ");
  records += sealed(*client_, "world");
  EXPECT_EQ(open(*server_, records, plain), Opened::none);
  EXPECT_EQ(plain, "hello world");
  plain.clear();
  for (const char each : sealed(*server_, "hello client")) {
    EXPECT_EQ(open(*client_, {&each, 1}, plain), Opened::none);
  }
  EXPECT_EQ(plain, "hello client");
}

TEST_F(SslEngineTest, LargestRecordArrives) {
  make();
  shake();
  const std::string large(RecordLayer::plain_max, 'x');
  const std::string record = sealed(*client_, large);
  EXPECT_LE(record.size(), large.size() + 5 + 1 + 16);
  std::string plain;
  EXPECT_EQ(open(*server_, record, plain), Opened::none);
  EXPECT_EQ(plain, large);
}

TEST_F(SslEngineTest, DataIsSplitForAPeerThatAsksForShortRecords) {
  for (const TlsVersion version : {TlsVersion::tls_1_3, TlsVersion::tls_1_2}) {
    SCOPED_TRACE(name_of(version));
    make_contexts();
    SSL_CTX_set_tlsext_max_fragment_length(client_context_.get(), TLSEXT_max_fragment_length_512);
    make_engines();
    if (version == TlsVersion::tls_1_2) limit_to_1_2();
    shake();
    ASSERT_TRUE(connected());
    const std::string large(RecordLayer::plain_max, 'x');
    std::string plain;
    EXPECT_EQ(open(*client_, tickets_ + sealed(*server_, large), plain), Opened::none);
    EXPECT_EQ(plain, large);
  }
}

TEST_F(SslEngineTest, ServerComputesNoCostlyKeyExchange) {
  const auto connects_with = [this](const char* groups, TlsVersion version) {
    make_contexts();
    EXPECT_EQ(SSL_CTX_set1_groups_list(client_context_.get(), groups), 1);
    sessions_ = std::make_shared<SessionCache>();  // a full handshake
    make_engines();
    client_->set_version_max(version);
    shake();
    return connected();
  };
  for (const TlsVersion version : {TlsVersion::tls_1_3, TlsVersion::tls_1_2}) {
    for (const char* groups : {"X25519:P-256", "P-256", "P-384:P-256", "ffdhe8192:P-256"}) {
      EXPECT_TRUE(connects_with(groups, version)) << groups;
    }
    for (const char* groups : {"ffdhe8192", "ffdhe2048", "P-521", "X448"}) {
      EXPECT_FALSE(connects_with(groups, version)) << groups;
      EXPECT_EQ(server_->error(), make_error_code(Error::no_common_cipher)) << groups;
    }
  }
}

TEST_F(SslEngineTest, CloseNotifyEndsTheRecords) {
  make();
  shake();
  Buffer output;
  ASSERT_FALSE(client_->seal(to_bytes("last"), output));
  client_->seal_close(output);
  const std::size_t size = output.size();
  client_->seal_close(output);
  EXPECT_EQ(output.size(), size) << "it is sent once";
  std::string plain;
  EXPECT_EQ(open(*server_, output.text(), plain), Opened::closed);
  EXPECT_EQ(plain, "last");
  EXPECT_EQ(open(*server_, "", plain), Opened::closed);
  EXPECT_FALSE(server_->error());
  // The other direction continues.
  plain.clear();
  EXPECT_EQ(open(*client_, tickets_ + sealed(*server_, "answer"), plain), Opened::none);
  EXPECT_EQ(plain, "answer");
}

TEST_F(SslEngineTest, ChangedRecordIsRejectedWithAnAlert) {
  make();
  shake();
  const std::string record = sealed(*client_, "hello");
  for (const std::size_t index : {std::size_t{5}, record.size() / 2, record.size() - 1}) {
    make();
    shake();
    std::string changed = sealed(*client_, "hello");
    changed[index] = static_cast<char>(changed[index] ^ 1);
    Buffer input = buffer_of(changed);
    Buffer data;
    Buffer output;
    EXPECT_EQ(server_->open(input, data, output), Opened::failed) << index;
    EXPECT_EQ(server_->error(), make_error_code(Error::bad_record));
    EXPECT_TRUE(data.empty());
    EXPECT_FALSE(output.empty()) << "bad_record_mac";
    EXPECT_TRUE(server_->seal(to_bytes("more"), output)) << "nothing follows the alert";
    std::string plain;
    EXPECT_EQ(open(*client_, tickets_ + std::string(output.text()), plain), Opened::failed);
    EXPECT_EQ(client_->error(), make_error_code(Error::peer_alert));
  }
}

TEST_F(SslEngineTest, RepeatedRecordIsRejected) {
  make();
  shake();
  const std::string record = sealed(*client_, "pay 100");
  std::string plain;
  EXPECT_EQ(open(*server_, record + record, plain), Opened::failed);
  EXPECT_EQ(plain, "pay 100");
  EXPECT_EQ(server_->error(), make_error_code(Error::bad_record));
}

TEST_F(SslEngineTest, TooLongRecordIsRejected) {
  make();
  shake();
  // 16,640 bytes are the most that a record may have (RFC 8446, 5.2).
  const std::string header("\x17\x03\x03\x41\x01", 5);
  std::string plain;
  EXPECT_EQ(open(*server_, header + std::string(0x4101, 'x'), plain), Opened::failed);
}

TEST_F(SslEngineTest, TicketResumesASessionAndOfTls13Once) {
  for (const TlsVersion version : {TlsVersion::tls_1_3, TlsVersion::tls_1_2}) {
    SCOPED_TRACE(name_of(version));
    sessions_ = std::make_shared<SessionCache>();
    make();
    if (version == TlsVersion::tls_1_2) limit_to_1_2();
    shake();
    ASSERT_TRUE(connected());
    EXPECT_FALSE(server_->info().resumed);
    std::string plain;
    open(*client_, tickets_, plain);
    EXPECT_EQ(sessions_->size(), 1U);
    for (int round = 0; round < 2; ++round) {
      make();
      if (version == TlsVersion::tls_1_2) limit_to_1_2();
      EXPECT_EQ(sessions_->size(), version == TlsVersion::tls_1_2 ? 1U : 0U);
      shake();
      ASSERT_TRUE(connected());
      EXPECT_TRUE(server_->info().resumed) << round;
      EXPECT_TRUE(client_->info().resumed) << round;
      EXPECT_EQ(client_->info().version, version);
      open(*client_, tickets_, plain);
    }
  }
}

TEST_F(SslEngineTest, TellsWhichStepsOfAServerUseKeys) {
  const auto steps = [this](TlsVersion version) {
    make();
    client_->set_version_max(version);
    shake();
    EXPECT_TRUE(connected());
    std::string plain;
    open(*client_, tickets_, plain);
    return (server_->info().resumed ? "resumed " : "full ") + computed_;
  };
  for (const TlsVersion version : {TlsVersion::tls_1_2, TlsVersion::tls_1_3}) {
    SCOPED_TRACE(name_of(version));
    const bool older = version == TlsVersion::tls_1_2;
    sessions_ = std::make_shared<SessionCache>();
    EXPECT_EQ(steps(version), older ? "full yy" : "full yn");
    EXPECT_EQ(steps(version), older ? "resumed nn" : "resumed yn");
  }
  sessions_ = std::make_shared<SessionCache>();
  server_options_.client_certificates = ClientCertificates::required;
  server_options_.client_trust.pem = authority_.pem();
  client_options_.identity = authority_.issue({.common_name = "worker"});
  EXPECT_EQ(steps(TlsVersion::tls_1_3), "full yy") << "the last one verifies the certificate";
}

TEST_F(SslEngineTest, ClientKeepsSessionsWithinAStatedBound) {
  sessions_ = std::make_shared<SessionCache>();
  make();
  shake();
  std::string plain;
  open(*client_, tickets_, plain);
  ASSERT_EQ(sessions_->size(), 1U);
  const std::size_t one = sessions_->bytes();
  EXPECT_GT(one, 0U);
  EXPECT_LE(one, SessionCache::session_bytes_max);
  for (int server = 0; server < 2'000; ++server) {
    SslSessionPtr session = sessions_->take("a.example");
    ASSERT_NE(session, nullptr);
    SSL_SESSION_up_ref(session.get());
    sessions_->put("server" + std::to_string(server), SslSessionPtr(session.get()));
    sessions_->put("a.example", std::move(session));
    EXPECT_LE(sessions_->size(), SessionCache::servers_max);
    EXPECT_LE(sessions_->bytes(), SessionCache::bytes_max);
    EXPECT_EQ(sessions_->bytes(), one * sessions_->size());
  }
  EXPECT_GT(sessions_->size(), 500U);
  EXPECT_EQ(kept_sessions_bytes_max({.tickets = false}), 0U);
  EXPECT_GE(kept_sessions_bytes_max({}), SessionCache::bytes_max);
}

TEST_F(SslEngineTest, TicketSurvivesOneRotationOfItsKey) {
  ticket_keys_ = TicketKeys::random().value();
  for (int rotations = 0; rotations <= 2; ++rotations) {
    sessions_ = std::make_shared<SessionCache>();
    make();
    shake();
    std::string plain;
    open(*client_, tickets_, plain);
    for (int count = 0; count < rotations; ++count) ticket_keys_ = ticket_keys_->rotated().value();
    make();
    shake();
    ASSERT_TRUE(connected());
    EXPECT_EQ(server_->info().resumed, rotations < 2) << rotations;
  }
}

TEST_F(SslEngineTest, TicketLivesForEightHoursOfThePlatformsClock) {
  for (const TlsVersion version : {TlsVersion::tls_1_3, TlsVersion::tls_1_2}) {
    for (const Duration age : {Duration(8h), Duration(8h + 1s)}) {
      SCOPED_TRACE(std::string(name_of(version)) + (age == 8h ? ", valid" : ", expired"));
      now_ = test_start;
      for (const bool second : {false, true}) {
        make();
        if (version == TlsVersion::tls_1_2) limit_to_1_2();
        shake();
        ASSERT_TRUE(connected());
        EXPECT_EQ(server_->info().resumed, second && age == 8h);
        std::string plain;
        open(*client_, tickets_, plain);
        now_ += age;
      }
      sessions_ = std::make_shared<SessionCache>();
    }
  }
}

TEST_F(SslEngineTest, NewTicketDoesNotProlongASessionOfTls12) {
  ticket_keys_ = TicketKeys::random().value();
  for (const bool resumed : {false, true, false}) {
    make();
    limit_to_1_2();
    shake();
    ASSERT_TRUE(connected());
    EXPECT_EQ(server_->info().resumed, resumed);
    std::string plain;
    open(*client_, tickets_, plain);
    EXPECT_EQ(sessions_->size(), 1U) << "the rotation gives the client another ticket";
    ticket_keys_ = ticket_keys_->rotated().value();
    now_ += 5h;
  }
}

/// A source of numbers that depend on a seed alone.
class Numbers final : public weir::detail::RandomSource {
 public:
  explicit Numbers(std::uint64_t seed) noexcept : random_(seed) {}
  std::uint64_t random() noexcept override { return random_.next(); }

 private:
  sim::Random random_;
};

TEST_F(SslEngineTest, SeedOfASimulationDeterminesEveryByte) {
  const auto bytes_of = [this](std::uint64_t seed) {
    Numbers numbers(seed);
    const weir::detail::RandomSource::Use use(numbers);
    const SelfSigned certificate{.names = {"a.example"}, .not_before = test_start};
    server_options_.identities = {Identity::self_signed(certificate).value()};
    client_options_.trust.pem = server_options_.identities.front().chain();
    ticket_keys_.reset();
    sessions_ = std::make_shared<SessionCache>();
    std::string bytes = server_options_.identities.front().chain();
    for (const bool resumed : {false, true}) {
      make();
      shake();
      EXPECT_TRUE(connected());
      EXPECT_EQ(server_->info().resumed, resumed);
      std::string plain;
      open(*client_, tickets_, plain);
      bytes += tickets_ + sealed(*client_, "question") + sealed(*server_, "answer");
    }
    return bytes;
  };
  const std::string first = bytes_of(1);
  EXPECT_EQ(bytes_of(1), first);
  EXPECT_NE(bytes_of(2), first);
}

TEST_F(SslEngineTest, OtherTrustedCasEndOldTickets) {
  server_options_.client_certificates = ClientCertificates::required;
  server_options_.client_trust.pem = authority_.pem();
  client_options_.identity = authority_.issue({.common_name = "worker"});
  make();
  shake();
  ASSERT_TRUE(connected());
  std::string plain;
  open(*client_, tickets_, plain);
  server_options_.client_trust.pem = CertificateAuthority("Other Root").pem();
  make();
  shake();
  std::string out;
  EXPECT_EQ(server_step_, Step::failed);
  EXPECT_TRUE(server_->take_failure() == Error::unknown_ca);
}

class ClientRules : public EngineTest {
 protected:
  /// Makes both engines. With `same_rules`, all servers accept the tickets of each other.
  void make_with(ClientCertificates wanted, TlsVersion version, bool same_rules) {
    server_options_.client_certificates = wanted;
    const bool asks = wanted != ClientCertificates::none;
    server_options_.client_trust.pem = asks ? authority_.pem() : "";
    make_contexts();
    if (same_rules) SSL_CTX_set_session_id_context(&contexts_->first(), &one_id_, 1);
    make_engines();
    if (version == TlsVersion::tls_1_2) limit_to_1_2();
    shake();
  }
  /// Takes a ticket without a certificate to a server that requires one.
  void use_ticket(ClientCertificates first, TlsVersion version, bool same_rules) {
    sessions_ = std::make_shared<SessionCache>();
    make_with(first, version, same_rules);
    ASSERT_TRUE(connected());
    std::string plain;
    open(*client_, tickets_, plain);
    ASSERT_EQ(sessions_->size(), 1U);
    make_with(ClientCertificates::required, version, same_rules);
    EXPECT_EQ(server_step_, Step::failed);
    EXPECT_EQ(server_->error(), make_error_code(Error::certificate_missing));
  }

  const unsigned char one_id_ = 1;
};

TEST_F(ClientRules, TicketReplacesNoRequiredCertificate) {
  for (const TlsVersion version : {TlsVersion::tls_1_3, TlsVersion::tls_1_2}) {
    for (const auto first : {ClientCertificates::none, ClientCertificates::requested}) {
      SCOPED_TRACE(name_of(version));
      use_ticket(first, version, false);
      use_ticket(first, version, true);
    }
  }
}

TEST_F(ClientRules, TicketReplacesNoExpiredCertificate) {
  const Issued brief{.names = "DNS:a.example", .not_after = test_start + 1h};
  for (const bool of_client : {true, false}) {
    SCOPED_TRACE(of_client ? "client" : "server");
    sessions_ = std::make_shared<SessionCache>();
    now_ = test_start;
    if (of_client) {
      client_options_.identity = authority_.issue(brief);
    } else {
      server_options_.identities = {authority_.issue(brief)};
    }
    make_with(of_client ? ClientCertificates::required : ClientCertificates::none,
              TlsVersion::tls_1_3, false);
    ASSERT_TRUE(connected());
    std::string plain;
    open(*client_, tickets_, plain);
    now_ += 2h;
    make_with(server_options_.client_certificates, TlsVersion::tls_1_3, false);
    SslEngine& rejecting = of_client ? *server_ : *client_;
    EXPECT_EQ(rejecting.error(), make_error_code(Error::certificate_expired));
  }
}

/// Tests of keys whose signatures take long.
class SlowKeyTest : public SslEngineTest {
 protected:
  /// Gives the first message of a client to a server. Returns its step, and appends its output.
  Step take_hello(const std::string& host, std::string& out) {
    make_engines(host);
    std::string hello;
    feed(*client_, "", hello);
    return feed(*server_, hello, out);
  }
  Identity with_rsa(const std::string& name, unsigned bits) const {
    return authority_.issue({.common_name = name, .names = "DNS:" + name, .rsa_bits = bits});
  }
};

TEST_F(SlowKeyTest, EngineStopsBeforeASignatureThatTakesLong) {
  server_options_.identities = {with_rsa("slow.example", 3072), with_rsa("fast.example", 2048)};
  make_contexts();
  std::string flight;
  EXPECT_EQ(take_hello("fast.example", flight), Step::needs_input);
  EXPECT_FALSE(flight.empty());
  flight.clear();
  ASSERT_EQ(take_hello("slow.example", flight), Step::signs);
  EXPECT_EQ(flight, "");
  Buffer none;
  Buffer output;
  ASSERT_EQ(server_->sign(none, output), Step::needs_input);
  std::string finished;
  EXPECT_EQ(feed(*client_, output.text(), finished), Step::finished);
  EXPECT_EQ(feed(*server_, finished, tickets_), Step::finished);
  std::string plain;
  EXPECT_EQ(open(*client_, tickets_, plain), Opened::none);
  // A ticket replaces the signature.
  EXPECT_EQ(take_hello("slow.example", flight), Step::needs_input);
}

TEST_F(SslEngineTest, ServerWithoutTicketsSendsNone) {
  server_options_.tickets = false;
  make();
  shake();
  ASSERT_TRUE(connected());
  EXPECT_EQ(tickets_, "");
}

TEST_F(SslEngineTest, CloseNotifyBeforeTheEndIsALeavingPeer) {
  make();
  std::string out;
  EXPECT_EQ(feed(*client_, "", out), Step::needs_input);
  const std::string_view close_notify("\x15\x03\x03\x00\x02\x01\x00", 7);
  EXPECT_EQ(feed(*client_, close_notify, out), Step::failed);
  EXPECT_EQ(client_->error(), make_error_code(Error::peer_left));
}

TEST_F(SslEngineTest, ServerNameHasNoOtherBytes) {
  make_contexts();
  SSL_CTX_set_info_callback(client_context_.get(), [](const SSL* ssl, int event, int) {
    if (event != SSL_CB_HANDSHAKE_START) return;
    SSL_set_tlsext_host_name(const_cast<SSL*>(ssl), "a\nforged line");
  });
  make_engines();
  shake();
  ASSERT_TRUE(connected());
  EXPECT_EQ(server_->info().server_name, "");
}

// --- messages behind the handshake ---------------------------------------------------------------

class LaterMessages : public EngineTest {
 protected:
  /// Makes both engines, which may ask for a renegotiation, and performs the handshake.
  void connect(TlsVersion version) {
    make_contexts();
    for (SSL_CTX* const each : {client_context_.get(), &contexts_->first()}) {
      SSL_CTX_set_info_callback(each, &find);
    }
    SSL_CTX_clear_options(client_context_.get(), SSL_OP_NO_RENEGOTIATION);
    make_engines();
    if (version == TlsVersion::tls_1_2) limit_to_1_2();
    shake();
    ASSERT_TRUE(connected());
  }
  /// Appends one KeyUpdate of the client to `out`.
  void update_key(std::string& out, int type = SSL_KEY_UPDATE_NOT_REQUESTED) {
    SSL_key_update(client_ssl, type);
    EXPECT_EQ(feed(*client_, "", out), Step::finished);
  }
  static void find(const SSL* ssl, int, int) {
    (SSL_is_server(ssl) == 1 ? server_ssl : client_ssl) = const_cast<SSL*>(ssl);
  }

  static inline SSL* client_ssl = nullptr;
  static inline SSL* server_ssl = nullptr;
};

TEST_F(LaterMessages, RenegotiationEndsTheConnection) {
  connect(TlsVersion::tls_1_2);
  SSL_renegotiate(client_ssl);
  std::string hello;
  EXPECT_EQ(feed(*client_, "", hello), Step::needs_input);
  Buffer input = buffer_of(hello);
  Buffer data;
  Buffer output;
  EXPECT_EQ(server_->open(input, data, output), Opened::failed);
  EXPECT_EQ(server_->error(), make_error_code(Error::bad_record));
  EXPECT_FALSE(output.empty()) << "no_renegotiation";
}

TEST_F(LaterMessages, RenegotiationOfAServerEndsTheConnectionToo) {
  connect(TlsVersion::tls_1_2);
  SSL_clear_options(server_ssl, SSL_OP_NO_RENEGOTIATION);
  SSL_renegotiate(server_ssl);
  std::string request;
  feed(*server_, "", request);
  SSL_set_options(client_ssl, SSL_OP_NO_RENEGOTIATION);
  std::string plain;
  EXPECT_EQ(open(*client_, request, plain), Opened::failed);
  EXPECT_EQ(client_->error(), make_error_code(Error::bad_record));
}

TEST_F(LaterMessages, RecordsWithoutDataAreLimitedInARow) {
  for (const unsigned count :
       {RecordLayer::empty_records_max, RecordLayer::empty_records_max + 2}) {
    connect(TlsVersion::tls_1_3);
    std::string records;
    for (unsigned done = 0; done < count; ++done) update_key(records);
    records += sealed(*client_, "data");
    std::string plain;
    const Opened opened = open(*server_, records, plain);
    if (count == RecordLayer::empty_records_max) {
      EXPECT_EQ(opened, Opened::none);
      EXPECT_EQ(plain, "data");
    } else {
      EXPECT_EQ(opened, Opened::failed) << "data behind them does not help";
      EXPECT_EQ(server_->error(), make_error_code(Error::record_flood));
      EXPECT_EQ(plain, "");
    }
  }
}

TEST_F(LaterMessages, KeyUpdatesAreLimitedInAMinute) {
  connect(TlsVersion::tls_1_3);
  MemoryPlatform platform;
  auto loop = Loop::make(platform, {}).value();
  server_->set_clock(platform);
  const auto after_update = [this] {
    std::string records;
    update_key(records);
    records += sealed(*client_, "x");
    std::string plain;
    return open(*server_, records, plain);
  };
  for (int minute = 0; minute < 2; ++minute) {
    for (int count = 0; count < 16; ++count) ASSERT_EQ(after_update(), Opened::none) << count;
    platform.advance(*loop, 60s);
  }
  for (int count = 0; count < 16; ++count) ASSERT_EQ(after_update(), Opened::none) << count;
  EXPECT_EQ(after_update(), Opened::failed);
  EXPECT_EQ(server_->error(), make_error_code(Error::record_flood));
}

TEST_F(LaterMessages, AnswersThatWaitAreLimited) {
  connect(TlsVersion::tls_1_3);
  Buffer output;
  Opened opened = Opened::none;
  for (int round = 0; round < 1000 && opened != Opened::failed; ++round) {
    std::string records;
    update_key(records, SSL_KEY_UPDATE_REQUESTED);
    records += sealed(*client_, "x");
    Buffer input = buffer_of(records);
    Buffer data;
    opened = server_->open(input, data, output);
  }
  EXPECT_EQ(opened, Opened::failed);
  EXPECT_EQ(server_->error(), make_error_code(Error::record_flood));
  EXPECT_LE(output.size(), 4096U);
}

// --- hostile bytes -------------------------------------------------------------------------------

TEST_F(SslEngineTest, EachTruncationOfAHelloWaitsForMore) {
  make();
  std::string hello;
  ASSERT_EQ(feed(*client_, "", hello), Step::needs_input);
  for (std::size_t size = 0; size < hello.size(); ++size) {
    auto server = SslEngine::make(contexts_->first(), SslEngine::Side::server).value();
    std::string out;
    ASSERT_EQ(feed(*server, std::string_view(hello).substr(0, size), out), Step::needs_input)
        << size;
    ASSERT_TRUE(out.empty()) << size;
    ASSERT_EQ(feed(*server, std::string_view(hello).substr(size), out), Step::needs_input) << size;
    ASSERT_FALSE(out.empty()) << size;
  }
}

TEST_F(SslEngineTest, EachChangedByteOfAHelloNeverFinishes) {
  make();
  std::string hello;
  feed(*client_, "", hello);
  for (std::size_t index = 0; index < hello.size(); ++index) {
    std::string changed = hello;
    changed[index] = static_cast<char>(changed[index] ^ 0x55);
    auto server = SslEngine::make(contexts_->first(), SslEngine::Side::server).value();
    std::string out;
    EXPECT_NE(feed(*server, changed, out), Step::finished) << index;
  }
}

TEST_F(SslEngineTest, OtherProtocolsAreNamed) {
  make();
  std::string out;
  EXPECT_EQ(feed(*server_, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", out), Step::failed);
  EXPECT_EQ(server_->error(), make_error_code(Error::plain_http));
  make();
  EXPECT_EQ(feed(*server_, "SSH-2.0-OpenSSH_9.2p1\r\n", out), Step::failed);
  EXPECT_EQ(server_->error(), make_error_code(Error::not_tls));
}

// --- certificates, names and protocols -----------------------------------------------------------

class Certificates : public EngineTest {
 protected:
  /// Returns why the client rejects a server with this certificate.
  std::string client_rejection(const Identity& identity, const std::string& host = "a.example") {
    server_options_.identities = {identity};
    make(host);
    shake();
    if (client_step_ != Step::failed) return "accepted";
    EXPECT_EQ(server_step_, Step::failed) << "an alert tells the server";
    EXPECT_EQ(server_->error(), make_error_code(Error::peer_rejected_certificate));
    return client_->take_failure().text();
  }
  std::string client_rejection(const Issued& what, const std::string& host = "a.example") {
    return client_rejection(authority_.issue(what), host);
  }
};

TEST_F(Certificates, WrongNameHasTheNames) {
  const Issued what{.names = "DNS:www.example.org,DNS:*.cdn.example.org"};
  EXPECT_EQ(client_rejection(what, "api.example.org"),
            "wrong_name: api.example.org is not among www.example.org, *.cdn.example.org");
  EXPECT_EQ(client_rejection(what, "a.b.cdn.example.org"),
            "wrong_name: a.b.cdn.example.org is not among www.example.org, *.cdn.example.org");
  EXPECT_EQ(client_rejection(what, "x.cdn.example.org"), "accepted");
  EXPECT_EQ(client_rejection(what, "192.0.2.1"),
            "wrong_name: 192.0.2.1 is not among www.example.org, *.cdn.example.org");
  EXPECT_EQ(client_rejection({.names = "IP:192.0.2.1"}, "192.0.2.1"), "accepted");
  EXPECT_EQ(client_rejection({.common_name = "a.example"}, "a.example"),
            "wrong_name: a.example is not among no names")
      << "the common name is no name";
}

TEST_F(Certificates, HostHasOneNormalForm) {
  const Issued what{.names =
                        "DNS:a.example,DNS:*.b.example,IP:192.0.2.1,IP:2001:db8::1,IP:fe80::1"};
  for (const char* const host :
       {"a.example", "a.example.", "A.Example", "A.EXAMPLE.", "x.b.example.", "192.0.2.1",
        "::ffff:192.0.2.1", "::FFFF:C000:0201", "[::ffff:192.0.2.1]", "2001:db8::1",
        "2001:0DB8:0:0::0001", "[2001:db8::1]", "fe80::1%eth0", "fe80::1%25"}) {
    EXPECT_EQ(client_rejection(what, host), "accepted") << host;
  }
  EXPECT_EQ(server_->info().server_name, "") << "an address is no server name";
  EXPECT_EQ(client_rejection(what, "X.B.Example."), "accepted");
  EXPECT_EQ(server_->info().server_name, "x.b.example");
  for (const char* const host : {"a.example..", ".", "", "a b", "::ffff:192.0.2.256"}) {
    make_contexts();
    auto client = SslEngine::make(*client_context_, SslEngine::Side::client).value();
    const auto set = client->set_host(host, true, nullptr);
    EXPECT_TRUE(!set && set.error() == Error::invalid_options) << host;
  }
}

TEST_F(Certificates, DatesAreThoseOfThePlatform) {
  EXPECT_EQ(client_rejection({.names = "DNS:a.example", .not_after = test_start - 1s}),
            "certificate_expired: CN=test has expired on 2024-12-31 23:59:59 UTC");
  EXPECT_EQ(client_rejection({.names = "DNS:a.example", .not_before = test_start + 1h}),
            "certificate_not_yet_valid: CN=test is valid from 2025-01-01 01:00:00 UTC");
}

TEST_F(Certificates, CaMustBeTrusted) {
  const CertificateAuthority other("Other Root");
  EXPECT_EQ(client_rejection(other.issue({.names = "DNS:a.example"})),
            "unknown_ca: no trusted CA for CN=test, which names CN=Other Root");
  SelfSigned options;
  options.names = {"a.example"};
  options.not_before = test_start - 1h;
  EXPECT_EQ(client_rejection(Identity::self_signed(options).value()),
            "certificate_self_signed: CN=a.example");
}

TEST_F(Certificates, ChainMayHaveIntermediates) {
  const CertificateAuthority middle = authority_.intermediate({.common_name = "Middle"});
  EXPECT_EQ(client_rejection(middle.issue({.names = "DNS:a.example"})), "accepted");
}

TEST_F(Certificates, IdentitySendsItsOwnChainOnly) {
  const CertificateAuthority middle = authority_.intermediate({.common_name = "Middle"});
  const Identity whole = middle.issue({.names = "DNS:a.example"});
  const std::string& chain = whole.chain();
  const std::string_view end = "-----END CERTIFICATE-----\n";
  const std::string own = chain.substr(0, chain.find(end) + end.size());
  server_options_.client_certificates = ClientCertificates::requested;
  server_options_.client_trust.pem = middle.pem() + authority_.pem();
  EXPECT_EQ(client_rejection(Identity::from_pem(own, whole.key()).value()),
            "unknown_ca: no trusted CA for CN=test, which names CN=Middle");
}

TEST_F(Certificates, PurposeMustBeAServer) {
  EXPECT_EQ(client_rejection({.names = "DNS:a.example", .purpose = "clientAuth"})
                .substr(0, sizeof("certificate_rejected") - 1),
            "certificate_rejected");
}

TEST_F(Certificates, VerificationMayBeSwitchedOff) {
  client_options_.verification = Verification::any_name;
  server_options_.identities = {authority_.issue({.names = "DNS:other.example"})};
  make("a.example", false);
  shake();
  EXPECT_TRUE(connected());
  client_options_.verification = Verification::none;
  server_options_.identities = {CertificateAuthority("Other Root").issue({})};
  make("a.example", false);
  shake();
  EXPECT_TRUE(connected());
}

TEST_F(Certificates, ServerRequiresOneOfItsClients) {
  server_options_.client_certificates = ClientCertificates::required;
  server_options_.client_trust.pem = authority_.pem();
  make();
  shake();
  EXPECT_EQ(server_step_, Step::failed);
  EXPECT_EQ(server_->error(), make_error_code(Error::certificate_missing));
  client_options_.identity =
      authority_.issue({.common_name = "worker", .names = "URI:spiffe://a/b"});
  make();
  shake();
  ASSERT_TRUE(connected());
  const TlsInfo info = server_->info();
  ASSERT_NE(info.peer, nullptr);
  EXPECT_EQ(info.peer->subject, "CN=worker");
  EXPECT_EQ(info.peer->alternative_names, std::vector<std::string>{"URI:spiffe://a/b"});
  EXPECT_FALSE(info.peer->serial.empty());
}

TEST_F(Certificates, NamesOfAPeerArePrintable) {
  server_options_.client_certificates = ClientCertificates::required;
  server_options_.client_trust.pem = authority_.pem();
  client_options_.identity =
      authority_.issue({.common_name = "a\xc2\x9b\xe2\x80\xae",
                        .names = "DNS:a\xc2\x9b,URI:x\xe2\x80\xae,email:a\x1b@b,DNS:\xff"});
  make();
  shake();
  ASSERT_TRUE(connected());
  const TlsInfo info = server_->info();
  ASSERT_NE(info.peer, nullptr);
  EXPECT_EQ(info.peer->alternative_names,
            (std::vector<std::string>{"DNS:a\\xc2\\x9b", "URI:x\\xe2\\x80\\xae", "email:a\\x1b@b",
                                      "DNS:\\xff"}));
  EXPECT_EQ(info.peer->subject, "CN=a\\C2\\9B\\E2\\80\\AE");
}

TEST_F(Certificates, RequestedOneMayBeMissingButNotUntrusted) {
  server_options_.client_certificates = ClientCertificates::requested;
  server_options_.client_trust.pem = authority_.pem();
  make();
  shake();
  EXPECT_TRUE(connected());
  client_options_.identity = CertificateAuthority("Other Root").issue({.common_name = "worker"});
  make();
  shake();
  EXPECT_EQ(server_step_, Step::failed);
  EXPECT_EQ(server_->error(), make_error_code(Error::unknown_ca));
}

TEST_F(Certificates, ServerNameChoosesTheIdentity) {
  server_options_.identities = {
      authority_.issue({.common_name = "first", .names = "DNS:first.example"}),
      authority_.issue({.common_name = "exact", .names = "DNS:a.b.example"}),
      authority_.issue({.common_name = "wildcard", .names = "DNS:*.b.example"})};
  client_options_.verification = Verification::any_name;
  const auto chosen_for = [&](const std::string& host) {
    make(host, false);
    shake();
    return connected() ? client_->info().peer->subject : client_->take_failure().text();
  };
  EXPECT_EQ(chosen_for("a.b.example"), "CN=exact");
  EXPECT_EQ(chosen_for("A.B.EXAMPLE"), "CN=exact");
  EXPECT_EQ(chosen_for("x.b.example"), "CN=wildcard");
  EXPECT_EQ(chosen_for("x.y.b.example"), "CN=first") << "a wildcard stands for one label";
  EXPECT_EQ(chosen_for("b.example"), "CN=first");
  EXPECT_EQ(chosen_for("192.0.2.1"), "CN=first") << "an address is no server name";
  server_options_.unknown_name = UnknownName::rejected;
  EXPECT_EQ(chosen_for("x.b.example"), "CN=wildcard");
  EXPECT_EQ(chosen_for("192.0.2.1"), "CN=first");
  EXPECT_EQ(chosen_for("x.example").substr(0, 13), "peer_rejected");
  EXPECT_TRUE(server_->take_failure() == Error::unknown_server_name);
}

TEST_F(Certificates, ServerNameMayEndWithADot) {
  server_options_.identities = {
      authority_.issue({.common_name = "first", .names = "DNS:first.example"}),
      authority_.issue({.common_name = "second", .names = "DNS:A.example"})};
  server_options_.unknown_name = UnknownName::rejected;
  client_options_.verification = Verification::any_name;
  make_contexts();
  SSL_CTX_set_info_callback(client_context_.get(), [](const SSL* ssl, int event, int) {
    if (event != SSL_CB_HANDSHAKE_START) return;
    SSL_set_tlsext_host_name(const_cast<SSL*>(ssl), "a.Example.");
  });
  make_engines("a.example", false);
  shake();
  ASSERT_TRUE(connected());
  EXPECT_EQ(client_->info().peer->subject, "CN=second");
  EXPECT_EQ(server_->info().server_name, "a.example");
}

TEST_F(Certificates, ProtocolIsThePreferredOneOfTheServer) {
  const auto chosen = [&](std::vector<std::string> of_server, std::vector<std::string> of_client) {
    server_options_.protocols = std::move(of_server);
    client_options_.protocols = std::move(of_client);
    make();
    shake();
    return connected() ? client_->info().protocol : name_of_error(*server_);
  };
  EXPECT_EQ(chosen({"h2", "http/1.1"}, {"http/1.1", "h2"}), "h2");
  EXPECT_EQ(chosen({"http/1.1"}, {"h2", "http/1.1"}), "http/1.1");
  EXPECT_EQ(chosen({"http/1.1"}, {"h2"}), "no_common_protocol");
  EXPECT_EQ(chosen({"http/1.1"}, {}), "") << "a client without ALPN is served";
  EXPECT_EQ(chosen({}, {"h2"}), "") << "a server without protocols ignores ALPN";
}

}  // namespace
}  // namespace weir::tls::detail::ssl_engine_test
