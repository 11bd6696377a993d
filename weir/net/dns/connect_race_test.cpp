// The race of IPv6 and IPv4 on every host and backend: who wins, and that nothing is left of who
// does not. What takes how long is in connect_test.cpp, in virtual time.
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

namespace weir {
namespace {

using names::at;
using names::ip;

constexpr std::chrono::seconds patience{30};
/// Longer than any test: no attempt begins because another has taken so long.
constexpr Duration never_next = std::chrono::hours(1);

/// An address of loopback that no other process of this machine uses.
Endpoint own_ipv4() {
  const auto pid = static_cast<unsigned>(::getpid());
  const auto byte = [pid](unsigned shift) { return static_cast<std::uint8_t>(pid >> shift); };
  return Endpoint::ipv4({127, static_cast<std::uint8_t>(1 + (byte(16) & 0x3f)), byte(8), byte(0)},
                        0);
}

/// The name service.example with an address of each family, on one port.
class ConnectRaceTest : public NetTest {
 protected:
  /// One family's place. A kernel's is bound until somebody listens, so that nobody else has it.
  struct Place {
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
    if (!simulated() && !os::open_listener(ip("::1"))) GTEST_SKIP() << "no IPv6 here";
    for (int tries = 0; !simulated() && tries < 100 && !ipv4_.bound; ++tries) {
      ipv6_.bound = bound_to(ipv6_.address.with_port(0));
      ipv6_.address = os::local_address(ipv6_.bound.get()).value();
      ipv4_.address = ipv4_.address.with_port(ipv6_.address.port());
      ipv4_.bound = bound_to(ipv4_.address);
    }
    ASSERT_TRUE(simulated() || ipv4_.bound);
    server_.rules["service.example"].addresses = {ipv6_.address, ipv4_.address};
  }

  /// Not listening: whoever connects is refused.
  static os::Fd bound_to(const Endpoint& address) {
    os::Fd socket = os::open_stream(address.family()).value();
    const auto* const name = static_cast<const sockaddr*>(address.data());
    return ::bind(socket.get(), name, address.size()) == 0 ? std::move(socket) : os::Fd();
  }
  static Task<> open(Place& place) {
    place.bound.close();  // a listener wants to be the first there
    auto listener = co_await tcp::listen(place.address);
    EXPECT_TRUE(listener) << listener.error().message();
    if (listener) place.listener.emplace(std::move(*listener));
  }
  /// Nobody answers there any more, as behind a firewall that drops everything: its queue is full.
  Task<> stop_up(Place& place) {
    if (simulated()) {
      ListenOptions of_one;
      of_one.backlog = 0;
      auto listener = co_await tcp::listen(place.address, of_one);
      place.listener.emplace(std::move(listener.value()));
      auto filling = co_await tcp::connect(place.address);
      place.filling.emplace(std::move(filling.value()));
      co_return;
    }
    EXPECT_EQ(::listen(place.bound.get(), 0), 0);
    place.filling_descriptor = os::open_stream(place.address.family()).value();
    EXPECT_TRUE(os::start_connect(place.filling_descriptor.get(), place.address));
    pollfd waits{place.bound.get(), POLLIN, 0};
    const int longest = static_cast<int>(std::chrono::milliseconds(patience).count());
    EXPECT_EQ(::poll(&waits, 1, longest), 1) << "the queue is never full";
  }

  std::size_t open_descriptors() const {
    if (simulated()) return memory_->open_descriptors();
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), &::closedir);
    std::size_t count = 0;
    while (::readdir(folder.get()) != nullptr) ++count;
    return count;
  }
  /// A backend may close in its own time.
  Task<> expect_open(std::size_t count) {
    const Instant end = after(host_->now(), patience);
    while (open_descriptors() != count && host_->now() < end) {
      static_cast<void>(co_await sleep(1ms));
    }
    EXPECT_EQ(open_descriptors(), count);
  }

  Task<Result<tcp::Stream>> connect(names::Resolver& resolver, Duration attempt_delay) {
    tcp::ConnectOptions options;
    options.resolver = &resolver;
    options.attempt_delay = attempt_delay;
    options.resolution_delay = never_next;
    return tcp::connect("service.example", ipv6_.address.port(), options);
  }
  /// Whether the connection is one: the other end of it is in the queue, and bytes arrive.
  static Task<> expect_greeting(Place& place, tcp::Stream& stream) {
    for (;;) {
      auto accepted = co_await timeout(patience, as_task(place.listener->accept()));
      EXPECT_TRUE(accepted);
      if (!accepted) co_return;
      if (accepted->peer_address() != stream.local_address()) continue;  // a loser's
      EXPECT_TRUE(co_await accepted->write("hello"));
      break;
    }
    const auto heard = co_await timeout(patience, read_to_end(stream));
    EXPECT_EQ(heard.value().first, "hello");
  }

  /// Runs `body(resolver)`, which returns a Task<>, with the name server.
  template <class Body>
  void serve(Body body) {
    const auto with_resolver = [&]() -> Task<> {
      names::Resolver resolver(names::only(std::vector<Endpoint>(1, server_.address())));
      co_await body(resolver);
      for (Place* const each : {&ipv6_, &ipv4_}) {
        each->listener.reset();
        each->filling.reset();
      }
    };
    run(names::with_name_server(server_, with_resolver));
  }

  names::NameServer server_;
  Place ipv6_;
  Place ipv4_;
};

INSTANTIATE_TEST_SUITE_P(On, ConnectRaceTest, every_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ConnectRaceTest, WhereIpv6IsRefusedIpv4FollowsAtOnce) {
  serve([&](names::Resolver& resolver) -> Task<> {
    co_await open(ipv4_);
    const std::size_t descriptors = open_descriptors();
    {
      auto stream = co_await timeout(patience, connect(resolver, never_next));
      EXPECT_TRUE(stream) << stream.error().message();
      if (!stream) co_return;
      EXPECT_EQ(stream->peer_address(), ipv4_.address);
      co_await expect_greeting(ipv4_, *stream);
    }
    co_await expect_open(descriptors);
  });
}

TEST_P(ConnectRaceTest, WhereIpv6LeadsNowhereIpv4WinsAfterTheDelay) {
  serve([&](names::Resolver& resolver) -> Task<> {
    co_await stop_up(ipv6_);
    co_await open(ipv4_);
    const std::size_t descriptors = open_descriptors();
    {
      const Instant begun = host_->now();
      auto stream = co_await timeout(patience, connect(resolver, 5ms));
      EXPECT_GE(host_->now() - begun, 5ms);
      EXPECT_TRUE(stream) << stream.error().message();
      if (!stream) co_return;
      EXPECT_EQ(stream->peer_address(), ipv4_.address);
      co_await expect_greeting(ipv4_, *stream);
    }
    co_await expect_open(descriptors);
  });
}

TEST_P(ConnectRaceTest, WhereBothAnswerIpv6Wins) {
  serve([&](names::Resolver& resolver) -> Task<> {
    co_await open(ipv6_);
    co_await open(ipv4_);
    auto stream = co_await timeout(patience, connect(resolver, never_next));
    EXPECT_TRUE(stream) << stream.error().message();
    if (!stream) co_return;
    EXPECT_EQ(stream->peer_address(), ipv6_.address);
    co_await expect_greeting(ipv6_, *stream);
  });
}

// Both begin at once: either may win, and the other one's connection, made or not, is closed.
TEST_P(ConnectRaceTest, OfTwoThatAnswerAtOnceOneIsLeft) {
  serve([&](names::Resolver& resolver) -> Task<> {
    co_await open(ipv6_);
    co_await open(ipv4_);
    const std::size_t descriptors = open_descriptors();
    for (int round = 0; round < 20; ++round) {
      {
        auto stream = co_await timeout(patience, connect(resolver, Duration(0)));
        EXPECT_TRUE(stream) << stream.error().message();
        if (!stream) co_return;
        Place& winner = stream->peer_address() == ipv6_.address ? ipv6_ : ipv4_;
        EXPECT_EQ(stream->peer_address(), winner.address);
        co_await expect_greeting(winner, *stream);
      }
    }
    // Losers that nobody has accepted are the kernel's, not this process'.
    if (!simulated()) co_await expect_open(descriptors);
  });
}

TEST_P(ConnectRaceTest, CancelledWhileBothAreTriedNothingIsLeft) {
  serve([&](names::Resolver& resolver) -> Task<> {
    co_await stop_up(ipv6_);
    co_await stop_up(ipv4_);
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
    EXPECT_TRUE(co_await with_scope(OnFailure::supervise, both));
    co_await expect_open(descriptors);
  });
}

// At any of its first steps, of which a look-up at the server is a part.
TEST_P(ConnectRaceTest, CancelledAtAnyStepNothingIsLeft) {
  serve([&](names::Resolver& resolver) -> Task<> {
    co_await stop_up(ipv6_);
    co_await stop_up(ipv4_);
    const std::size_t descriptors = open_descriptors();
    for (int steps = 0; steps < 40; ++steps) {
      resolver.forget();
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
      EXPECT_TRUE(co_await with_scope(OnFailure::supervise, both));
      EXPECT_EQ(resolver.counters().under_way.value(), 0U);
    }
    co_await expect_open(descriptors);
  });
}

}  // namespace
}  // namespace weir
