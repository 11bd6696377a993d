// Tests that memory_bound() of a server with TLS holds when clients do their worst, and that it is
// not far too large. The memory of OpenSSL is part of what the tests measure.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/test/h2_client_fixture.hpp"
#include "weir/http/test/memory_bound_fixture.hpp"
#include "weir/tls/certificate/detail/certificate.hpp"
#include "weir/tls/detail/contexts.hpp"
#include "weir/tls/detail/ssl_engine.hpp"
#include "weir/tls/options.hpp"
#include "weir/tls/server.hpp"

namespace weir::http::https_memory_test {
namespace {

using tls::detail::RecordLayer;
using tls::detail::SslEngine;

class HttpsMemoryTest : public MemoryBoundTest {
 protected:
  HttpsMemoryTest() { server_options_.identities = {identity_of({"127.0.0.1"})}; }
  ~HttpsMemoryTest() override { clients_.clear(); }

  tls::Identity identity_of(std::vector<std::string> names) {
    tls::SelfSigned certificate;
    certificate.names = std::move(names);
    certificate.not_before = platform_.wall_time();
    return tls::Identity::self_signed(certificate).value();
  }
  /// Requires certificates of the clients, which have one with very many names.
  void use_client_certificates(std::size_t names) {
    std::vector<std::string> all;
    for (std::size_t index = 0; index < names; ++index) {
      all.push_back(
          {static_cast<char>('a' + index % 26), static_cast<char>('a' + index / 26 % 26)});
    }
    const tls::Identity identity = identity_of(std::move(all));
    client_options_.identity = identity;
    server_options_.client_certificates = tls::ClientCertificates::required;
    server_options_.client_trust.pem = identity.chain();
  }
  void begin_https() {
    const std::size_t before = heap_bytes();
    const tls::detail::ClientSnapshot none{.trust = {},
                                           .store = tls::detail::make_store({}).value()};
    client_options_.verification = tls::Verification::none;
    client_context_ = tls::detail::make_client_context(client_options_, none).value();
    clients_bytes_ += heap_bytes() - before;
    tls_ = std::make_shared<tls::Server>(server_options_);
    bound_ = memory_bound(limits_, {.tls = &tls_->options()});
    of_tls_ = tls::memory_bound(tls_->options());
    begin();
  }
  void warm_up() override {
    MemoryPeer& first = connect();
    connect_securely(first);
    talk(first, sealed(first, "GET /large/1 HTTP/1.1\r\nHost: h\r\n\r\n"));
    end(first);
    first.reset();
  }

  /// Calls `work` of a client, whose memory does not count.
  template <class Work>
  void as_client(const Work& work) {
    const std::size_t before = heap_bytes();
    work();
    clients_bytes_ += heap_bytes() - before;
  }
  static Buffer buffer_of(std::string_view bytes) {
    Buffer buffer = Buffer::with_capacity(static_cast<std::uint32_t>(bytes.size() + 1));
    std::memcpy(buffer.room().data(), bytes.data(), bytes.size());
    buffer.commit(bytes.size());
    return buffer;
  }
  /// Returns the next bytes of the client's handshake.
  std::string answer(MemoryPeer& peer, std::string_view received) {
    std::string bytes;
    as_client([&] {
      auto& engine = clients_[&peer];
      if (engine == nullptr) {
        engine = SslEngine::make(*client_context_, SslEngine::Side::client).value();
        engine->set_time(platform_.wall_time());
      }
      Buffer input = buffer_of(received);
      Buffer output;
      step_ = engine->handshake(input, output);
      bytes = output.text();
    });
    return bytes;
  }
  /// Performs the handshake except for the last flight of the client, which it returns.
  std::string last_flight(MemoryPeer& peer) {
    std::string flight = answer(peer, talk(peer, answer(peer, "")));
    EXPECT_NE(step_, SslEngine::Step::failed);
    return flight;
  }
  void connect_securely(MemoryPeer& peer) {
    const std::string rest = talk(peer, last_flight(peer));
    if (step_ != SslEngine::Step::finished) answer(peer, rest);
    EXPECT_EQ(step_, SslEngine::Step::finished);
  }
  std::string sealed(MemoryPeer& peer, std::string_view text) {
    std::string bytes;
    as_client([&] {
      while (!text.empty()) {
        const std::string_view part = text.substr(0, RecordLayer::plain_max);
        Buffer output;
        EXPECT_FALSE(clients_[&peer]->seal(to_bytes(part), output));
        bytes += output.text();
        text.remove_prefix(part.size());
      }
    });
    return bytes;
  }
  /// Frees the memory of a client.
  void end(MemoryPeer& peer) {
    as_client([&] { clients_.erase(&peer); });
  }
  /// Measures clients that stop before their last flight, after a first message of 12 KiB.
  void stall_handshakes(TlsVersion version) {
    client_options_.version_max = version;
    client_options_.protocols = std::vector<std::string>(60, std::string(200, 'p'));
    client_options_.protocols.emplace_back("http/1.1");
    begin_https();
    const std::size_t most = worst(1, [&](MemoryPeer& peer, int) {
      last_flight(peer);
      end(peer);
    });
    expect_bounded(most);
    expect_each(most, of_tls_.handshake);  // the first message is used
    EXPECT_GE(5 * most, limits_.connections_max * of_tls_.handshake) << "the bound is too large";
  }
  void expect_each(std::size_t most, std::uint64_t bound) {
    EXPECT_LE(most / limits_.connections_max, bound);
  }

  /// The client's end of a simulated connection, which belongs to no server.
  static constexpr std::size_t other_end = 3 * 1024;
  /// Frames and an idle connection; see memory_bound().
  static constexpr std::size_t frames = 18 * 1024;

  tls::ServerOptions server_options_;
  tls::ClientOptions client_options_;
  tls::detail::SslContextPtr client_context_;
  tls::ServerMemoryBound of_tls_{};
  std::map<MemoryPeer*, std::unique_ptr<SslEngine>> clients_;
  SslEngine::Step step_ = SslEngine::Step::needs_input;
};

TEST_F(HttpsMemoryTest, HoldsForIdleConnections) {
  begin_https();
  const std::size_t most = worst(1, [&](MemoryPeer& peer, int) {
    connect_securely(peer);
    talk(peer, sealed(peer, "GET /large/1 HTTP/1.1\r\nHost: h\r\n\r\n"));
    end(peer);
  });
  EXPECT_LE(most / limits_.connections_max, bound_.idle_connection + other_end);
}

TEST_F(HttpsMemoryTest, HoldsForIdleConnectionsWithAPartOfARecord) {
  begin_https();
  std::map<MemoryPeer*, std::string> records;
  std::size_t sent = 0;
  const std::size_t most = worst(20, [&](MemoryPeer& peer, int step) {
    std::string& record = records[&peer];
    if (step == 0) {
      connect_securely(peer);
      talk(peer, sealed(peer, "GET /large/1 HTTP/1.1\r\nHost: h\r\n\r\n"));
      as_client([&] { record = std::string(); });
      record = sealed(peer, std::string(RecordLayer::plain_max, 'x'));
      record.pop_back();
      end(peer);
    }
    const std::size_t part = record.size() / 20;
    const std::size_t begin = static_cast<std::size_t>(step) * part;
    sent += peer.send(std::string_view(record).substr(begin, step == 19 ? record.npos : part));
  });
  EXPECT_GT(sent, 0U);
  const std::uint64_t each = bound_.idle_connection + bound_.incomplete_record;
  // The record itself is the client's, and lies in the test.
  EXPECT_LE(most / limits_.connections_max, each + other_end + records.begin()->second.capacity());
  EXPECT_GT(most / limits_.connections_max, bound_.idle_connection + RecordLayer::plain_max);
  EXPECT_EQ(bound_.idle(), limits_.connections_max * each + bound_.core);
}

TEST_F(HttpsMemoryTest, Http2AddsOneSmallBlockToAnIdleConnection) {
  begin_https();
  const auto growth = [this](std::vector<std::string> protocols, std::string_view first) {
    as_client([&] {
      const tls::detail::ClientSnapshot none{.trust = {},
                                             .store = tls::detail::make_store({}).value()};
      client_options_.protocols = std::move(protocols);
      client_context_ = tls::detail::make_client_context(client_options_, none).value();
    });
    const std::size_t blocks_before = blocks();
    const std::size_t before = bytes();
    MemoryPeer& peer = connect();
    connect_securely(peer);
    peer.send(sealed(peer, first));
    settle();
    as_client([&] { peer.take(); });  // the buffer of the peer grows with what it receives
    end(peer);
    return std::pair(bytes() - before, blocks() - blocks_before);
  };
  const auto [http1, blocks1] = growth({"http/1.1"}, "GET /large/1 HTTP/1.1\r\nHost: h\r\n\r\n");
  growth({"h2"}, frames::preface() + frames::get(1, "/large/1"));  // what all connections share
  const auto [http2, blocks2] = growth({"h2"}, frames::preface() + frames::get(1, "/large/1"));
  EXPECT_EQ(blocks2, blocks1 + 1);
  if constexpr (!BlockPool::caches_free_blocks) {
    EXPECT_LE(http2, http1 + 1024);  // the other end holds a part
  }
}

TEST_F(HttpsMemoryTest, HoldsForFirstMessagesThatNeverEnd) {
  begin_https();
  const std::string start("\x16\x03\x01\x3f\xff\x01\0\xff\xff", 9);
  const std::string more(1000, 'h');
  const std::size_t most =
      worst(16, [&](MemoryPeer& peer, int step) { peer.send(step == 0 ? start : more); });
  expect_bounded(most);
  expect_each(most, of_tls_.first_message + frames);
}

TEST_F(HttpsMemoryTest, HoldsForHandshakesOfTls13ThatStall) {
  stall_handshakes(TlsVersion::tls_1_3);
}

TEST_F(HttpsMemoryTest, HoldsForHandshakesOfTls12ThatStall) {
  stall_handshakes(TlsVersion::tls_1_2);
}

TEST_F(HttpsMemoryTest, HoldsForClientsWithLargeCertificates) {
  use_client_certificates(3800);
  begin_https();
  std::map<MemoryPeer*, std::string> flights;
  std::size_t of_handshakes = 0;
  std::size_t of_connections = 0;
  const std::size_t most = worst(2, [&](MemoryPeer& peer, int step) {
    constexpr std::size_t left = 10;  // a part of the Finished
    std::string& flight = flights[&peer];
    if (step == 0) {
      flight = last_flight(peer);
      end(peer);
      EXPECT_GT(flight.size(), 15'000U);
      peer.send(std::string_view(flight).substr(0, flight.size() - left));
      settle();
      of_handshakes = bytes();
    } else {
      peer.send(std::string_view(flight).substr(flight.size() - left));
      settle();
      of_connections = bytes();
    }
  });
  expect_bounded(most);
  expect_each(of_handshakes, of_tls_.handshake);
  EXPECT_GE(8 * of_handshakes, limits_.connections_max * of_tls_.handshake) << "it is too large";
  expect_each(of_connections, bound_.idle_connection + other_end + flights.begin()->second.size());
  EXPECT_GE(8 * of_connections, limits_.connections_max * bound_.idle_connection);
}

TEST_F(HttpsMemoryTest, HoldsForIncompleteRecordsAndUnreadAnswers) {
  begin_https();
  std::string batch;
  for (int i = 0; i < 100; ++i) batch += "GET /large/2000 HTTP/1.1\r\nHost: h\r\n\r\n";
  expect_bounded(worst(20, [&](MemoryPeer& peer, int step) {
    if (step == 0) connect_securely(peer);
    peer.send(sealed(peer, batch));
    if (step != 19) return;
    const std::string record = sealed(peer, std::string(RecordLayer::plain_max, 'x'));
    peer.send(std::string_view(record).substr(0, record.size() - 1));
  }));
}

TEST_F(HttpsMemoryTest, HoldsForTheObjectsOfACore) {
  const std::size_t before = heap_bytes();
  begin_https();
  const std::size_t core = heap_bytes() - before - clients_bytes_;
  EXPECT_LE(core, of_tls_.core);
  RecordProperty("bytes", std::to_string(core) + " of " + std::to_string(of_tls_.core));
}

TEST(HttpsMemoryParts, GrowWithTheOptions) {
  tls::ServerOptions plain;
  plain.protocols = {"http/1.1"};
  const MemoryBound without = memory_bound({.connections_max = 1000}, {});
  const MemoryBound with = memory_bound({.connections_max = 1000}, {.tls = &plain});
  const tls::ServerMemoryBound part = tls::memory_bound(plain);
  EXPECT_EQ(with.idle_connection, without.idle_connection + part.idle_connection);
  EXPECT_EQ(with.connection, without.connection + part.connection);
  // Idle connections that are closed for others.
  const std::uint64_t evicted = 48 * (part.idle_connection + part.incomplete_record);
  EXPECT_EQ(with.core, without.core + part.core + 256 * part.handshake + evicted)
      << "concurrency_max";
  const MemoryBound few = memory_bound({.connections_max = 10}, {.tls = &plain});
  EXPECT_EQ(few.core, without.core + part.core + 10 * part.handshake + evicted);
  EXPECT_LT(part.idle_connection, 2048U);
  const tls::ServerOptions both;  // their clients may choose HTTP/2
  EXPECT_GT(memory_bound({.connections_max = 1000}, {.tls = &both}).connection, with.connection);
  EXPECT_EQ(memory_bound({.connections_max = 1000}, {.tls = &both}).total(),
            memory_bound({.connections_max = 1000}, {.tls = &both, .http2 = true}).total());
  tls::ServerOptions more;
  more.files.resize(3);
  EXPECT_GT(tls::memory_bound(more).core, part.core);
  more.client_certificates = tls::ClientCertificates::requested;
  EXPECT_GT(tls::memory_bound(more).idle_connection, part.idle_connection);
  EXPECT_GT(tls::memory_bound(more).handshake, part.handshake);
  more.limits.input_bytes_max = std::size_t{64} << 20;
  const MemoryBound large = memory_bound({.connections_max = 1000}, {.tls = &more});
  EXPECT_GT(large.connection, without.connection + (std::uint64_t{64} << 20));
  more.limits.input_bytes_max = ~std::size_t{0};
  EXPECT_EQ(memory_bound({}, {.tls = &more}).connection, ~std::uint64_t{0});
}

}  // namespace
}  // namespace weir::http::https_memory_test
