#include "weir/net/listen/listener.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "weir/net/test/net_fixture.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir {
namespace {

using ListenerTest = NetTest;
INSTANTIATE_TEST_SUITE_P(On, ListenerTest, every_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

Task<Result<tcp::Stream>> accept_one(tcp::Listener& listener) {
  co_return co_await listener.accept();
}

/// Clients that have connected and sent their number; nobody has accepted them.
Task<std::vector<tcp::Stream>> knock(Endpoint server, int count) {
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

/// The peer of each is a number; all of 0 to count - 1 must be among them.
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

TEST_P(ListenerTest, AcceptsWhatWaitsAndWhatComes) {
  const auto talk = []() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    EXPECT_NE(listener.local_address().port(), 0);
    const auto waiting = co_await knock(listener.local_address(), 10);
    std::vector<tcp::Stream> accepted;
    for (int i = 0; i < 10; ++i) accepted.push_back((co_await listener.accept()).value());
    co_await expect_all(accepted, 10);
    auto both = co_await all(accept_one(listener), tcp::connect(listener.local_address()));
    EXPECT_TRUE(both);
  };
  run(talk());
}

TEST_P(ListenerTest, ACancelledAcceptLosesNothing) {
  const auto talk = []() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    constexpr int count = 60;
    std::vector<tcp::Stream> accepted;
    const auto body = [&](Scope& scope) -> Task<> {
      std::vector<tcp::Stream> clients;
      scope.spawn([](Endpoint server, std::vector<tcp::Stream>& to) -> Task<> {
        to = co_await knock(server, count);
      }(listener.local_address(), clients));
      // Each accept is given up after a few rounds, wherever the connection is by then.
      for (int i = 0; accepted.size() < count; ++i) {
        CancelSource cancel;
        const auto give_up = [](CancelSource& source, int rounds) -> Task<> {
          for (int round = 0; round < rounds; ++round) static_cast<void>(co_await sleep(0s));
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

TEST_P(ListenerTest, ATimeoutOfAnAccept) {
  const auto talk = []() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    EXPECT_EQ((co_await timeout(1ms, listener.accept())).error(), Errc::timed_out);
    EXPECT_EQ((co_await timeout(0ms, listener.accept())).error(), Errc::timed_out);
  };
  run(talk());
}

TEST_P(ListenerTest, ADrainAcceptsWhatWaitsThenIsClosed) {
  const auto talk = []() -> Task<> {
    const Context own = co_await this_context();
    tcp::Listener listener = co_await listen_locally();
    const auto clients = co_await knock(listener.local_address(), 20);
    own.loop->drain();
    std::vector<tcp::Stream> accepted;
    Result<tcp::Stream> stream = co_await listener.accept();
    for (; stream; stream = co_await listener.accept()) accepted.push_back(std::move(*stream));
    EXPECT_EQ(stream.error(), Errc::closed);
    EXPECT_EQ((co_await listener.accept()).error(), Errc::closed) << "and stays so";
    co_await expect_all(accepted, 20);
  };
  run(talk());
}

// Who is busy with other things while the loop drains finds the queue intact all the same.
TEST_P(ListenerTest, ADrainWaitsForASlowAccepter) {
  if (!simulated()) GTEST_SKIP() << "takes seconds";
  const auto talk = []() -> Task<> {
    const Context own = co_await this_context();
    tcp::Listener listener = co_await listen_locally();
    const auto clients = co_await knock(listener.local_address(), 5);
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

TEST_P(ListenerTest, ADrainWhileAnAcceptIsPending) {
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

TEST_P(ListenerTest, AListenerMadeDuringADrainIsClosedSoon) {
  loop_->drain();
  const auto talk = []() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    EXPECT_EQ((co_await listener.accept()).error(), Errc::closed);
  };
  run(talk());
}

TEST_P(ListenerTest, CancellingBeatsTheWaitOfADrain) {
  const auto talk = []() -> Task<> {
    const Context own = co_await this_context();
    tcp::Listener listener = co_await listen_locally();
    own.loop->drain();
    EXPECT_EQ((co_await timeout(0s, listener.accept())).error(), Errc::timed_out);
  };
  run(talk());
}

TEST_P(ListenerTest, DestroyedWithConnectionsInItsQueue) {
  const auto talk = []() -> Task<> {
    std::optional<tcp::Listener> listener = co_await listen_locally();
    auto clients = co_await knock(listener->local_address(), 3);
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
    const auto clients = co_await knock(address, 1);
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

TEST_P(ListenerTest, ATakenAddressIsAnError) {
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

Task<> let_go_later(Descriptor& held) {
  static_cast<void>(co_await sleep(20ms));
  held.reset();
}

// A killed process has its ports for a moment longer than its life.
TEST_P(ListenerTest, AnAddressThatIsLetGoSoonIsWaitedFor) {
  const auto talk = [this]() -> Task<> {
    Descriptor held = host_->listen(Endpoint::loopback(0), {.reuse_port = false}).value();
    const Endpoint address = host_->local_address(held.value()).value();
    auto both = co_await all(tcp::listen(address), let_go_later(held));
    EXPECT_EQ(std::get<0>(both.value()).local_address(), address);
  };
  run(talk());
  EXPECT_EQ(loop_->group().failure(), "");
}

Task<> drain_later(Loop& loop) {
  static_cast<void>(co_await sleep(5ms));
  loop.drain();
}

TEST_P(ListenerTest, WaitingForAnAddressEndsWithACancelOrADrain) {
  const auto talk = [this]() -> Task<> {
    const Descriptor held = host_->listen(Endpoint::loopback(0), {.reuse_port = false}).value();
    const Endpoint address = host_->local_address(held.value()).value();
    const Instant begin = loop_->now();
    EXPECT_EQ((co_await timeout(5ms, tcp::listen(address))).error(), Errc::timed_out);
    const auto both = co_await all(tcp::listen(address), drain_later(*loop_));
    EXPECT_EQ(both.error(), std::errc::address_in_use);
    if (simulated()) {  // elsewhere others may have the processors
      EXPECT_LT(loop_->now() - begin, 900ms);
    }
  };
  run(talk());
}

TEST_P(ListenerTest, WhenDescriptorsRunOutItWaitsAndGoesOn) {
  if (!simulated()) GTEST_SKIP() << "the limit of descriptors is the whole process's";
  const auto talk = [this]() -> Task<> {
    tcp::Listener listener = co_await listen_locally();
    const auto clients = co_await knock(listener.local_address(), 3);
    memory_->set_descriptors_max(memory_->open_descriptors());
    const auto relax = [](MemoryHost& host) -> Task<> {
      static_cast<void>(co_await sleep(1s));
      host.set_descriptors_max(1000);
    };
    const auto both = co_await all(accept_one(listener), relax(*memory_));
    EXPECT_TRUE(both);
    EXPECT_GE(loop_->backend().counters().accept_pauses.value(), 1U);
  };
  run(talk());
}

}  // namespace
}  // namespace weir
