#include "weir/net/dns/connect.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/net/listen/listener.hpp"
#include "weir/net/test/resolver_fixture.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::connect_test {
namespace {

using dns::at;
using dns::DnsRule;
using dns::FakeDnsServer;
using dns::ip;
using Behavior = DnsRule::Behavior;

constexpr std::uint16_t port = 80;

/// The result of a connection attempt.
struct Outcome {
  std::string peer = "none";
  std::error_code error = {};
  Duration took = {};
};

/// Provides the name service.example with an address of each family, and servers at them.
class ConnectTest : public CancelSweepTest {
 protected:
  ConnectTest() { server_.rules["service.example"] = at("2001:db8::1", "192.0.2.1"); }

  /// A listener with a full queue, which does not answer, as behind a dropping firewall.
  struct BlackHole {
    tcp::Listener listener;
    tcp::Stream filling;
  };
  static Task<BlackHole> black_hole(std::string_view address) {
    ListenOptions of_one;
    of_one.backlog = 0;
    const Endpoint endpoint = ip(address).with_port(port);
    auto listener = co_await tcp::listen(endpoint, of_one);
    auto filling = co_await tcp::connect(endpoint);
    co_return BlackHole{std::move(listener.value()), std::move(filling.value())};
  }
  static Task<tcp::Listener> listen(std::string_view address) {
    auto listener = co_await tcp::listen(ip(address).with_port(port));
    co_return std::move(listener.value());
  }

  Task<Outcome> connect(dns::Resolver& resolver, std::string name = "service.example") {
    tcp::ConnectOptions options;
    options.resolver = &resolver;
    return connect_with(options, std::move(name));
  }
  Task<Outcome> connect_with(tcp::ConnectOptions options, std::string name = "service.example") {
    const Instant begun = platform_.now();
    auto stream = co_await tcp::connect(std::move(name), port, options);
    Outcome outcome;
    outcome.took = platform_.now() - begun;
    if (stream) {
      outcome.peer = stream->peer_address().to_string();
    } else {
      outcome.error = stream.error();
    }
    co_return outcome;
  }

  /// Runs `body(resolver)`, which returns a Task<>, while the name server answers.
  template <class Body>
  void serve(Body body) {
    const auto with_resolver = [&]() -> Task<> {
      dns::Resolver resolver(dns::only(std::vector<Endpoint>(1, server_.address())));
      co_await body(resolver);
    };
    run_made([&] { return dns::with_name_server(server_, with_resolver); });
  }

  FakeDnsServer server_;
};

TEST_F(ConnectTest, TriesIpv6First) {
  serve([&](dns::Resolver& resolver) -> Task<> {
    const tcp::Listener ipv6 = co_await listen("2001:db8::1");
    const tcp::Listener ipv4 = co_await listen("192.0.2.1");
    const Outcome outcome = co_await connect(resolver);
    EXPECT_EQ(outcome.peer, "[2001:db8::1]:80");
    EXPECT_EQ(outcome.took, 0s);
  });
}

TEST_F(ConnectTest, Ipv4WinsAfter250MillisecondsIfIpv6DoesNotAnswer) {
  serve([&](dns::Resolver& resolver) -> Task<> {
    const BlackHole ipv6 = co_await black_hole("2001:db8::1");
    const tcp::Listener ipv4 = co_await listen("192.0.2.1");
    const std::size_t open = platform_.open_descriptors();
    const Outcome outcome = co_await connect(resolver);
    EXPECT_EQ(outcome.peer, "192.0.2.1:80");
    EXPECT_EQ(outcome.took, 250ms);
    // The winner's other end waits in the listener's queue, and the loser's attempt has ended.
    EXPECT_EQ(platform_.open_descriptors(), open);
  });
}

TEST_F(ConnectTest, Ipv4FollowsImmediatelyIfIpv6IsRefused) {
  serve([&](dns::Resolver& resolver) -> Task<> {
    const tcp::Listener ipv4 = co_await listen("192.0.2.1");
    const Outcome outcome = co_await connect(resolver);
    EXPECT_EQ(outcome.peer, "192.0.2.1:80");
    EXPECT_EQ(outcome.took, 0s);
  });
}

TEST_F(ConnectTest, TriesAllAddressesInTurn) {
  server_.rules["service.example"] =
      at("2001:db8::1", "2001:db8::2", "192.0.2.1", "192.0.2.2", "192.0.2.3");
  serve([&](dns::Resolver& resolver) -> Task<> {
    const BlackHole first = co_await black_hole("2001:db8::1");
    const BlackHole second = co_await black_hole("192.0.2.1");
    const BlackHole third = co_await black_hole("2001:db8::2");
    const tcp::Listener fifth = co_await listen("192.0.2.3");
    const Outcome outcome = co_await connect(resolver);
    EXPECT_EQ(outcome.peer, "192.0.2.3:80");
    EXPECT_EQ(outcome.took, 750ms) << "the fourth is refused immediately";
  });
}

TEST_F(ConnectTest, Ipv4WaitsForAPendingIpv6LookUp) {
  server_.rules["service.example AAAA"] = at("2001:db8::1");
  server_.rules["service.example AAAA"].delay = 30ms;
  serve([&](dns::Resolver& resolver) -> Task<> {
    const tcp::Listener ipv6 = co_await listen("2001:db8::1");
    const tcp::Listener ipv4 = co_await listen("192.0.2.1");
    const Outcome outcome = co_await connect(resolver);
    EXPECT_EQ(outcome.peer, "[2001:db8::1]:80");
    EXPECT_EQ(outcome.took, 30ms);
  });
}

TEST_F(ConnectTest, Ipv4WaitsAtMostTheResolutionDelay) {
  server_.rules["service.example AAAA"].behavior = Behavior::never;
  serve([&](dns::Resolver& resolver) -> Task<> {
    const tcp::Listener ipv4 = co_await listen("192.0.2.1");
    const Outcome outcome = co_await connect(resolver);
    EXPECT_EQ(outcome.peer, "192.0.2.1:80");
    EXPECT_EQ(outcome.took, 50ms);
  });
}

TEST_F(ConnectTest, Ipv4FollowsImmediatelyIfIpv6DoesNotExist) {
  server_.rules["service.example AAAA"] = DnsRule();
  server_.rules["service.example AAAA"].delay = 20ms;
  serve([&](dns::Resolver& resolver) -> Task<> {
    const tcp::Listener ipv4 = co_await listen("192.0.2.1");
    const Outcome outcome = co_await connect(resolver);
    EXPECT_EQ(outcome.peer, "192.0.2.1:80");
    EXPECT_EQ(outcome.took, 20ms);
  });
}

TEST_F(ConnectTest, Ipv6NeverWaitsForIpv4) {
  server_.rules["service.example A"].behavior = Behavior::never;
  serve([&](dns::Resolver& resolver) -> Task<> {
    const tcp::Listener ipv6 = co_await listen("2001:db8::1");
    const Outcome outcome = co_await connect(resolver);
    EXPECT_EQ(outcome.peer, "[2001:db8::1]:80");
    EXPECT_EQ(outcome.took, 0s);
  });
}

TEST_F(ConnectTest, LateIpv6AddressIsStillTried) {
  server_.rules["service.example AAAA"] = at("2001:db8::1");
  server_.rules["service.example AAAA"].delay = 100ms;
  serve([&](dns::Resolver& resolver) -> Task<> {
    const BlackHole ipv4 = co_await black_hole("192.0.2.1");
    const tcp::Listener ipv6 = co_await listen("2001:db8::1");
    const Outcome outcome = co_await connect(resolver);
    EXPECT_EQ(outcome.peer, "[2001:db8::1]:80");
    EXPECT_EQ(outcome.took, 300ms) << "a quarter of a second after the first attempt";
  });
}

// The attempts to both IPv4 addresses begin while the look-up of IPv6 addresses is pending.
TEST_F(ConnectTest, PendingIpv6LookUpDelaysOnlyTheFirstAttempt) {
  server_.rules["service.example AAAA"].behavior = Behavior::never;
  server_.rules["service.example A"] = at("192.0.2.1", "192.0.2.2");
  serve([&](dns::Resolver& resolver) -> Task<> {
    const BlackHole first = co_await black_hole("192.0.2.1");
    const tcp::Listener second = co_await listen("192.0.2.2");
    const Outcome outcome = co_await connect(resolver);
    EXPECT_EQ(outcome.peer, "192.0.2.2:80");
    EXPECT_EQ(outcome.took, 300ms);
  });
}

TEST_F(ConnectTest, OptionsSetBothDelays) {
  serve([&](dns::Resolver& resolver) -> Task<> {
    const BlackHole ipv6 = co_await black_hole("2001:db8::1");
    const tcp::Listener ipv4 = co_await listen("192.0.2.1");
    tcp::ConnectOptions options;
    options.resolver = &resolver;
    options.attempt_delay = 2s;
    options.resolution_delay = 300ms;
    EXPECT_EQ((co_await connect_with(options)).took, 2s);
    server_.rules["service.example AAAA"].behavior = Behavior::never;
    resolver.clear_cache();
    EXPECT_EQ((co_await connect_with(options)).took, 300ms);
  });
}

TEST_F(ConnectTest, Ipv4IsTriedIfItsAddressComesAfterAFailedLookUpOfIpv6) {
  server_.rules["service.example AAAA"] = DnsRule();
  server_.rules["service.example A"] = at("192.0.2.1");
  server_.rules["service.example A"].delay = 20ms;
  serve([&](dns::Resolver& resolver) -> Task<> {
    const tcp::Listener ipv4 = co_await listen("192.0.2.1");
    const Outcome outcome = co_await connect(resolver);
    EXPECT_EQ(outcome.peer, "192.0.2.1:80");
    EXPECT_EQ(outcome.took, 20ms);
  });
}

// The attempt to the IPv4 address begins and fails after 50 ms.
TEST_F(ConnectTest, RefusedAttemptWaitsForAPendingLookUp) {
  server_.rules["service.example AAAA"] = at("2001:db8::1");
  server_.rules["service.example AAAA"].delay = 100ms;
  serve([&](dns::Resolver& resolver) -> Task<> {
    const tcp::Listener ipv6 = co_await listen("2001:db8::1");
    const Outcome outcome = co_await connect(resolver);
    EXPECT_EQ(outcome.peer, "[2001:db8::1]:80");
    EXPECT_EQ(outcome.took, 100ms);
  });
}

// The platform repeats an unanswered attempt after a second. The first one is refused then.
TEST_F(ConnectTest, FailureOfAnEarlierAttemptBeginsTheNext) {
  server_.rules["service.example"] = at("2001:db8::1", "192.0.2.1", "2001:db8::2");
  serve([&](dns::Resolver& resolver) -> Task<> {
    BlackHole hole = co_await black_hole("2001:db8::1");
    std::optional<BlackHole> first(std::move(hole));
    const BlackHole second = co_await black_hole("192.0.2.1");
    const tcp::Listener third = co_await listen("2001:db8::2");
    const auto close_first = [&]() -> Task<> {
      std::ignore = co_await sleep(500ms);
      first.reset();
    };
    tcp::ConnectOptions options;
    options.resolver = &resolver;
    options.attempt_delay = 600ms;
    const auto both = co_await all(connect_with(options), close_first());
    EXPECT_EQ(std::get<0>(both.value()).peer, "[2001:db8::2]:80");
    EXPECT_EQ(std::get<0>(both.value()).took, 1s);
  });
}

TEST_F(ConnectTest, EarlierAttemptMayStillWin) {
  serve([&](dns::Resolver& resolver) -> Task<> {
    BlackHole first = co_await black_hole("2001:db8::1");
    const BlackHole second = co_await black_hole("192.0.2.1");
    const auto make_room = [&]() -> Task<> {
      std::ignore = co_await sleep(500ms);
      EXPECT_TRUE(co_await first.listener.accept());
    };
    tcp::ConnectOptions options;
    options.resolver = &resolver;
    options.attempt_delay = 600ms;
    const auto both = co_await all(connect_with(options), make_room());
    EXPECT_EQ(std::get<0>(both.value()).peer, "[2001:db8::1]:80");
    EXPECT_EQ(std::get<0>(both.value()).took, 1s);
  });
}

TEST_F(ConnectTest, QueriesIpv6AddressesFirst) {
  serve([&](dns::Resolver& resolver) -> Task<> {
    const tcp::Listener ipv6 = co_await listen("2001:db8::1");
    EXPECT_EQ((co_await connect(resolver)).peer, "[2001:db8::1]:80");
    EXPECT_EQ(server_.asked,
              (std::vector<std::string>{"service.example AAAA", "service.example A"}));
  });
}

TEST_F(ConnectTest, CancelComesBeforeTheErrorOfAnEarlierAttempt) {
  serve([&](dns::Resolver& resolver) -> Task<> {
    const BlackHole ipv4 = co_await black_hole("192.0.2.1");
    const Context own = co_await this_context();
    CancelSource cancel;
    const auto cancel_later = [&]() -> Task<> {
      std::ignore = co_await sleep(1s);
      cancel.cancel();
    };
    const auto connect_cancellably = [&]() -> Task<Duration> {
      auto connecting = in_context(Context{own.loop, &cancel}, connect(resolver));
      const Outcome outcome = co_await std::move(connecting);
      EXPECT_EQ(outcome.error, Errc::cancelled);
      co_return outcome.took;
    };
    const auto both = co_await all(connect_cancellably(), cancel_later());
    EXPECT_EQ(std::get<0>(both.value()), 1s);
  });
}

TEST_F(ConnectTest, ReturnsTheErrorOfAHostIfAllAttemptsFail) {
  serve([&](dns::Resolver& resolver) -> Task<> {
    const Outcome outcome = co_await connect(resolver);
    EXPECT_EQ(outcome.error, system_error(ECONNREFUSED));
    EXPECT_EQ(outcome.took, 0s);
  });
}

TEST_F(ConnectTest, ReturnsTheErrorOfTheAttemptsAlsoIfALookUpFails) {
  for (const std::string failing : {"AAAA", "A"}) {
    server_.rules["half.example"] = at("2001:db8::1", "192.0.2.1");
    server_.rules["half.example " + failing].code = 2;
    serve([&](dns::Resolver& resolver) -> Task<> {
      const Outcome outcome = co_await connect(resolver, "half.example");
      EXPECT_EQ(outcome.error, system_error(ECONNREFUSED)) << failing;
    });
    server_.rules.erase("half.example " + failing);
  }
}

TEST_F(ConnectTest, ReturnsTheErrorOfTheLookUpWithoutAnAddress) {
  server_.rules["ipv4.example AAAA"].code = 2;
  server_.rules["ipv4.example A"] = DnsRule();
  serve([&](dns::Resolver& resolver) -> Task<> {
    EXPECT_EQ((co_await connect(resolver, "missing.example")).error, dns::ResolveError::not_found);
    EXPECT_EQ((co_await connect(resolver, "ipv4.example")).error, dns::ResolveError::server_failed);
    EXPECT_EQ((co_await connect(resolver, "no name")).error, Errc::bad_input);
  });
}

TEST_F(ConnectTest, AnAddressNeedsNoServer) {
  serve([&](dns::Resolver& resolver) -> Task<> {
    const tcp::Listener ipv6 = co_await listen("2001:db8::1");
    const Outcome outcome = co_await connect(resolver, "2001:db8::1");
    EXPECT_EQ(outcome.peer, "[2001:db8::1]:80");
    EXPECT_TRUE(server_.asked.empty());
  });
}

TEST_F(ConnectTest, ResolverOfTheCoreResolvesLocalhost) {
  const auto talk = []() -> Task<> {
    const tcp::Listener ipv4 = co_await listen("127.0.0.1");
    const auto stream = co_await tcp::connect("localhost", port);
    EXPECT_TRUE(stream);
  };
  run_made(talk);
}

TEST_F(ConnectTest, TimesOutIfNoServerAnswers) {
  server_.rules["dead.example"].behavior = Behavior::never;
  serve([&](dns::Resolver& resolver) -> Task<> {
    tcp::ConnectOptions options;
    options.resolver = &resolver;
    const auto stream = co_await timeout(3s, tcp::connect("dead.example", port, options));
    EXPECT_FALSE(stream);
    EXPECT_EQ(stream.error(), Errc::timed_out);
    EXPECT_EQ(resolver.counters().in_flight.value(), 0U);
  });
}

// One of two races is cancelled at each step. The other one finishes, and both release all
// resources.
TEST_F(ConnectTest, CancelAtAnyStepReleasesEverything) {
  const auto scenario = [&](CancelInjector& injector) -> Task<> {
    server_.rules["service.example"].delay = 5ms;
    server_.rules["service.example AAAA"] = at("2001:db8::1", "2001:db8::2");
    server_.rules["service.example AAAA"].delay = 60ms;
    server_.rules["service.example"].addresses = dns::ips("192.0.2.1", "192.0.2.2");
    const auto talk = [&]() -> Task<> {
      dns::Resolver resolver(dns::only(std::vector<Endpoint>(1, server_.address())));
      const BlackHole hole = co_await black_hole("192.0.2.1");
      const tcp::Listener ipv6 = co_await listen("2001:db8::2");
      const std::size_t open = platform_.open_descriptors();
      const auto check = [&](std::size_t target) -> Task<> {
        auto connecting = injector.as_target(target, connect(resolver));
        const Outcome outcome = co_await std::move(connecting);
        injector.checkpoint();
        if (outcome.error) {
          EXPECT_EQ(outcome.error, Errc::cancelled);
          EXPECT_TRUE(injector.injected());
        } else {
          EXPECT_EQ(outcome.peer, "[2001:db8::2]:80");
        }
      };
      const auto both = [&](Scope& scope) -> Task<Result<>> {
        scope.spawn(check(0));
        scope.spawn(check(1));
        co_return {};
      };
      EXPECT_TRUE(co_await with_scope(OnFailure::isolate, both));
      EXPECT_EQ(platform_.open_descriptors(), open);
    };
    co_await dns::with_name_server(server_, talk);
  };
  EXPECT_GT(sweep(2, scenario), 20U);
}

}  // namespace
}  // namespace weir::connect_test
