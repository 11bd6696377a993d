// Tests of Channel.
#include "weir/task/sync/channel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::channel_test {
namespace {

using ChannelTest = CancelSweepTest;

Task<> send_all(Channel<int>& channel, int first, int last) {
  for (int number = first; number <= last; ++number) EXPECT_TRUE(co_await channel.send(number));
}

Task<> receive_all(Channel<int>& channel, std::vector<int>& to) {
  for (;;) {
    const auto number = co_await channel.receive();
    if (!number) {
      EXPECT_EQ(number.error(), Errc::end_of_stream);
      co_return;
    }
    to.push_back(*number);
  }
}

std::vector<int> numbers(int first, int last) {
  std::vector<int> all(static_cast<std::size_t>(last - first + 1));
  std::iota(all.begin(), all.end(), first);
  return all;
}

TEST_F(ChannelTest, ValuesComeOutInOrderForEveryCapacity) {
  for (const std::size_t capacity : {0U, 1U, 2U, 3U, 100U}) {
    SCOPED_TRACE(capacity);
    Channel<int> channel(capacity);
    EXPECT_EQ(channel.capacity(), capacity);
    std::vector<int> received;
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(receive_all(channel, received));
      co_await send_all(channel, 1, 10);
      channel.close();
    };
    EXPECT_TRUE(run(with_scope(body)));
    EXPECT_EQ(received, numbers(1, 10));
  }
}

TEST_F(ChannelTest, SendersWaitForRoomAndNoLonger) {
  Channel<int> channel(2);
  std::vector<int> sent;
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn([](Channel<int>& to, std::vector<int>& done) -> Task<> {
      for (int number = 1; number <= 4; ++number) {
        EXPECT_TRUE(co_await to.send(number));
        done.push_back(number);
      }
    }(channel, sent));
    co_await yield();
    EXPECT_EQ(sent, numbers(1, 2));
    EXPECT_EQ(channel.size(), 2U);
    EXPECT_EQ(channel.try_send(9).error(), Errc::limit_reached);
    EXPECT_EQ(channel.try_receive(), 1);
    EXPECT_EQ(channel.size(), 2U) << "the room belongs to the waiting sender";
    EXPECT_EQ(sent, numbers(1, 2));
    co_await yield();
    EXPECT_EQ(sent, numbers(1, 3));
    for (int number = 2; number <= 4; ++number) {
      const auto received = co_await channel.receive();
      EXPECT_EQ(received, number);
    }
    EXPECT_FALSE(channel.try_receive());
  };
  EXPECT_TRUE(run(with_scope(body)));
}

TEST_F(ChannelTest, ReceiversAreServedInTheOrderOfArrival) {
  Channel<int> channel(4);
  std::vector<std::string> order;
  const auto receiver = [&](std::string name) -> Task<> {
    const auto number = co_await channel.receive();
    EXPECT_TRUE(number);
    order.push_back(name + std::to_string(*number));
  };
  const auto body = [&](Scope& scope) -> Task<> {
    for (const char* name : {"a", "b", "c"}) scope.spawn(receiver(name));
    for (int number = 1; number <= 3; ++number) EXPECT_TRUE(channel.try_send(int(number)));
    EXPECT_EQ(channel.size(), 0U) << "each receiver has its value";
    EXPECT_TRUE(order.empty());
    co_return;
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(order, (std::vector<std::string>{"a1", "b2", "c3"}));
}

TEST_F(ChannelTest, SendersAreServedInTheOrderOfArrival) {
  for (const std::size_t capacity : {0U, 1U, 2U}) {
    Channel<int> channel(capacity);
    std::vector<int> sent, received;
    const auto sender = [&](int number) -> Task<> {
      EXPECT_TRUE(co_await channel.send(number));
      sent.push_back(number);
    };
    const auto body = [&](Scope& scope) -> Task<> {
      for (int number = 1; number <= 5; ++number) scope.spawn(sender(number));
      EXPECT_EQ(sent.size(), capacity);
      for (std::size_t i = 1; i <= 5; ++i) {
        received.push_back(channel.try_receive().value());
        co_await yield();
        EXPECT_EQ(sent.size(), std::min<std::size_t>(capacity + i, 5));
      }
    };
    EXPECT_TRUE(run(with_scope(body)));
    EXPECT_EQ(sent, numbers(1, 5));
    EXPECT_EQ(received, numbers(1, 5));
  }
}

TEST_F(ChannelTest, AValueIsHandedOverWithoutRoom) {
  Channel<int> channel(0);
  EXPECT_EQ(channel.try_send(1).error(), Errc::limit_reached);
  EXPECT_FALSE(channel.try_receive());
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(send_all(channel, 1, 2));
    EXPECT_EQ(channel.try_receive(), 1);
    EXPECT_FALSE(channel.try_receive()) << "the sender has not run yet";
    const auto second = co_await channel.receive();
    EXPECT_EQ(second, 2);
  };
  EXPECT_TRUE(run(with_scope(body)));
}

// --- close --------------------------------------------------------------------------------------

TEST_F(ChannelTest, ValuesInAClosedChannelCanStillBeReceived) {
  Channel<int> channel(3);
  EXPECT_TRUE(channel.try_send(1));
  EXPECT_TRUE(channel.try_send(2));
  channel.close();
  channel.close();
  EXPECT_TRUE(channel.closed());
  EXPECT_EQ(channel.try_send(3).error(), Errc::closed);
  EXPECT_EQ(run(as_task(channel.send(3))).error(), Errc::closed);
  EXPECT_EQ(run(as_task(channel.receive())), 1);
  EXPECT_EQ(channel.try_receive(), 2);
  EXPECT_FALSE(channel.try_receive());
  EXPECT_EQ(run(as_task(channel.receive())).error(), Errc::end_of_stream);
}

TEST_F(ChannelTest, ClosingEndsAllWaits) {
  Channel<int> full(1), empty(1);
  EXPECT_TRUE(full.try_send(1));
  int ended = 0;
  const auto sender = [&]() -> Task<> {
    int number = 2;
    EXPECT_EQ((co_await full.send_from(number)).error(), Errc::closed);
    ++ended;
  };
  const auto receiver = [&]() -> Task<> {
    EXPECT_EQ((co_await empty.receive()).error(), Errc::end_of_stream);
    ++ended;
  };
  const auto body = [&](Scope& scope) -> Task<> {
    for (int i = 0; i < 2; ++i) {
      scope.spawn(sender());
      scope.spawn(receiver());
    }
    full.close();
    empty.close();
    EXPECT_EQ(ended, 0);
    co_return;
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(ended, 4);
  EXPECT_EQ(full.try_receive(), 1);
  EXPECT_FALSE(full.try_receive());
}

// --- ownership ----------------------------------------------------------------------------------

TEST_F(ChannelTest, MovesValuesThatCannotBeCopied) {
  Channel<std::unique_ptr<int>> channel(1);
  EXPECT_TRUE(channel.try_send(std::make_unique<int>(1)));
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(channel.send(std::make_unique<int>(2)));
    const auto first = co_await channel.receive();
    const auto second = co_await channel.receive();
    EXPECT_EQ(**first * 10 + **second, 12);
  };
  EXPECT_TRUE(run(with_scope(body)));
}

TEST_F(ChannelTest, AValueThatWasNotSentStaysWithTheSender) {
  Channel<std::unique_ptr<int>> channel(1);
  auto first = std::make_unique<int>(1), second = std::make_unique<int>(2);
  EXPECT_TRUE(run(as_task(channel.send_from(first))));
  EXPECT_EQ(first, nullptr);
  EXPECT_EQ(run(timeout(1s, channel.send_from(second))).error(), Errc::timed_out);
  EXPECT_FALSE(channel.try_send(std::move(second)));
  channel.close();
  EXPECT_EQ(run(as_task(channel.send_from(second))).error(), Errc::closed);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(*second, 2);
}

TEST_F(ChannelTest, ValuesThatWereNotReceivedAreDestroyed) {
  const auto value = std::make_shared<int>(1);
  {
    Channel<std::shared_ptr<int>> channel(3);
    for (int round = 0; round < 5; ++round) {  // the ring wraps around
      EXPECT_TRUE(channel.try_send(std::shared_ptr(value)));
      EXPECT_TRUE(channel.try_receive());
    }
    EXPECT_EQ(value.use_count(), 1);
    EXPECT_TRUE(channel.try_send(std::shared_ptr(value)));
    EXPECT_TRUE(channel.try_send(std::shared_ptr(value)));
    EXPECT_EQ(value.use_count(), 3);
  }
  EXPECT_EQ(value.use_count(), 1);
}

/// A value that counts its objects.
class Counted {
 public:
  explicit Counted(int& alive) noexcept : alive_(&alive) { ++*alive_; }
  Counted(Counted&& other) noexcept : alive_(other.alive_) { ++*alive_; }
  ~Counted() { --*alive_; }

 private:
  int* alive_;
};

TEST_F(ChannelTest, HoldsNoObjectOfAValueThatLeft) {
  for (const std::size_t capacity : {1U, 2U, 3U}) {
    int alive = 0;
    {
      Channel<Counted> channel(capacity);
      for (int round = 0; round < 5; ++round) {
        EXPECT_TRUE(channel.try_send(Counted(alive)));
        EXPECT_EQ(alive, 1);
        const auto value = channel.try_receive();
        EXPECT_TRUE(value);
        EXPECT_EQ(alive, 1) << "only the received one";
      }
      EXPECT_EQ(alive, 0);
      while (channel.try_send(Counted(alive))) continue;
      EXPECT_EQ(alive, static_cast<int>(capacity));
    }
    EXPECT_EQ(alive, 0);
  }
}

TEST_F(ChannelTest, AValueThatASenderCouldNotSendIsDestroyed) {
  int alive = 0;
  Channel<Counted> channel(0);
  EXPECT_EQ(run(timeout(1s, channel.send(Counted(alive)))).error(), Errc::timed_out);
  EXPECT_EQ(alive, 0);
  channel.close();
  EXPECT_EQ(run(as_task(channel.send(Counted(alive)))).error(), Errc::closed);
  EXPECT_EQ(alive, 0);
}

TEST_F(ChannelTest, ClosingLeavesTheValuesOfWaitingSendersWithThem) {
  Channel<std::unique_ptr<int>> channel(0);
  auto value = std::make_unique<int>(1);
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn([](Channel<std::unique_ptr<int>>& to, std::unique_ptr<int>& from) -> Task<> {
      EXPECT_EQ((co_await to.send_from(from)).error(), Errc::closed);
      EXPECT_NE(from, nullptr);
    }(channel, value));
    channel.close();
    EXPECT_FALSE(channel.try_receive());
    co_return;
  };
  EXPECT_TRUE(run(with_scope(body)));
}

// --- cancelled at every point -------------------------------------------------------------------

/// A Ledger records where each value ended.
struct Ledger {
  std::vector<int> received;
  std::vector<int> kept;  // by a sender that failed
};

Task<> send_cancellable(CancelInjector& injector, Channel<std::unique_ptr<int>>& channel,
                        Ledger& ledger, int first) {
  for (int number = first; number < first + 4; ++number) {
    auto value = std::make_unique<int>(number);
    injector.checkpoint();
    const auto sent = co_await channel.send_from(value);
    injector.checkpoint();
    EXPECT_EQ(value == nullptr, sent.has_value());
    if (!sent) ledger.kept.push_back(number);
    if (number % 2 == 0) co_await yield();
  }
}

Task<> receive_cancellable(CancelInjector& injector, Channel<std::unique_ptr<int>>& channel,
                           Ledger& ledger) {
  for (;;) {
    injector.checkpoint();
    auto value = co_await channel.receive();
    injector.checkpoint();
    if (!value) co_return;
    ledger.received.push_back(**value);
    std::ignore = co_await sleep(1ms);
  }
}

/// Runs two senders and two receivers over a channel of this capacity.
Task<> exchange_cancellable(CancelInjector& injector, std::size_t capacity) {
  Channel<std::unique_ptr<int>> channel(capacity);
  Ledger ledger;
  const auto senders = [&](Scope& scope) -> Task<> {
    scope.spawn(injector.as_target(0, send_cancellable(injector, channel, ledger, 10)));
    scope.spawn(injector.as_target(1, send_cancellable(injector, channel, ledger, 20)));
    co_return;
  };
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(injector.as_target(2, receive_cancellable(injector, channel, ledger)));
    scope.spawn(injector.as_target(3, receive_cancellable(injector, channel, ledger)));
    EXPECT_TRUE(co_await with_scope(senders));
    channel.close();
  };
  EXPECT_TRUE(co_await with_scope(body));
  while (auto left = channel.try_receive()) ledger.received.push_back(**left);
  const auto of = [&](int first) {
    std::vector<int> all;
    std::copy_if(ledger.received.begin(), ledger.received.end(), std::back_inserter(all),
                 [&](int number) { return number / 10 == first; });
    return all;
  };
  EXPECT_TRUE(std::ranges::is_sorted(of(1)) && std::ranges::is_sorted(of(2))) << "overtaken";
  std::vector<int> all = ledger.received;
  all.insert(all.end(), ledger.kept.begin(), ledger.kept.end());
  std::ranges::sort(all);
  EXPECT_EQ(all, (std::vector<int>{10, 11, 12, 13, 20, 21, 22, 23}));
}

TEST_F(ChannelTest, NoValueIsLostOrDuplicatedByACancellation) {
  for (const std::size_t capacity : {0U, 1U, 3U}) {
    SCOPED_TRACE(capacity);
    const auto scenario = [&](CancelInjector& injector) {
      return exchange_cancellable(injector, capacity);
    };
    EXPECT_GT(sweep(4, scenario), 150U);
  }
}

#ifndef NDEBUG
TEST_F(ChannelTest, AssertsThatNoTaskWaitsWhenDestroyed) {
  const auto destroy = [this](bool sends) {
    auto channel = std::make_unique<Channel<int>>(0);
    const auto body = [&](Scope& scope) -> Task<> {
      if (sends) scope.spawn(channel->send(1));
      if (!sends) {
        scope.spawn(
            [](Channel<int>& from) -> Task<> { std::ignore = co_await from.receive(); }(*channel));
      }
      channel.reset();
      co_return;
    };
    static_cast<void>(run(with_scope(body)));
  };
  EXPECT_DEATH(destroy(false), "destroyed while waited on");
  EXPECT_DEATH(destroy(true), "destroyed while waited on");
}
#endif

}  // namespace
}  // namespace weir::channel_test
