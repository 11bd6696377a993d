// Tests of the race of IPv6 and IPv4 on every platform and backend. The losers must release their
// resources. The file connect_test.cpp tests the durations in virtual time.
#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/net/dns/connect.hpp"
#include "weir/net/test/net_fixture.hpp"
#include "weir/net/test/resolver_fixture.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/task/timeout.hpp"

namespace weir::connect_race_test {
namespace {

using dns::at;
using dns::ip;

constexpr std::chrono::seconds wait_max{30};
/// A delay longer than any test, so that no attempt begins because of the delay.
constexpr Duration never_next = std::chrono::hours(1);

/// Returns a loopback address that no other process of this machine uses.
Endpoint own_ipv4() {
  const auto pid = static_cast<unsigned>(::getpid());
  const auto byte = [pid](unsigned shift) { return static_cast<std::uint8_t>(pid >> shift); };
  return Endpoint::ipv4({127, static_cast<std::uint8_t>(1 + (byte(16) & 0x3f)), byte(8), byte(0)},
                        0);
}

/// The name service.example with an address of each family, on one port.
class ConnectRaceTest : public NetTest {
 protected:
  /// The server of one family. `bound` keeps other processes off a real port until the test
  /// listens.
  struct Target {
    Endpoint address;
    os::Fd bound;
    std::optional<tcp::Listener> listener = {};
    std::optional<tcp::Stream> filling = {};
    os::Fd filling_descriptor = {};
  };

  void SetUp() override {
    NetTest::SetUp();
    if (IsSkipped()) return;
    ipv6_.address = ip("::1").with_port(80);
    ipv4_.address = own_ipv4().with_port(80);
    if (!simulated() && !os::open_listener(ip("::1"))) GTEST_SKIP() << "IPv6 is not available";
    for (int tries = 0; !simulated() && tries < 100 && !ipv4_.bound; ++tries) {
      ipv6_.bound = bound_to(ipv6_.address.with_port(0));
      ipv6_.address = os::local_address(ipv6_.bound.get()).value();
      ipv4_.address = ipv4_.address.with_port(ipv6_.address.port());
      ipv4_.bound = bound_to(ipv4_.address);
    }
    ASSERT_TRUE(simulated() || ipv4_.bound);
    server_.rules["service.example"].addresses = {ipv6_.address, ipv4_.address};
  }

  /// Returns a bound socket that does not listen, so that the kernel refuses connections.
  static os::Fd bound_to(const Endpoint& address) {
    os::Fd socket = os::open_stream(address.family()).value();
    const auto* const name = static_cast<const sockaddr*>(address.data());
    return ::bind(socket.get(), name, address.size()) == 0 ? std::move(socket) : os::Fd();
  }
  static Task<> open(Target& target) {
    target.bound.close();  // the listener needs the address
    auto listener = co_await tcp::listen(target.address);
    EXPECT_TRUE(listener) << listener.error().message();
    if (listener) target.listener.emplace(std::move(*listener));
  }
  /// Fills the queue of a listener, so that it answers no more, as behind a dropping firewall.
  Task<> fill_queue(Target& target) {
    if (simulated()) {
      ListenOptions of_one;
      of_one.backlog = 0;
      auto listener = co_await tcp::listen(target.address, of_one);
      target.listener.emplace(std::move(listener.value()));
      auto filling = co_await tcp::connect(target.address);
      target.filling.emplace(std::move(filling.value()));
      co_return;
    }
    EXPECT_EQ(::listen(target.bound.get(), 0), 0);
    target.filling_descriptor = os::open_stream(target.address.family()).value();
    EXPECT_TRUE(os::start_connect(target.filling_descriptor.get(), target.address));
    pollfd waits{target.bound.get(), POLLIN, 0};
    const int longest = static_cast<int>(std::chrono::milliseconds(wait_max).count());
    EXPECT_EQ(::poll(&waits, 1, longest), 1) << "the queue does not become full";
  }

  std::size_t open_descriptors() const {
    if (simulated()) return memory_->open_descriptors();
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), &::closedir);
    std::size_t count = 0;
    while (::readdir(folder.get()) != nullptr) ++count;
    return count;
  }
  /// Waits until `count` descriptors are open, because a backend may close with a delay.
  Task<> expect_open(std::size_t count) {
    const Instant end = after(platform_->now(), wait_max);
    while (open_descriptors() != count && platform_->now() < end) {
      std::ignore = co_await sleep(1ms);
    }
    EXPECT_EQ(open_descriptors(), count);
  }

  Task<Result<tcp::Stream>> connect(dns::Resolver& resolver, Duration attempt_delay) {
    tcp::ConnectOptions options;
    options.resolver = &resolver;
    options.attempt_delay = attempt_delay;
    options.resolution_delay = never_next;
    return tcp::connect("service.example", ipv6_.address.port(), options);
  }
  /// Expects that the other end of `stream` is in the queue of the listener and that bytes arrive.
  static Task<> expect_greeting(Target& target, tcp::Stream& stream) {
    for (;;) {
      auto accepted = co_await timeout(wait_max, as_task(target.listener->accept()));
      EXPECT_TRUE(accepted);
      if (!accepted) co_return;
      if (accepted->peer_address() != stream.local_address()) continue;  // from a loser
      EXPECT_TRUE(co_await accepted->write("hello"));
      break;
    }
    const auto heard = co_await timeout(wait_max, read_to_end(stream));
    EXPECT_EQ(heard.value().first, "hello");
  }

  /// Runs `body(resolver)`, which returns a Task<>, while the name server answers.
  template <class Body>
  void serve(Body body) {
    const auto with_resolver = [&]() -> Task<> {
      dns::Resolver resolver(dns::only(std::vector<Endpoint>(1, server_.address())));
      co_await body(resolver);
      for (Target* const each : {&ipv6_, &ipv4_}) {
        each->listener.reset();
        each->filling.reset();
      }
    };
    run(dns::with_name_server(server_, with_resolver));
  }

  dns::FakeDnsServer server_;
  Target ipv6_;
  Target ipv4_;
};

INSTANTIATE_TEST_SUITE_P(On, ConnectRaceTest, every_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ConnectRaceTest, Ipv4FollowsImmediatelyIfIpv6IsRefused) {
  serve([&](dns::Resolver& resolver) -> Task<> {
    co_await open(ipv4_);
    const std::size_t descriptors = open_descriptors();
    {
      auto stream = co_await timeout(wait_max, connect(resolver, never_next));
      EXPECT_TRUE(stream) << stream.error().message();
      if (!stream) co_return;
      EXPECT_EQ(stream->peer_address(), ipv4_.address);
      co_await expect_greeting(ipv4_, *stream);
    }
    co_await expect_open(descriptors);
  });
}

TEST_P(ConnectRaceTest, Ipv4WinsAfterTheDelayIfIpv6DoesNotAnswer) {
  serve([&](dns::Resolver& resolver) -> Task<> {
    co_await fill_queue(ipv6_);
    co_await open(ipv4_);
    const std::size_t descriptors = open_descriptors();
    {
      const Instant begun = platform_->now();
      auto stream = co_await timeout(wait_max, connect(resolver, 5ms));
      EXPECT_GE(platform_->now() - begun, 5ms);
      EXPECT_TRUE(stream) << stream.error().message();
      if (!stream) co_return;
      EXPECT_EQ(stream->peer_address(), ipv4_.address);
      co_await expect_greeting(ipv4_, *stream);
    }
    co_await expect_open(descriptors);
  });
}

TEST_P(ConnectRaceTest, Ipv6WinsIfBothAnswer) {
  serve([&](dns::Resolver& resolver) -> Task<> {
    co_await open(ipv6_);
    co_await open(ipv4_);
    auto stream = co_await timeout(wait_max, connect(resolver, never_next));
    EXPECT_TRUE(stream) << stream.error().message();
    if (!stream) co_return;
    EXPECT_EQ(stream->peer_address(), ipv6_.address);
    co_await expect_greeting(ipv6_, *stream);
  });
}

// Both attempts begin at the same time. Either may win, and the connection of the other is closed.
TEST_P(ConnectRaceTest, OneOfTwoSimultaneousConnectionsStaysOpen) {
  serve([&](dns::Resolver& resolver) -> Task<> {
    co_await open(ipv6_);
    co_await open(ipv4_);
    const std::size_t descriptors = open_descriptors();
    for (int round = 0; round < 20; ++round) {
      {
        auto stream = co_await timeout(wait_max, connect(resolver, Duration(0)));
        EXPECT_TRUE(stream) << stream.error().message();
        if (!stream) co_return;
        Target& winner = stream->peer_address() == ipv6_.address ? ipv6_ : ipv4_;
        EXPECT_EQ(stream->peer_address(), winner.address);
        co_await expect_greeting(winner, *stream);
      }
    }
    // Connections of losers that were not accepted belong to the kernel, not to this process.
    if (!simulated()) co_await expect_open(descriptors);
  });
}

TEST_P(ConnectRaceTest, CancelDuringBothAttemptsReleasesEverything) {
  serve([&](dns::Resolver& resolver) -> Task<> {
    co_await fill_queue(ipv6_);
    co_await fill_queue(ipv4_);
    EXPECT_TRUE(co_await resolver.resolve("service.example"));
    const std::size_t descriptors = open_descriptors();
    const auto in_vain = [&]() -> Task<> {
      const auto stream = co_await connect(resolver, Duration(0));
      EXPECT_EQ(error_of(stream), Errc::cancelled);
    };
    const auto both = [&](Scope& scope) -> Task<Result<>> {
      scope.spawn(in_vain());
      co_await expect_open(descriptors + 2);
      scope.cancel();
      co_return {};
    };
    EXPECT_TRUE(co_await with_scope(OnFailure::isolate, both));
    co_await expect_open(descriptors);
  });
}

// The cancellation comes at each of the first steps, which include a query to the server.
TEST_P(ConnectRaceTest, CancelAtAnyStepReleasesEverything) {
  serve([&](dns::Resolver& resolver) -> Task<> {
    co_await fill_queue(ipv6_);
    co_await fill_queue(ipv4_);
    const std::size_t descriptors = open_descriptors();
    for (int steps = 0; steps < 40; ++steps) {
      resolver.clear_cache();
      const auto in_vain = [&]() -> Task<> {
        const auto stream = co_await connect(resolver, Duration(0));
        EXPECT_EQ(error_of(stream), Errc::cancelled);
      };
      const auto both = [&](Scope& scope) -> Task<Result<>> {
        scope.spawn(in_vain());
        for (int step = 0; step < steps; ++step) co_await yield();
        scope.cancel();
        co_return {};
      };
      EXPECT_TRUE(co_await with_scope(OnFailure::isolate, both));
      EXPECT_EQ(resolver.counters().in_flight.value(), 0U);
    }
    co_await expect_open(descriptors);
  });
}

}  // namespace
}  // namespace weir::connect_race_test
