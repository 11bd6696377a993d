#include "weir/net/listen/listener.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "weir/net/test/net_fixture.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::listener_test {
namespace {

using ListenerTest = NetTest;
INSTANTIATE_TEST_SUITE_P(On, ListenerTest, every_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

/// Tests that need simulated sockets: for equal runs, or to wait in virtual time.
class SimulatedListenerTest : public ListenerTest {};
INSTANTIATE_TEST_SUITE_P(On, SimulatedListenerTest, simulated_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

Task<Result<tcp::Stream>> accept_one(tcp::Listener& listener) {
  co_return co_await listener.accept();
}

/// Connects clients that send their number. They wait in the queue of the listener.
Task<std::vector<tcp::Stream>> connect_clients(Endpoint server, int count) {
  std::vector<tcp::Stream> clients;
  for (int i = 0; i < count; ++i) {
    auto client = co_await tcp::connect(server);
    EXPECT_TRUE(client) << client.error().message();
    if (!client) break;
    EXPECT_TRUE(co_await client->write(std::to_string(i) + ";"));
    clients.push_back(std::move(*client));
  }
  co_return clients;
}

/// Expects that the accepted streams carry all numbers from 0 to count - 1.
Task<> expect_all(std::vector<tcp::Stream>& accepted, int count) {
  std::vector<bool> seen(static_cast<std::size_t>(count));
  EXPECT_EQ(accepted.size(), seen.size());
  for (tcp::Stream& stream : accepted) {
    const std::string text = co_await read_some(stream, 2);
    if (text.empty()) continue;
    seen.at(std::stoul(text)) = true;
  }
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_TRUE(seen[i]) << i;
}

TEST_P(ListenerTest, AcceptsWaitingAndNewConnections) {
  const auto talk = []() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    EXPECT_NE(listener.local_address().port(), 0);
    const auto waiting = co_await connect_clients(listener.local_address(), 10);
    std::vector<tcp::Stream> accepted;
    for (int i = 0; i < 10; ++i) accepted.push_back((co_await listener.accept()).value());
    co_await expect_all(accepted, 10);
    auto both = co_await all(accept_one(listener), tcp::connect(listener.local_address()));
    EXPECT_TRUE(both);
  };
  run(talk());
}

TEST_P(ListenerTest, CancelledAcceptLosesNoConnection) {
  const auto talk = []() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    constexpr int count = 60;
    std::vector<tcp::Stream> accepted;
    const auto body = [&](Scope& scope) -> Task<> {
      std::vector<tcp::Stream> clients;
      scope.spawn([](Endpoint server, std::vector<tcp::Stream>& to) -> Task<> {
        to = co_await connect_clients(server, count);
      }(listener.local_address(), clients));
      // Each accept is cancelled after a few turns, in any state of the connection.
      for (int i = 0; accepted.size() < count; ++i) {
        CancelSource cancel;
        const auto give_up = [](CancelSource& source, int rounds) -> Task<> {
          for (int round = 0; round < rounds; ++round) std::ignore = co_await sleep(0s);
          source.cancel();
        };
        const auto accept = [](tcp::Listener& from,
                               CancelSource& source) -> Task<std::optional<tcp::Stream>> {
          const Context own = co_await this_context();
          auto stream = co_await in_context(Context{own.loop, &source}, accept_one(from));
          if (stream) co_return std::move(*stream);
          EXPECT_EQ(stream.error(), Errc::cancelled);
          co_return std::nullopt;
        };
        auto both = co_await all(accept(listener, cancel), give_up(cancel, i % 4));
        EXPECT_TRUE(both);
        if (auto& stream = std::get<0>(*both)) accepted.push_back(std::move(*stream));
      }
      co_await expect_all(accepted, count);
    };
    EXPECT_TRUE(co_await with_scope(body));
  };
  run(talk());
}

TEST_P(ListenerTest, AcceptTimesOut) {
  const auto talk = []() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    EXPECT_EQ((co_await timeout(1ms, listener.accept())).error(), Errc::timed_out);
    EXPECT_EQ((co_await timeout(0ms, listener.accept())).error(), Errc::timed_out);
  };
  run(talk());
}

TEST_P(ListenerTest, DrainAcceptsWaitingConnectionsAndCloses) {
  const auto talk = []() -> Task<> {
    const Context own = co_await this_context();
    tcp::Listener listener = co_await listen_locally();
    const auto clients = co_await connect_clients(listener.local_address(), 20);
    own.loop->drain();
    std::vector<tcp::Stream> accepted;
    Result<tcp::Stream> stream = co_await listener.accept();
    for (; stream; stream = co_await listener.accept()) accepted.push_back(std::move(*stream));
    EXPECT_EQ(stream.error(), Errc::closed);
    EXPECT_EQ((co_await listener.accept()).error(), Errc::closed) << "and stays closed";
    co_await expect_all(accepted, 20);
  };
  run(talk());
}

// The queue stays intact if the accepting task is busy with other work during the drain.
TEST_P(SimulatedListenerTest, DrainWaitsForASlowAccepter) {
  const auto talk = []() -> Task<> {
    const Context own = co_await this_context();
    tcp::Listener listener = co_await listen_locally();
    const auto clients = co_await connect_clients(listener.local_address(), 5);
    own.loop->drain();
    std::vector<tcp::Stream> accepted;
    Result<tcp::Stream> stream = fail(Errc::closed);
    do {
      EXPECT_TRUE(co_await sleep(3s));
      stream = co_await listener.accept();
      if (stream) accepted.push_back(std::move(*stream));
    } while (stream);
    EXPECT_EQ(stream.error(), Errc::closed);
    co_await expect_all(accepted, 5);
  };
  run(talk());
}

TEST_P(ListenerTest, DrainClosesAPendingAccept) {
  const auto talk = []() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    const auto drain = []() -> Task<> {
      const Context own = co_await this_context();
      co_await yield();
      own.loop->drain();
    };
    const auto error = [](tcp::Listener& from) -> Task<std::error_code> {
      co_return (co_await from.accept()).error();
    };
    const auto both = co_await all(error(listener), drain());
    EXPECT_EQ(std::get<0>(*both), Errc::closed);
  };
  run(talk());
}

TEST_P(ListenerTest, ListenerCreatedDuringADrainClosesSoon) {
  loop_->drain();
  const auto talk = []() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    EXPECT_EQ((co_await listener.accept()).error(), Errc::closed);
  };
  run(talk());
}

TEST_P(ListenerTest, CancelEndsTheWaitOfADrain) {
  const auto talk = []() -> Task<> {
    const Context own = co_await this_context();
    tcp::Listener listener = co_await listen_locally();
    own.loop->drain();
    EXPECT_EQ((co_await timeout(0s, listener.accept())).error(), Errc::timed_out);
  };
  run(talk());
}

TEST_P(ListenerTest, DestructionResetsConnectionsInItsQueue) {
  const auto talk = []() -> Task<> {
    std::optional<tcp::Listener> listener = co_await listen_locally();
    auto clients = co_await connect_clients(listener->local_address(), 3);
    const Endpoint address = listener->local_address();
    listener.reset();
    for (tcp::Stream& client : clients) {
      const auto heard = co_await client.read();
      EXPECT_FALSE(heard);
    }
    const auto late = co_await tcp::connect(address);
    EXPECT_EQ(late.error(), std::errc::connection_refused);
  };
  run(talk());
}

TEST_P(ListenerTest, Moves) {
  const auto talk = []() -> Task<> {
    tcp::Listener first = co_await listen_locally();
    const Endpoint address = first.local_address();
    tcp::Listener second = std::move(first);
    const auto clients = co_await connect_clients(address, 1);
    EXPECT_TRUE(co_await second.accept());
    second = co_await listen_locally({}, Endpoint::parse("127.0.0.2:0").value());
    EXPECT_NE(second.local_address(), address);
    const auto gone = co_await tcp::connect(address);
    EXPECT_FALSE(gone);
    if (!gone) {
      EXPECT_EQ(gone.error(), std::errc::connection_refused);
    }
  };
  run(talk());
}

TEST_P(ListenerTest, AddressInUseIsAnError) {
  const auto talk = []() -> Task<> {
    const ListenOptions not_shared{.reuse_port = false};
    tcp::Listener alone = co_await listen_locally(not_shared);
    const auto second = co_await tcp::listen(alone.local_address(), not_shared);
    EXPECT_EQ(second.error(), std::errc::address_in_use);
    tcp::Listener shared = co_await listen_locally({}, Endpoint::parse("127.0.0.2:0").value());
    const auto with = co_await tcp::listen(shared.local_address());
    EXPECT_TRUE(with) << with.error().message();
  };
  run(talk());
}

Task<> release_later(loop::Descriptor& held) {
  std::ignore = co_await sleep(20ms);
  held.reset();
}

// A killed process keeps its ports for a moment after its end.
TEST_P(ListenerTest, WaitsForAnAddressThatIsReleasedSoon) {
  const auto talk = [this]() -> Task<> {
    loop::Descriptor held = platform_->listen(Endpoint::loopback(0), {.reuse_port = false}).value();
    const Endpoint address = platform_->local_address(held.value()).value();
    auto both = co_await all(tcp::listen(address), release_later(held));
    EXPECT_EQ(std::get<0>(both.value()).local_address(), address);
  };
  run(talk());
  EXPECT_EQ(loop_->group().listener_registry().failure(), "");
}

// Waiting is useless, because only this runtime itself can release the address.
TEST_P(ListenerTest, AnAddressOfItsOwnRuntimeFailsImmediately) {
  const auto talk = [this]() -> Task<> {
    const ListenOptions not_shared{.reuse_port = false};
    tcp::Listener all = co_await listen_locally({}, Endpoint::parse("0.0.0.0:0").value());
    const Endpoint everywhere = all.local_address();
    tcp::Listener one = co_await listen_locally(not_shared);
    const Endpoint there = one.local_address();
    for (const auto& [asked, holder] :
         {std::pair(Endpoint::loopback(everywhere.port()), everywhere), std::pair(there, there)}) {
      const Instant begun = platform_->now();
      EXPECT_EQ((co_await tcp::listen(asked, not_shared)).error(), std::errc::address_in_use);
      EXPECT_EQ(loop_->group().listener_registry().failure(),
                "cannot listen on " + asked.to_string() + ": " +
                    system_error(EADDRINUSE).message() + ": this process has a socket at " +
                    holder.to_string());
      if (simulated()) {  // other programs may delay a real test
        EXPECT_EQ(platform_->now(), begun);
      }
    }
  };
  run(talk());
}

// The kernel may need a moment to release the address of a closed listener.
TEST_P(SimulatedListenerTest, WaitsForAnAddressAfterItsOwnListenerHasClosed) {
  const auto talk = [this]() -> Task<> {
    Endpoint address;
    {
      const tcp::Listener closed = co_await listen_locally();
      address = closed.local_address();
    }
    const ListenOptions not_shared{.reuse_port = false};
    loop::Descriptor held = platform_->listen(address, not_shared).value();
    auto both = co_await all(tcp::listen(address, not_shared), release_later(held));
    EXPECT_EQ(std::get<0>(both.value()).local_address(), address);
  };
  run(talk());
}

TEST_P(ListenerTest, EachListenerOnPort0HasAPortOfItsOwn) {
  const auto talk = []() -> Task<> {
    auto api = co_await tcp::listen(Endpoint::loopback(0));
    auto admin = co_await tcp::listen(Endpoint::loopback(0));
    EXPECT_TRUE(api && admin);
    if (!api || !admin) co_return;
    EXPECT_NE(api->local_address(), admin->local_address());
    const Endpoint taken = api->local_address();
    EXPECT_TRUE(co_await tcp::listen(taken)) << "a number means this port";
    api = fail(Errc::closed);
    const auto next = co_await tcp::listen(Endpoint::loopback(0));
    EXPECT_EQ(next.value().local_address(), taken) << "the first port that the loop does not have";
  };
  run(talk());
}

Task<> drain_later(Loop& loop) {
  std::ignore = co_await sleep(5ms);
  loop.drain();
}

TEST_P(ListenerTest, WaitForAnAddressEndsWithACancelOrADrain) {
  const auto talk = [this]() -> Task<> {
    const loop::Descriptor held =
        platform_->listen(Endpoint::loopback(0), {.reuse_port = false}).value();
    const Endpoint address = platform_->local_address(held.value()).value();
    const Instant begin = loop_->now();
    EXPECT_EQ((co_await timeout(5ms, tcp::listen(address))).error(), Errc::timed_out);
    const auto both = co_await all(tcp::listen(address), drain_later(*loop_));
    EXPECT_EQ(both.error(), std::errc::address_in_use);
    if (simulated()) {  // other programs may delay a real test
      EXPECT_LT(loop_->now() - begin, 900ms);
    }
  };
  run(talk());
}

TEST_P(SimulatedListenerTest, WaitsWhileDescriptorsAreExhausted) {
  const auto talk = [this]() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    const auto clients = co_await connect_clients(listener.local_address(), 3);
    memory_->set_descriptors_max(memory_->open_descriptors());
    const auto relax = [](MemoryPlatform& platform) -> Task<> {
      std::ignore = co_await sleep(1s);
      platform.set_descriptors_max(1000);
    };
    const auto both = co_await all(accept_one(listener), relax(*memory_));
    EXPECT_TRUE(both);
    EXPECT_GE(loop_->backend().counters().accept_pauses.value(), 1U);
  };
  run(talk());
}

}  // namespace
}  // namespace weir::listener_test
