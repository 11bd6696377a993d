// Tests that a server reads its files again: all or nothing, and without an effect on connections.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "weir/loop/detail/handover_state.hpp"
#include "weir/loop/detail/loop_group.hpp"
#include "weir/net/files.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/tls/test/tls_fixture.hpp"

namespace weir::tls::reload_test {
namespace {

class ReloadTest : public TlsTest {
 protected:
  void SetUp() override {
    TlsTest::SetUp();
    server_options_.identities.clear();
    server_options_.files = {{.chain = "/cert.pem", .key = "/key.pem"}};
    client_options_.verification = Verification::any_name;
  }
  Identity named(const std::string& name) const {
    return authority_.issue({.common_name = name, .names = "DNS:" + name + ".example"});
  }
  Task<> store(const Identity& identity) {
    EXPECT_TRUE(co_await files::write_file("/cert.pem", identity.chain()));
    EXPECT_TRUE(co_await files::write_file("/key.pem", identity.key()));
  }
  /// Returns the subject that a new client sees.
  Task<std::string> seen() {
    SecurePair pair = co_await secure_pair();
    co_return pair.client.tls()->peer->subject;
  }
  /// Connects, and takes the tickets. Returns "resumed" or "full".
  Task<std::string> resumed() {
    SecurePair pair = co_await secure_pair();
    EXPECT_TRUE(co_await pair.server.write("tickets"));
    EXPECT_EQ(co_await read_some(pair.client, 7), "tickets");
    co_return pair.server.tls()->resumed ? "resumed" : "full";
  }
};
INSTANTIATE_TEST_SUITE_P(On, ReloadTest, simulated_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ReloadTest, NewFilesServeLaterConnections) {
  client_options_.tickets = false;
  const auto talk = [this]() -> Task<> {
    co_await store(named("old"));
    SecurePair open = co_await secure_pair();
    EXPECT_EQ(open.client.tls()->peer->subject, "CN=old");
    co_await store(named("new"));
    EXPECT_EQ(co_await seen(), "CN=old") << "nothing is read before load()";
    EXPECT_TRUE(co_await server_->load());
    EXPECT_EQ(co_await seen(), "CN=new");
    EXPECT_TRUE(co_await open.client.write("still open"));
    EXPECT_EQ(co_await read_some(open.server, 10), "still open");
  };
  run(talk());
}

TEST_P(ReloadTest, FaultyFilesChangeNothing) {
  const auto talk = [this]() -> Task<> {
    co_await store(named("old"));
    EXPECT_EQ(co_await seen(), "CN=old");
    const std::uint64_t generation = server_->generation();
    // The chain is replaced before the key, as an updating program may do.
    EXPECT_TRUE(co_await files::write_file("/cert.pem", named("new").chain()));
    auto loaded = co_await server_->load();
    EXPECT_TRUE(!loaded && loaded.error() == Error::key_mismatch);
    EXPECT_EQ(loaded.error().text(),
              "key_mismatch: /cert.pem, /key.pem: the key does not belong to CN=new");
    EXPECT_TRUE(co_await files::write_file("/cert.pem", "no certificate"));
    loaded = co_await server_->load();
    EXPECT_TRUE(!loaded && loaded.error() == Error::invalid_certificate);
    const Identity expired = authority_.issue({.common_name = "late",
                                               .names = "DNS:late.example",
                                               .not_after = test_start - std::chrono::hours(1)});
    co_await store(expired);
    loaded = co_await server_->load();
    EXPECT_TRUE(!loaded && loaded.error() == Error::certificate_expired);
    EXPECT_EQ(server_->generation(), generation);
    EXPECT_EQ(co_await seen(), "CN=old");
  };
  run(talk());
}

TEST_P(ReloadTest, TicketKeysFromOutsideReplaceThoseOfTheServer) {
  const auto talk = [this]() -> Task<> {
    co_await store(named("old"));
    EXPECT_EQ(co_await resumed(), "full");
    EXPECT_EQ(co_await resumed(), "resumed");
    EXPECT_TRUE(co_await server_->load());
    EXPECT_EQ(co_await resumed(), "resumed") << "a reload keeps the keys";
    const auto keys = TicketKeys::random();
    server_->set_ticket_keys(*keys);
    EXPECT_EQ(co_await resumed(), "full");
    EXPECT_EQ(co_await resumed(), "resumed");
  };
  run(talk());
}

/// Tests of a server that loads changed files on its own.
class WatchTest : public ReloadTest {
 protected:
  WatchTest() { server_options_.watch.emplace(); }
  /// Runs `body` while the server watches its files.
  template <class Body>
  void run_watched(Body body) {
    const auto both = [&]() -> Task<> {
      co_await store(named("old"));
      co_await make_sides();
      const auto within = [&](Scope& scope) -> Task<> {
        scope.spawn(server_->watch());
        scope.spawn(server_->watch());  // that of another core
        co_await body();
        scope.cancel();
      };
      static_cast<void>(co_await with_scope(OnFailure::isolate, within));
    };
    run(both());
  }
  /// Returns the number of lines that begin with `start`.
  std::ptrdiff_t lines(const std::string& start) const {
    return std::ranges::count_if(memory_->logged(),
                                 [&](const std::string& line) { return line.starts_with(start); });
  }
  static constexpr const char* loaded = "weir: tls: loaded changed files: ";
  static constexpr const char* rejected = "weir: tls: changed files are not used: ";
  static constexpr Duration debounce = 100ms;
  static constexpr Duration settled = 2s + debounce + 400ms;  // a poll, and a moment for the load
};
INSTANTIATE_TEST_SUITE_P(On, WatchTest, simulated_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(WatchTest, ChangedFilesServeLaterConnections) {
  client_options_.tickets = false;
  run_watched([this]() -> Task<> {
    SecurePair open = co_await secure_pair();
    static_cast<void>(co_await sleep(10s));
    EXPECT_EQ(lines("weir: tls"), 0) << "nothing has changed";
    co_await store(named("new"));
    static_cast<void>(co_await sleep(settled));
    EXPECT_EQ(co_await seen(), "CN=new");
    EXPECT_EQ(lines(loaded + std::string("new.example until ")), 1);
    static_cast<void>(co_await sleep(10s));
    EXPECT_EQ(lines("weir: tls"), 1);
    EXPECT_TRUE(co_await open.client.write("still open"));
    EXPECT_EQ(co_await read_some(open.server, 10), "still open");
  });
}

TEST_P(WatchTest, HalfWrittenPairIsLoadedWhenItIsComplete) {
  run_watched([this]() -> Task<> {
    const Identity fresh = named("new");
    EXPECT_TRUE(co_await files::write_file("/cert.pem", fresh.chain()));
    static_cast<void>(co_await sleep(20s));
    EXPECT_EQ(co_await seen(), "CN=old");
    EXPECT_EQ(lines(rejected + std::string("key_mismatch: /cert.pem, /key.pem: ")), 1)
        << "one line for one change";
    EXPECT_TRUE(co_await files::remove("/key.pem"));
    static_cast<void>(co_await sleep(20s));
    EXPECT_EQ(lines(rejected + std::string("unreadable_file: /key.pem: ")), 1);
    EXPECT_EQ(lines(rejected), 2);
    EXPECT_TRUE(co_await files::write_file("/key.pem", fresh.key()));
    static_cast<void>(co_await sleep(settled));
    EXPECT_EQ(co_await seen(), "CN=new");
    EXPECT_EQ(lines(loaded), 1);
  });
}

TEST_P(WatchTest, UnstableFilesAreNotLoaded) {
  run_watched([this]() -> Task<> {
    // The poll is after 2 s, and the server waits for at most 1 s.
    const Instant end = platform_->now() + 2800ms;
    for (int change = 0; platform_->now() < end; ++change) {
      co_await store(named("number" + std::to_string(change)));
      static_cast<void>(co_await sleep(debounce / 2));
    }
    EXPECT_EQ(lines(loaded), 0);
    static_cast<void>(co_await sleep(settled));
    EXPECT_EQ(lines(loaded), 1);
  });
}

TEST_P(WatchTest, FilesThatNeverRestAreLoadedInTheEnd) {
  client_options_.tickets = false;
  run_watched([this]() -> Task<> {
    const Identity fresh = named("new");
    EXPECT_TRUE(co_await files::write_file("/cert.pem", fresh.chain()));
    EXPECT_TRUE(co_await files::write_file("/key.pem", fresh.key()));
    const Instant end = platform_->now() + 2s + 10 * debounce + 400ms;
    std::string text = fresh.chain();
    while (platform_->now() < end) {
      text += "\n";  // another content with the same certificate
      EXPECT_TRUE(co_await files::write_file("/cert.pem", text));
      static_cast<void>(co_await sleep(debounce / 2));
    }
    EXPECT_EQ(lines(loaded), 1);
    EXPECT_EQ(co_await seen(), "CN=new");
  });
}

TEST_P(WatchTest, PollReadsNoUnchangedFile) {
  run_watched([this]() -> Task<> {
    const auto calls = [this] {
      std::uint64_t all = 0;
      for (const PoolLaneReport& each : shared_pool(*loop_).report().lanes) all += each.finished;
      return all;
    };
    static_cast<void>(co_await sleep(settled));  // finds that the loaded files are unchanged
    const std::uint64_t before = calls();
    static_cast<void>(co_await sleep(20s));
    EXPECT_EQ(calls() - before, 2 * 10U) << "the status of two files, in each poll of one core";
    // The same bytes in another file are read, once.
    EXPECT_TRUE(co_await files::rename("/cert.pem", "/old.pem"));
    const auto chain = co_await files::read_file("/old.pem");
    EXPECT_TRUE(co_await files::write_file("/cert.pem", *chain));
    const std::uint64_t changed = calls();
    static_cast<void>(co_await sleep(20s));
    EXPECT_GT(calls() - changed, 2 * 10U);
    EXPECT_LT(calls() - changed, 4 * 10U);
    EXPECT_EQ(lines("weir: tls"), 0);
  });
}

TEST_P(WatchTest, FilesThatReturnSoonAfterALoadAreLoadedAgain) {
  client_options_.tickets = false;
  run_watched([this]() -> Task<> {
    static_cast<void>(co_await sleep(settled));  // the server knows the status of these files
    const auto rename = [](const std::string& from, const std::string& to) -> Task<> {
      for (const std::string name : {"cert.pem", "key.pem"}) {
        EXPECT_TRUE(co_await files::rename("/" + from + name, "/" + to + name));
      }
    };
    co_await rename("", "old-");
    co_await store(named("new"));
    EXPECT_TRUE(co_await server_->load());
    EXPECT_EQ(co_await seen(), "CN=new");
    co_await rename("old-", "");
    static_cast<void>(co_await sleep(settled));
    EXPECT_EQ(co_await seen(), "CN=old");
  });
}

TEST_P(WatchTest, CertificateThatBecomesValidIsLoaded) {
  run_watched([this]() -> Task<> {
    const Identity later = authority_.issue(
        {.common_name = "new", .names = "DNS:new.example", .not_before = test_start + 1min});
    co_await store(later);
    static_cast<void>(co_await sleep(30s));
    EXPECT_EQ(lines(rejected + std::string("certificate_not_yet_valid: new.example ")), 1);
    static_cast<void>(co_await sleep(40s));
    EXPECT_EQ(lines(loaded), 1);
    EXPECT_EQ(lines(rejected), 1);
  });
}

TEST_P(WatchTest, FleetSharesTheTicketKeysOfAFile) {
  const auto key = [](char with) { return std::string(80, with); };
  server_options_.ticket_key_file = "/tickets.key";
  const auto prepare = [&]() -> Task<> {
    EXPECT_TRUE(co_await files::write_file("/tickets.key", key('a')));
  };
  run(prepare());
  run_watched([&, this]() -> Task<> {
    EXPECT_EQ(co_await resumed(), "full");
    // The next key is current, and the one before is accepted.
    EXPECT_TRUE(co_await files::write_file("/tickets.key", key('b') + key('a')));
    static_cast<void>(co_await sleep(settled));
    EXPECT_EQ(co_await resumed(), "resumed");
    EXPECT_TRUE(co_await files::write_file("/tickets.key", key('c') + "half"));
    static_cast<void>(co_await sleep(settled));
    EXPECT_EQ(lines(rejected + std::string("invalid_options: /tickets.key: ")), 1);
    EXPECT_EQ(co_await resumed(), "resumed") << "the old keys stay";
    // Another machine of the fleet has the same file.
    ServerOptions other = server_options_;
    other.watch.reset();
    EXPECT_TRUE(co_await files::write_file("/tickets.key", key('b')));
    Server machine(other);
    EXPECT_TRUE(co_await machine.load());
    acceptor_ = std::make_unique<Acceptor>(*loop_, machine);
    EXPECT_EQ(co_await resumed(), "resumed");
    acceptor_ = std::make_unique<Acceptor>(*loop_, *server_);
  });
}

TEST_P(WatchTest, ChangedTrustEndsOlderTickets) {
  server_options_.client_certificates = ClientCertificates::requested;
  server_options_.client_trust.files = {"/trust.pem"};
  const auto prepare = [&]() -> Task<> {
    EXPECT_TRUE(co_await files::write_file("/trust.pem", authority_.pem()));
  };
  run(prepare());
  run_watched([this]() -> Task<> {
    EXPECT_EQ(co_await resumed(), "full");
    EXPECT_EQ(co_await resumed(), "resumed");
    const std::string more = authority_.pem() + CertificateAuthority("Other Root").pem();
    EXPECT_TRUE(co_await files::write_file("/trust.pem", more));
    static_cast<void>(co_await sleep(settled));
    EXPECT_EQ(lines(loaded), 1);
    EXPECT_EQ(co_await resumed(), "full");
    EXPECT_EQ(co_await resumed(), "resumed");
  });
}

TEST_P(ReloadTest, ReplacedTrustEndsTheProofOfTheOtherSide) {
  server_options_.client_certificates = ClientCertificates::required;
  server_options_.client_trust.files = {"/clients.pem"};
  server_options_.session_lifetime = 2h;
  client_options_.trust = {.system = false, .files = {"/servers.pem"}, .pem = {}};
  client_options_.session_lifetime = 1h;
  client_options_.identity = named("alice");
  const auto talk = [this]() -> Task<> {
    const std::string same = authority_.pem();
    const std::string other = same + CertificateAuthority("Other Root").pem();
    co_await store(named("old"));
    EXPECT_TRUE(co_await files::write_file("/clients.pem", same));
    EXPECT_TRUE(co_await files::write_file("/servers.pem", same));
    SecurePair pair = co_await secure_pair();
    const auto ended = [&pair, this](Duration later) {
      const WallTime then = platform_->wall_time() + later;
      return std::pair(pair.server.tls()->proof_ended(then), pair.client.tls()->proof_ended(then));
    };
    EXPECT_EQ(ended(1h), std::pair(false, false));
    EXPECT_EQ(ended(1h + 1s), std::pair(false, true));
    EXPECT_EQ(ended(2h), std::pair(false, true));
    EXPECT_EQ(ended(2h + 1s), std::pair(true, true));
    EXPECT_TRUE(co_await server_->load());
    EXPECT_TRUE(co_await client_->load());
    EXPECT_EQ(ended(0s), std::pair(false, false)) << "the CAs are the same";
    EXPECT_TRUE(co_await files::write_file("/clients.pem", other));
    EXPECT_TRUE(co_await server_->load());
    EXPECT_EQ(ended(0s), std::pair(true, false));
    EXPECT_TRUE(co_await files::write_file("/servers.pem", other));
    EXPECT_TRUE(co_await client_->load());
    EXPECT_EQ(ended(0s), std::pair(true, true));
    const SecurePair fresh = co_await secure_pair();
    EXPECT_FALSE(fresh.server.tls()->proof_ended(platform_->wall_time()));
    EXPECT_FALSE(fresh.client.tls()->proof_ended(platform_->wall_time()));
  };
  run(talk());
}

TEST_P(ReloadTest, SideWithoutAVerifiedCertificateHasNoProof) {
  client_options_.verification = Verification::none;
  const auto talk = [this]() -> Task<> {
    co_await store(named("old"));
    const SecurePair pair = co_await secure_pair();
    EXPECT_FALSE(pair.server.tls()->proof_ended(WallTime::max() - 1s));
    EXPECT_FALSE(pair.client.tls()->proof_ended(WallTime::max() - 1s));
    EXPECT_NE(pair.client.tls()->peer, nullptr);
  };
  run(talk());
}

TEST_P(ReloadTest, OwnTicketKeysRotate) {
  const auto talk = [this]() -> Task<> {
    co_await store(named("old"));
    // A minute before the keys rotate.
    const Duration period = 8h;
    const Duration into = platform_->now().time_since_epoch() % period;
    static_cast<void>(co_await sleep(period - into - 1min));
    EXPECT_EQ(co_await resumed(), "full");
    static_cast<void>(co_await sleep(2min));
    EXPECT_EQ(co_await resumed(), "resumed") << "the key is the previous one";
    EXPECT_EQ(co_await resumed(), "resumed") << "of the current key";
    static_cast<void>(co_await sleep(7h));
    EXPECT_EQ(co_await resumed(), "resumed");
    static_cast<void>(co_await sleep(16h));
    EXPECT_EQ(co_await resumed(), "full");
  };
  run(talk());
}

TEST_P(ReloadTest, ServersWithOtherOptionsPassTheirTicketsSeparately) {
  const auto talk = [this]() -> Task<> {
    co_await store(named("old"));
    std::vector<ServerOptions> others(8, server_options_);
    others[1].protocols = {"h2"};
    others[2].version_min = TlsVersion::tls_1_3;
    others[3].unknown_name = UnknownName::rejected;
    for (std::size_t index = 4; index < 7; ++index) {
      others[index].client_certificates = ClientCertificates::requested;
      others[index].client_trust.pem = authority_.pem();
    }
    others[5].client_certificates = ClientCertificates::required;
    others[6].client_trust.pem += CertificateAuthority("Other Root").pem();
    others[7].files.push_back(others[7].files.front());
    auto& state = loop_->group().slots().get<loop::HandoverState>();
    std::size_t size = 0;
    for (const ServerOptions& each : others) {
      Server server(each);
      const auto loaded = co_await server.load();
      EXPECT_TRUE(loaded) << loaded.error().text();
      const std::size_t larger = state.to_bytes().size();
      EXPECT_GT(larger, size) << "it replaces the secret of another server";
      size = larger;
    }
  };
  run(talk());
}

TEST_P(ReloadTest, NewerProcessTakesTheTicketsOfTheOlderOne) {
  const auto talk = [this]() -> Task<> {
    co_await store(named("old"));
    EXPECT_EQ(co_await resumed(), "full");
    // A hot restart passes the state of the older process to the newer one.
    auto& state = loop_->group().slots().get<loop::HandoverState>();
    std::string passed = state.to_bytes();
    Server stranger(server_options_);
    EXPECT_TRUE(co_await stranger.load());
    acceptor_ = std::make_unique<Acceptor>(*loop_, stranger);
    EXPECT_EQ(co_await resumed(), "full") << "a server with a secret of its own";
    acceptor_ = std::make_unique<Acceptor>(*loop_, *server_);
    EXPECT_EQ(co_await resumed(), "full");
    state.receive(std::move(passed));
    Server newer(server_options_);
    EXPECT_TRUE(co_await newer.load());
    acceptor_ = std::make_unique<Acceptor>(*loop_, newer);
    EXPECT_EQ(co_await resumed(), "resumed");
    // Both processes rotate to the same key.
    static_cast<void>(co_await sleep(9h));
    acceptor_ = std::make_unique<Acceptor>(*loop_, *server_);
    EXPECT_EQ(co_await resumed(), "full") << "the ticket is too old";
    acceptor_ = std::make_unique<Acceptor>(*loop_, newer);
    EXPECT_EQ(co_await resumed(), "resumed");
    acceptor_.reset();
  };
  run(talk());
}

}  // namespace
}  // namespace weir::tls::reload_test
