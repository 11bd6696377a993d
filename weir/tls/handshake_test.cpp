// Tests of handshakes over streams: limits, failures, reloading, and what is counted.
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/test/sweep_budget.hpp"
#include "weir/task/timeout.hpp"
#include "weir/tls/certificate/detail/certificate.hpp"
#include "weir/tls/detail/contexts.hpp"
#include "weir/tls/detail/session_cache.hpp"
#include "weir/tls/detail/ssl_engine.hpp"
#include "weir/tls/detail/tls_counters.hpp"
#include "weir/tls/test/tls_fixture.hpp"

namespace weir::tls::handshake_test {
namespace {

class HandshakeTest : public TlsTest {
 protected:
  /// Returns the first message of a client.
  Task<std::string> hello_of_client() {
    co_await make_sides();
    Pair pair = co_await connect_pair();
    AnyStream client_end(std::move(pair.client));
    auto connecting = connector_->connect(std::move(client_end), host_);
    const auto given_up = co_await timeout(1s, std::move(connecting));
    EXPECT_FALSE(given_up && *given_up);
    const auto hello = co_await read_to_end(pair.server);
    co_return hello.first;
  }
  /// Sends `bytes` to an acceptor and ends. Returns why the handshake has failed, and what the
  /// acceptor has answered.
  Task<std::pair<Failure, std::string>> accept_bytes(std::string_view bytes, bool ends) {
    co_await make_sides();
    Pair plain = co_await connect_pair();
    EXPECT_TRUE(co_await plain.client.write(bytes));
    if (ends) {
      EXPECT_TRUE(plain.client.finish_writing());
    }
    AnyStream end(std::move(plain.server));
    auto accepted = co_await acceptor_->accept(std::move(end));
    EXPECT_FALSE(accepted);
    auto answer = co_await read_to_end(plain.client);
    co_return std::pair(accepted.error(), std::move(answer.first));
  }
  detail::SslContextPtr client_context() {
    detail::ClientSnapshot snapshot{.trust = client_options_.trust.pem,
                                    .store = detail::make_store(client_options_.trust.pem).value()};
    return detail::make_client_context(client_options_, snapshot).value();
  }
  std::unique_ptr<detail::SslEngine> make_client(ssl_ctx_st& context,
                                                 std::shared_ptr<detail::SessionCache> sessions) {
    auto client = detail::SslEngine::make(context, detail::SslEngine::Side::client).value();
    client->set_time(test_start);
    EXPECT_TRUE(client->set_host(host_, true, std::move(sessions)));
    return client;
  }
  /// Performs the handshake of a client, whose steps take no turns.
  static Task<detail::SslEngine::Step> perform(detail::SslEngine& client, weir::Stream& stream) {
    Buffer input;
    for (;;) {
      Buffer output;
      const auto step = client.handshake(input, output);
      if (!output.empty()) {
        EXPECT_TRUE(co_await stream.write(output.bytes()));
      }
      if (step != detail::SslEngine::Step::needs_input) co_return step;
      auto bytes = co_await stream.read();
      if (!bytes) co_return detail::SslEngine::Step::failed;
      input = std::move(*bytes);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(On, HandshakeTest, every_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(WithOpensslRecordsOn, HandshakeTest, every_net_kind_with_openssl_records(),
                         [](const auto& info) { return std::string(info.param.name); });

/// Tests that need virtual time.
class SimulatedHandshakeTest : public HandshakeTest {};
INSTANTIATE_TEST_SUITE_P(On, SimulatedHandshakeTest, simulated_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(HandshakeTest, ResumesTheSessionOfAnEarlierConnection) {
  const auto talk = [this]() -> Task<> {
    for (int round = 0; round < 3; ++round) {
      SecurePair pair = co_await secure_pair();
      EXPECT_EQ(pair.server.tls()->resumed, round > 0) << round;
      EXPECT_TRUE(co_await pair.server.write("hello")) << "the tickets travel with it";
      EXPECT_EQ(co_await read_some(pair.client, 5), "hello");
    }
    const detail::TlsCounters& counters = detail::TlsCounters::of(*loop_);
    EXPECT_EQ(counters.begun.value(), 6U);
    EXPECT_EQ(counters.finished[1].value(), 6U);
    EXPECT_EQ(counters.resumed.value(), 4U);
  };
  run(talk());
}

TEST_P(HandshakeTest, TicketsDoNotWaitForAnAnswer) {
  const auto talk = [this]() -> Task<> {
    SecurePair first = co_await secure_pair();
    const auto nothing = co_await timeout(20ms, first.client.read());
    EXPECT_TRUE(!nothing && nothing.error() == Errc::timed_out);
    SecurePair second = co_await secure_pair();
    EXPECT_TRUE(second.server.tls()->resumed);
  };
  run(talk());
}

TEST_P(SimulatedHandshakeTest, GarbageIsRejectedAtOnce) {
  const auto talk = [this]() -> Task<> {
    const Instant begin = platform_->now();
    const auto failed = co_await accept_bytes("\xf1\xf2\xf3\xf4\xf5\xf6", false);
    EXPECT_TRUE(failed.first == Error::not_tls) << failed.first.text();
    EXPECT_LT(platform_->now() - begin, 1s);
  };
  run(talk());
}

TEST_P(HandshakeTest, PlainHttpIsNamedAndCounted) {
  const auto talk = [this]() -> Task<> {
    const auto failed = co_await accept_bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\n", false);
    EXPECT_TRUE(failed.first == Error::plain_http) << failed.first.text();
    constexpr auto index = static_cast<std::size_t>(Error::plain_http);
    EXPECT_EQ(detail::TlsCounters::of(*loop_).failed[index].value(), 1U);
  };
  run(talk());
}

TEST_P(HandshakeTest, ClientThatLeavesIsCounted) {
  const auto talk = [this]() -> Task<> {
    const auto failed = co_await accept_bytes("\x16\x03\x01", true);
    EXPECT_TRUE(failed.first == Error::peer_left) << failed.first.text();
  };
  run(talk());
}

TEST_P(HandshakeTest, ReloadChangesLaterConnectionsOnly) {
  const auto talk = [this]() -> Task<> {
    co_await make_sides();
    const std::uint64_t before = server_->generation();
    SecurePair first = co_await secure_pair();
    EXPECT_TRUE(co_await server_->load());
    EXPECT_EQ(server_->generation(), before + 1);
    SecurePair second = co_await secure_pair();
    EXPECT_TRUE(co_await first.client.write("first"));
    EXPECT_EQ(co_await read_some(first.server, 5), "first");
    EXPECT_TRUE(co_await second.client.write("second"));
    EXPECT_EQ(co_await read_some(second.server, 6), "second");
  };
  run(talk());
}

TEST_P(HandshakeTest, ServerWithoutAnIdentityIsNotLoaded) {
  const auto talk = [this]() -> Task<> {
    Server empty({});
    const auto loaded = co_await empty.load();
    EXPECT_TRUE(!loaded && loaded.error() == Error::invalid_options);
    EXPECT_FALSE(empty.loaded());
    Acceptor acceptor(*loop_, empty);
    Pair plain = co_await connect_pair();
    AnyStream end(std::move(plain.server));
    const auto accepted = co_await acceptor.accept(std::move(end));
    EXPECT_TRUE(!accepted && accepted.error() == Error::invalid_options);
  };
  run(talk());
}

TEST_P(HandshakeTest, OptionsWithoutAnEffectAreRejected) {
  const auto talk = [this]() -> Task<> {
    ServerOptions unused = server_options_;
    unused.client_trust.pem = authority_.pem();
    ServerOptions no_turn = server_options_;
    no_turn.limits.concurrency_max = 0;
    ServerOptions no_time = server_options_;
    no_time.hello_timeout = Duration::zero();
    ServerOptions nothing_to_watch = server_options_;
    nothing_to_watch.watch.emplace();
    ServerOptions no_rate = server_options_;
    no_rate.limits.rate = RateLimit{.tokens = 0};
    ServerOptions no_input = server_options_;
    no_input.limits.input_bytes_max = 0;
    ServerOptions endless_input = server_options_;
    endless_input.limits.input_bytes_max = std::numeric_limits<std::size_t>::max();
    ServerOptions no_session = server_options_;
    no_session.session_lifetime = Duration::zero();
    ServerOptions endless_session = server_options_;
    endless_session.session_lifetime = 8h + 1s;
    const std::vector<ServerOptions> rejected{unused,           no_turn,    no_time,
                                              nothing_to_watch, no_rate,    no_input,
                                              endless_input,    no_session, endless_session};
    for (const ServerOptions& each : rejected) {
      Server server(each);
      const auto loaded = co_await server.load();
      EXPECT_TRUE(!loaded && loaded.error() == Error::invalid_options);
    }
    client_options_.limits.concurrency_max = 0;
    Client client(client_options_);
    const auto loaded = co_await client.load();
    EXPECT_TRUE(!loaded && loaded.error() == Error::invalid_options);
    ClientOptions no_version = client_options_;
    no_version.limits = {};
    no_version.version_min = TlsVersion::tls_1_3;
    no_version.version_max = TlsVersion::tls_1_2;
    Client without(no_version);
    const auto unloaded = co_await without.load();
    EXPECT_TRUE(!unloaded && unloaded.error() == Error::invalid_options);
    ClientOptions endless = client_options_;
    endless.limits = {};
    endless.session_lifetime = std::chrono::days(8);
    Client forgetful(endless);
    const auto forgotten = co_await forgetful.load();
    EXPECT_TRUE(!forgotten && forgotten.error() == Error::invalid_options);
  };
  run(talk());
}

TEST_P(HandshakeTest, ClientMayBeLimitedToAnOldVersion) {
  const auto talk = [this]() -> Task<> {
    client_options_.version_max = TlsVersion::tls_1_2;
    SecurePair pair = co_await secure_pair();
    EXPECT_EQ(pair.server.tls()->version, TlsVersion::tls_1_2);
    EXPECT_EQ(pair.client.tls()->version, TlsVersion::tls_1_2);
  };
  run(talk());
}

TEST_P(HandshakeTest, MissingFileIsNamed) {
  const auto talk = []() -> Task<> {
    ServerOptions options;
    options.files = {{.chain = "/nowhere/cert.pem", .key = "/nowhere/key.pem"}};
    Server server(options);
    const auto loaded = co_await server.load();
    EXPECT_FALSE(loaded);
    EXPECT_TRUE(loaded.error() == Error::unreadable_file);
    EXPECT_TRUE(loaded.error().text().starts_with("unreadable_file: /nowhere/cert.pem: "))
        << loaded.error().text();
  };
  run(talk());
}

TEST_P(HandshakeTest, InputBeforeTheEndIsBounded) {
  server_options_.limits.input_bytes_max = 1024;
  const auto talk = [this]() -> Task<> {
    // The first record of a hello of 128 KiB, a length that OpenSSL takes.
    const std::string start("\x16\x03\x01\x40\x00\x01\x01\xff\xff", 9);
    const auto failed = co_await accept_bytes(start + std::string(8 * 1024, '\0'), false);
    EXPECT_TRUE(failed.first == Error::input_too_large) << failed.first.text();
    EXPECT_EQ(failed.second, std::string("\x15\x03\x03\0\x02\x02\x2f", 7)) << "illegal_parameter";
  };
  run(talk());
}

TEST_P(HandshakeTest, RecordsOfTheHandshakeMayBePadded) {
  const auto context = client_context();
  SSL_CTX_set_block_padding(context.get(), 16 * 1024);
  const auto client = make_client(*context, std::make_shared<detail::SessionCache>());
  const auto talk = [&, this]() -> Task<> {
    co_await make_sides();
    Pair plain = co_await connect_pair();
    AnyStream end(std::move(plain.server));
    auto accepting = acceptor_->accept(std::move(end));
    auto performing = perform(*client, plain.client);
    auto both = co_await all(std::move(accepting), std::move(performing));
    const auto& [accepted, step] = both.value();
    EXPECT_TRUE(accepted) << accepted.error().text();
    EXPECT_EQ(step, detail::SslEngine::Step::finished);
  };
  run(talk());
}

TEST_P(HandshakeTest, CertificateOfAClientIsBounded) {
  std::string names = "DNS:client.example";
  for (int number = 0; number < 100; ++number)
    names += ",DNS:" + std::to_string(number) + ".example";
  client_options_.identity = authority_.issue({.common_name = "client",
                                               .names = names,
                                               .not_before = WallTime(std::chrono::seconds(0)),
                                               .not_after = WallTime(std::chrono::years(200))});
  server_options_.client_certificates = ClientCertificates::required;
  server_options_.client_trust.pem = authority_.pem();
  server_options_.limits.input_bytes_max = 1024;
  const auto talk = [this]() -> Task<> {
    co_await make_sides();
    Pair plain = co_await connect_pair();
    AnyStream server_end(std::move(plain.server));
    AnyStream client_end(std::move(plain.client));
    auto accepting = acceptor_->accept(std::move(server_end));
    auto connecting = connector_->connect(std::move(client_end), host_);
    auto both = co_await all(std::move(accepting), std::move(connecting));
    const auto& accepted = std::get<0>(both.value());
    EXPECT_TRUE(!accepted && accepted.error() == Error::input_too_large)
        << (accepted ? "accepted" : accepted.error().text());
  };
  run(talk());
}

TEST_P(SimulatedHandshakeTest, IncompleteFirstMessageTimesOut) {
  const std::string record("\x16\x03\x01\x00\x04\x01\x00\x01\x00", 9);  // 4 of 260 bytes
  for (const std::string& start : {std::string("\x16"), record.substr(0, 8), record}) {
    const auto talk = [&, this]() -> Task<> {
      const Instant begin = platform_->now();
      const auto failed = co_await accept_bytes(start, false);
      EXPECT_TRUE(failed.first == Error::timed_out) << failed.first.text();
      EXPECT_EQ(platform_->now() - begin, 5s);
    };
    run(talk());
  }
}

TEST_P(SimulatedHandshakeTest, ClientThatStopsAfterItsHelloTimesOut) {
  const auto talk = [this]() -> Task<> {
    const std::string hello = co_await hello_of_client();
    Pair plain = co_await connect_pair();
    EXPECT_GT(hello.size(), 100U);
    const Instant begin = platform_->now();
    EXPECT_TRUE(co_await plain.client.write(hello));
    AnyStream end(std::move(plain.server));
    const auto accepted = co_await acceptor_->accept(std::move(end));
    EXPECT_TRUE(!accepted && accepted.error() == Error::timed_out);
    EXPECT_EQ(platform_->now() - begin, 10s);
  };
  run(talk());
}

TEST_P(SimulatedHandshakeTest, HelloMayArriveInPieces) {
  const auto talk = [this]() -> Task<> {
    co_await make_sides();
    Pair outside = co_await connect_pair();
    Pair inside = co_await connect_pair();
    // Between the two connections, each byte of the client travels alone.
    const auto slowly = [](weir::Stream& from, weir::Stream& to) -> Task<> {
      while (auto bytes = co_await from.read()) {
        for (const std::byte& each : bytes->bytes()) {
          static_cast<void>(co_await sleep(1ms));
          if (!co_await to.write(Bytes(&each, 1))) co_return;
        }
      }
    };
    const auto directly = [](weir::Stream& from, weir::Stream& to) -> Task<> {
      while (auto bytes = co_await from.read()) {
        if (!co_await to.write(bytes->bytes())) co_return;
      }
    };
    const auto use = [&](Scope& scope) -> Task<> {
      scope.spawn(slowly(outside.server, inside.client));
      scope.spawn(directly(inside.client, outside.server));
      AnyStream server_end(std::move(inside.server));
      AnyStream client_end(std::move(outside.client));
      auto accepting = acceptor_->accept(std::move(server_end));
      auto connecting = connector_->connect(std::move(client_end), host_);
      auto both = co_await all(std::move(accepting), std::move(connecting));
      EXPECT_TRUE(std::get<0>(both.value()) && std::get<1>(both.value()));
      scope.cancel();
    };
    static_cast<void>(co_await with_scope(OnFailure::isolate, use));
  };
  run(talk());
}

TEST_P(SimulatedHandshakeTest, HandshakesBeginAtTheirRate) {
  server_options_.limits.rate = RateLimit{.tokens = 10, .burst = 3};
  const auto talk = [this]() -> Task<> {
    co_await make_sides();
    const Instant begin = platform_->now();
    std::vector<Duration> times;
    const auto one = [&, this]() -> Task<> {
      const SecurePair pair = co_await secure_pair();
      times.push_back(platform_->now() - begin);
    };
    const auto use = [&](Scope& scope) -> Task<> {
      for (int count = 0; count < 6; ++count) scope.spawn(one());
      co_return;
    };
    static_cast<void>(co_await with_scope(OnFailure::isolate, use));
    EXPECT_EQ(times, (std::vector<Duration>{0s, 0s, 0s, 100ms, 200ms, 300ms}));
    static_cast<void>(co_await sleep(10s));
    times.clear();
    static_cast<void>(co_await with_scope(OnFailure::isolate, use));
    EXPECT_EQ(times.at(2) - times.at(0), 0s) << "no more than a burst is saved up";
    EXPECT_EQ(times.at(5) - times.at(0), 300ms);
  };
  run(talk());
}

TEST_P(SimulatedHandshakeTest, HandshakesBeyondTheRateAndTheQueueAreRejected) {
  server_options_.limits.rate = RateLimit{.tokens = 1, .burst = 1};
  server_options_.limits.waiting_max = 1;
  const auto talk = [this]() -> Task<> {
    co_await make_sides();
    std::vector<std::string> ends;
    const auto one = [&, this]() -> Task<> {
      Pair plain = co_await connect_pair();
      AnyStream server_end(std::move(plain.server));
      AnyStream client_end(std::move(plain.client));
      auto accepting = acceptor_->accept(std::move(server_end));
      auto connecting = connector_->connect(std::move(client_end), host_);
      auto both = co_await all(std::move(accepting), std::move(connecting));
      const auto& accepted = std::get<0>(both.value());
      ends.push_back(accepted ? "accepted" : accepted.error().text());
    };
    const auto use = [&](Scope& scope) -> Task<> {
      for (int count = 0; count < 3; ++count) scope.spawn(one());
      co_return;
    };
    static_cast<void>(co_await with_scope(OnFailure::isolate, use));
    std::ranges::sort(ends);
    EXPECT_EQ(ends, (std::vector<std::string>{"accepted", "accepted", "too_many_handshakes"}));
  };
  run(talk());
}

/// Tests of peers that sign with RSA-3072, in the pool.
class SlowKeyTest : public HandshakeTest {
 protected:
  void SetUp() override {
    HandshakeTest::SetUp();
    slow_identity_.emplace(authority_.issue({.common_name = "server",
                                             .names = "DNS:a.example",
                                             .not_before = WallTime(std::chrono::seconds(0)),
                                             .not_after = WallTime(std::chrono::years(200)),
                                             .rsa_bits = 3072}));
    client_options_.tickets = false;
  }
  /// Returns the number of finished signatures.
  std::uint64_t calls() const {
    const PoolReport report = shared_pool(*loop_).report();
    const auto lane = std::ranges::find(report.lanes, "tls", &PoolLaneReport::name);
    return lane == report.lanes.end() ? 0 : lane->finished;
  }

  std::optional<Identity> slow_identity_;
};
/// Returns every kind; two of them if the process samples, because keys and signatures take long.
std::vector<NetKind> slow_key_kinds() {
  return SweepBudget::sample(
      std::vector{net_in_memory, net_on_uring, net_on_uring_6_1, net_on_epoll, net_on_poll}, 3);
}
INSTANTIATE_TEST_SUITE_P(On, SlowKeyTest, testing::ValuesIn(slow_key_kinds()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(SlowKeyTest, SignsInThePool) {
  server_options_.identities = {*slow_identity_};
  const auto talk = [this]() -> Task<> {
    SecurePair first = co_await secure_pair();
    const std::uint64_t before = calls();
    SecurePair second = co_await secure_pair();
    EXPECT_EQ(calls() - before, 1U);
    EXPECT_TRUE(co_await second.client.write("hello"));
    EXPECT_EQ(co_await read_some(second.server, 5), "hello");
  };
  run(talk());
}

TEST_P(SlowKeyTest, ClientSignsInThePool) {
  client_options_.identity = *slow_identity_;
  server_options_.client_certificates = ClientCertificates::required;
  server_options_.client_trust.pem = authority_.pem();
  for (const TlsVersion version : {TlsVersion::tls_1_2, TlsVersion::tls_1_3}) {
    client_options_.version_max = version;
    connector_.reset();
    acceptor_.reset();
    const auto talk = [this]() -> Task<> {
      const std::uint64_t before = calls();
      SecurePair pair = co_await secure_pair();
      EXPECT_EQ(calls() - before, 1U);
      EXPECT_NE(pair.server.tls()->peer, nullptr);
      EXPECT_TRUE(co_await pair.client.write("hello"));
      EXPECT_EQ(co_await read_some(pair.server, 5), "hello");
    };
    run(talk());
  }
}

TEST_P(SlowKeyTest, CancellationWaitsForTheSignature) {
  server_options_.identities = {*slow_identity_};
  const auto talk = [this]() -> Task<> {
    co_await make_sides();
    int cancelled = 0;
    for (int step = 0; step < 40; ++step) {
      Pair plain = co_await connect_pair();
      const auto both = [&, this](Scope& scope) -> Task<> {
        const auto connect = [this](AnyStream end) -> Task<> {
          std::ignore = co_await connector_->connect(std::move(end), host_);
        };
        AnyStream client_end(std::move(plain.client));
        scope.spawn(connect(std::move(client_end)));
        AnyStream server_end(std::move(plain.server));
        auto accepting = acceptor_->accept(std::move(server_end));
        const auto accepted = co_await timeout(step * 250us, std::move(accepting));
        if (!accepted || !*accepted) ++cancelled;
        scope.cancel();
      };
      static_cast<void>(co_await with_scope(OnFailure::isolate, both));
    }
    EXPECT_GT(cancelled, 0);
    const SecurePair later = co_await secure_pair();
    EXPECT_NE(later.server.tls(), nullptr);
  };
  run(talk());
}

/// Tests that need the kernel.
class KernelHandshakeTest : public HandshakeTest {};
INSTANTIATE_TEST_SUITE_P(On, KernelHandshakeTest, kernel_net_kinds(),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(KernelHandshakeTest, AlertReachesAClientWithUnreadInput) {
  const auto talk = [this]() -> Task<> {
    co_await make_sides();
    Pair plain = co_await connect_pair();
    // A message that no client may send first, and more input than the server reads.
    const std::string wrong("\x16\x03\x01\x00\x04\x02\x00\x00\x00", 9);
    EXPECT_TRUE(co_await plain.client.write(wrong + std::string(48'000, 'x')));
    AnyStream end(std::move(plain.server));
    const auto accepted = co_await acceptor_->accept(std::move(end));
    EXPECT_TRUE(!accepted && accepted.error() == Error::bad_message);
    EXPECT_TRUE(co_await plain.client.write("more")) << "the connection is not reset";
    const auto answer = co_await read_to_end(plain.client);
    EXPECT_EQ(answer.first.substr(0, 1), "\x15") << "an alert";
    EXPECT_EQ(answer.second, make_error_code(Errc::end_of_stream));
  };
  run(talk());
}

TEST_P(KernelHandshakeTest, AlertReachesAClientWithATooLongFirstMessage) {
  const auto talk = [this]() -> Task<> {
    co_await make_sides();
    Pair plain = co_await connect_pair();
    const std::string start("\x16\x03\x01\x40\x00\x01\x01\xff\xff", 9);
    EXPECT_TRUE(co_await plain.client.write(start + std::string(100'000, 'x')));
    AnyStream end(std::move(plain.server));
    const auto accepted = co_await acceptor_->accept(std::move(end));
    EXPECT_TRUE(!accepted && accepted.error() == Error::input_too_large);
    EXPECT_TRUE(co_await plain.client.write("more")) << "the connection is not reset";
    const auto answer = co_await read_to_end(plain.client);
    EXPECT_EQ(answer.first, std::string("\x15\x03\x03\0\x02\x02\x2f", 7)) << "illegal_parameter";
    EXPECT_EQ(answer.second, make_error_code(Errc::end_of_stream));
  };
  run(talk());
}

TEST_P(SimulatedHandshakeTest, HandshakesBeyondTheLimitWaitOrAreRejected) {
  server_options_.limits = {.timeout = 10s, .concurrency_max = 1, .waiting_max = 1};
  const auto talk = [this]() -> Task<> {
    co_await make_sides();
    Pair slow = co_await connect_pair();
    Pair waits = co_await connect_pair();
    Pair rejected = co_await connect_pair();
    const std::array<Pair*, 3> pairs{&slow, &waits, &rejected};
    const std::string hello = co_await hello_of_client();
    for (Pair* const each : pairs) {
      EXPECT_TRUE(co_await each->client.write(hello));
    }
    AnyStream first(std::move(slow.server));
    AnyStream second(std::move(waits.server));
    AnyStream third(std::move(rejected.server));
    auto one = acceptor_->accept(std::move(first));
    auto two = acceptor_->accept(std::move(second));
    auto three = acceptor_->accept(std::move(third));
    auto done = co_await all(std::move(one), std::move(two), std::move(three));
    EXPECT_TRUE(std::get<0>(done.value()).error() == Error::too_many_handshakes)
        << "the first one ends when the second one has waited for its permit";
    EXPECT_TRUE(std::get<1>(done.value()).error() == Error::timed_out) << "no other one waits";
    EXPECT_TRUE(std::get<2>(done.value()).error() == Error::too_many_handshakes);
  };
  run(talk());
}

TEST_P(SimulatedHandshakeTest, SilentClientsGiveWayToOthers) {
  server_options_.limits = {.timeout = 10s, .concurrency_max = 2, .waiting_max = 100};
  const auto talk = [this]() -> Task<> {
    const std::string hello = co_await hello_of_client();
    std::vector<std::string> ends;
    const auto stop_after_hello = [&, this](Pair plain) -> Task<> {
      EXPECT_TRUE(co_await plain.client.write(hello));
      AnyStream end(std::move(plain.server));
      const auto accepted = co_await acceptor_->accept(std::move(end));
      ends.push_back(accepted ? "accepted" : accepted.error().text());
    };
    const auto attack = [&, this](Scope& scope) -> Task<> {
      for (int count = 0; count < 6; ++count) {
        Pair plain = co_await connect_pair();
        scope.spawn(stop_after_hello(std::move(plain)));
      }
      static_cast<void>(co_await sleep(1ms));
      const Instant begin = platform_->now();
      SecurePair served = co_await secure_pair();
      EXPECT_NE(served.server.tls(), nullptr);
      EXPECT_LE(platform_->now() - begin, 2s);
    };
    static_cast<void>(co_await with_scope(OnFailure::isolate, attack));
    EXPECT_EQ(std::ranges::count(ends, "too_many_handshakes"), 5);
    EXPECT_EQ(std::ranges::count(ends, "timed_out"), 1) << "nobody needed its permit";
  };
  run(talk());
}

TEST_P(SimulatedHandshakeTest, ClientsThatSendSingleBytesGiveWayToOthers) {
  server_options_.limits = {.timeout = 10s, .concurrency_max = 1, .waiting_max = 100};
  const auto talk = [this]() -> Task<> {
    const std::string hello = co_await hello_of_client();
    Pair plain = co_await connect_pair();
    const auto accept = [this](AnyStream end) -> Task<> {
      const auto accepted = co_await acceptor_->accept(std::move(end));
      EXPECT_TRUE(!accepted && accepted.error() == Error::too_many_handshakes);
    };
    const auto attack = [&, this](Scope& scope) -> Task<> {
      AnyStream end(std::move(plain.server));
      scope.spawn(accept(std::move(end)));
      EXPECT_TRUE(co_await plain.client.write(hello));
      const auto drip = [&]() -> Task<> {
        static_cast<void>(co_await plain.client.write(std::string_view("\x17\x03\x03\x10")));
        while (co_await plain.client.write(std::string_view("x"))) {
          static_cast<void>(co_await sleep(100ms));
        }
      };
      scope.spawn(drip());
      static_cast<void>(co_await sleep(1ms));
      const Instant begin = platform_->now();
      SecurePair served = co_await secure_pair();
      EXPECT_NE(served.server.tls(), nullptr);
      EXPECT_LE(platform_->now() - begin, 1s);
    };
    static_cast<void>(co_await with_scope(OnFailure::isolate, attack));
  };
  run(talk());
}

TEST_P(SimulatedHandshakeTest, HandshakesWithoutATimeoutTakeOnePermit) {
  server_options_.limits = {.timeout = Duration::max(), .concurrency_max = 1};
  client_options_.limits = {.timeout = Duration::max(), .concurrency_max = 1};
  const auto talk = [this]() -> Task<> {
    SecurePair pair = co_await secure_pair();
    EXPECT_EQ(detail::TlsCounters::of(*loop_).begun.value(), 2U);
  };
  run(talk());
}

TEST_P(SimulatedHandshakeTest, EmptyRecordsAreNoFirstMessage) {
  const std::string empty("\x16\x03\x01\x00\x00", 5);
  const auto talk = [&, this]() -> Task<> {
    const Instant begin = platform_->now();
    const auto failed = co_await accept_bytes(empty, false);
    EXPECT_TRUE(failed.first == Error::timed_out) << failed.first.text();
    EXPECT_EQ(platform_->now() - begin, 5s) << "it waits without a permit";
    std::string many;
    for (int count = 0; count < 40; ++count) many += empty;
    const auto flood = co_await accept_bytes(many, false);
    EXPECT_FALSE(flood.first == Error::timed_out) << flood.first.text();
  };
  run(talk());
}

TEST_P(SimulatedHandshakeTest, SilentClientsDoNotCountForTheLimit) {
  server_options_.limits = {.timeout = 10s, .concurrency_max = 1, .waiting_max = 1};
  const auto talk = [this]() -> Task<> {
    co_await make_sides();
    Pair one = co_await connect_pair();
    Pair two = co_await connect_pair();
    AnyStream first(std::move(one.server));
    AnyStream second(std::move(two.server));
    auto silent = acceptor_->accept(std::move(first));
    auto silent_too = acceptor_->accept(std::move(second));
    auto served = secure_pair();
    auto done = co_await all(std::move(silent), std::move(silent_too), std::move(served));
    EXPECT_TRUE(std::get<0>(done.value()).error() == Error::timed_out);
    EXPECT_TRUE(std::get<1>(done.value()).error() == Error::timed_out);
    EXPECT_NE(std::get<2>(done.value()).server.tls(), nullptr);
  };
  run(talk());
}

TEST_P(SimulatedHandshakeTest, StepsTakeTurns) {
  const auto talk = [this]() -> Task<> {
    co_await make_sides();
    const std::uint64_t before = loop_->counters().turns.value();
    auto one = secure_pair();
    auto two = secure_pair();
    auto three = secure_pair();
    auto four = secure_pair();
    auto all_of_them =
        co_await all(std::move(one), std::move(two), std::move(three), std::move(four));
    EXPECT_TRUE(all_of_them);
    EXPECT_GE(loop_->counters().turns.value() - before, 12U) << "three computing steps each";
  };
  run(talk());
}

TEST_P(SimulatedHandshakeTest, StepsWithoutKeyOperationsTakeNoTurns) {
  client_options_.version_max = TlsVersion::tls_1_2;
  const auto context = client_context();
  const auto sessions = std::make_shared<detail::SessionCache>();
  const auto shake = [&, this](bool resumes) -> Task<> {
    const auto client = make_client(*context, resumes ? sessions : nullptr);
    Pair plain = co_await connect_pair();
    AnyStream end(std::move(plain.server));
    auto accepting = acceptor_->accept(std::move(end));
    auto performing = perform(*client, plain.client);
    auto both = co_await all(std::move(accepting), std::move(performing));
    EXPECT_TRUE(std::get<0>(both.value()));
  };
  const auto turns_of_many = [&, this](bool resumes) -> Task<std::uint64_t> {
    const std::uint64_t before = loop_->counters().turns.value();
    const auto many = [&](Scope& scope) -> Task<Result<>> {
      for (int count = 0; count < 20; ++count) scope.spawn(shake(resumes));
      co_return {};
    };
    EXPECT_TRUE(co_await with_scope(OnFailure::isolate, many));
    co_return loop_->counters().turns.value() - before;
  };
  const auto talk = [&, this]() -> Task<> {
    co_await make_sides();
    co_await shake(true);
    EXPECT_GE(co_await turns_of_many(false), 40U) << "two computing steps each";
    EXPECT_LT(co_await turns_of_many(true), 20U);
    EXPECT_EQ(detail::TlsCounters::of(*loop_).resumed.value(), 20U);
  };
  run(talk());
}

TEST_P(SimulatedHandshakeTest, CancellationClosesTheConnection) {
  const auto talk = [this]() -> Task<> {
    co_await make_sides();
    Pair plain = co_await connect_pair();
    AnyStream end(std::move(plain.server));
    auto accepting = acceptor_->accept(std::move(end));
    const auto outcome = co_await timeout(1s, std::move(accepting));
    EXPECT_TRUE(outcome && !*outcome && outcome->error().code() == Errc::cancelled);
    const auto read = co_await plain.client.read();
    EXPECT_FALSE(read);
    EXPECT_EQ(detail::TlsCounters::of(*loop_).cancelled.value(), 1U);
  };
  run(talk());
}

}  // namespace
}  // namespace weir::tls::handshake_test
