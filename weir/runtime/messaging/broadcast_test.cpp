#include "weir/runtime/messaging/broadcast.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/runtime/test/runtime_fixture.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/timeout.hpp"

namespace weir::broadcast_test {
namespace {

Task<> receive_all(Broadcast<int>::Subscription& from, std::vector<int>& to) {
  for (;;) {
    const auto number = co_await from.receive();
    if (!number) {
      EXPECT_EQ(number.error(), Errc::end_of_stream);
      co_return;
    }
    to.push_back(**number);
  }
}

class BroadcastTest : public MultiCoreTest {
 protected:
  /// Returns the result of a receive() that need not wait.
  template <class T>
  Result<std::shared_ptr<const T>> next(typename Broadcast<T>::Subscription& of) {
    return weir::run(loop(0), as_task(of.receive()));
  }
  Result<std::shared_ptr<const int>> next(Broadcast<int>::Subscription& of) {
    return next<int>(of);
  }
};

TEST_F(BroadcastTest, AllSubscribersReceiveAllValuesInOneOrder) {
  Broadcast<int> broadcast;
  std::array<std::vector<int>, 3> received;
  std::vector<Broadcast<int>::Subscription> subscriptions;
  for (int core = 0; core < 3; ++core) subscriptions.push_back(broadcast.subscribe());
  EXPECT_EQ(broadcast.subscribers(), 3U);
  int publishing = 3;
  const auto on_core = [&](std::size_t core) -> Task<> {
    const auto both = [&](Scope& scope) -> Task<> {
      scope.spawn(receive_all(subscriptions[core], received[core]));
      for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(broadcast.publish(static_cast<int>(core) * 100 + i));
        if (i % 3 == 0) co_await yield();
      }
      if (--publishing == 0) broadcast.close();
    };
    std::ignore = co_await with_scope(both);
  };
  run_on_cores(
      {[&] { return on_core(0); }, [&] { return on_core(1); }, [&] { return on_core(2); }});
  EXPECT_EQ(received[0].size(), 60U);
  EXPECT_EQ(received[0], received[1]);
  EXPECT_EQ(received[0], received[2]);
  std::erase_if(received[0], [](int value) { return value < 100 || value >= 200; });
  EXPECT_EQ(received[0], numbers(100, 119));
}

TEST_F(BroadcastTest, AValueIsSharedAndNotCopied) {
  Broadcast<std::unique_ptr<std::string>> broadcast;
  auto one = broadcast.subscribe();
  auto two = broadcast.subscribe();
  EXPECT_TRUE(broadcast.publish(std::make_unique<std::string>("text")));
  const auto first = next<std::unique_ptr<std::string>>(one);
  const auto second = next<std::unique_ptr<std::string>>(two);
  EXPECT_EQ(**first.value(), "text");
  EXPECT_EQ(first.value(), second.value());
}

TEST_F(BroadcastTest, ASubscriberReceivesOnlyLaterValues) {
  Broadcast<int> broadcast;
  EXPECT_TRUE(broadcast.publish(1));
  auto early = broadcast.subscribe();
  EXPECT_TRUE(broadcast.publish(2));
  auto late = broadcast.subscribe();
  EXPECT_TRUE(broadcast.publish(3));
  EXPECT_EQ(*next(early).value(), 2);
  EXPECT_EQ(*next(early).value(), 3);
  EXPECT_EQ(*next(late).value(), 3);
}

TEST_F(BroadcastTest, ASubscriptionEndsWithItsObject) {
  Broadcast<int> broadcast;
  {
    auto first = broadcast.subscribe();
    auto second = std::move(first);
    EXPECT_EQ(broadcast.subscribers(), 1U);
    EXPECT_TRUE(broadcast.publish(1));
    auto third = broadcast.subscribe();
    third = std::move(second);
    EXPECT_EQ(broadcast.subscribers(), 1U);
    EXPECT_EQ(*next(third).value(), 1);
  }
  EXPECT_EQ(broadcast.subscribers(), 0U);
  EXPECT_TRUE(broadcast.publish(2)) << "without subscribers";
}

TEST_F(BroadcastTest, KeptValuesAreBounded) {
  const auto value = std::make_shared<int>(1);
  {
    Broadcast<std::shared_ptr<int>> broadcast({.capacity = 4});
    auto slow = broadcast.subscribe();
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(broadcast.publish(std::shared_ptr<int>(value)));
    EXPECT_EQ(value.use_count(), 1 + 4);
  }
  EXPECT_EQ(value.use_count(), 1);
}

TEST_F(BroadcastTest, KeptValuesAreFreedWithTheLastSubscriber) {
  const auto value = std::make_shared<int>(1);
  Broadcast<std::shared_ptr<int>> broadcast({.capacity = 40});
  {
    auto first = broadcast.subscribe();
    {
      auto second = broadcast.subscribe();
      for (int i = 0; i < 100; ++i) EXPECT_TRUE(broadcast.publish(std::shared_ptr<int>(value)));
    }
    EXPECT_EQ(value.use_count(), 1 + 40) << "the first subscriber is left";
  }
  EXPECT_EQ(value.use_count(), 1);
  auto third = broadcast.subscribe();
  EXPECT_TRUE(broadcast.publish(std::make_shared<int>(7)));
  EXPECT_EQ(**next<std::shared_ptr<int>>(third).value(), 7);
}

TEST_F(BroadcastTest, KeptValuesAreFreedWithTheLastDisconnectedSubscriber) {
  const auto value = std::make_shared<int>(1);
  Broadcast<std::shared_ptr<int>> broadcast(
      {.capacity = 3, .slow_reader_policy = SlowReaderPolicy::disconnect});
  auto slow = broadcast.subscribe();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(broadcast.publish(std::shared_ptr<int>(value)));
  EXPECT_EQ(value.use_count(), 1 + 3);
  EXPECT_EQ(next<std::shared_ptr<int>>(slow).error(), Errc::limit_reached);
  EXPECT_EQ(value.use_count(), 1);
}

TEST_F(BroadcastTest, AValueWithoutSubscribersIsNotMoved) {
  struct Moving {
    explicit Moving(int& to) noexcept : moves(&to) {}
    Moving(Moving&& other) noexcept : moves(other.moves) { ++*moves; }
    Moving& operator=(Moving&&) = delete;
    int* moves;
  };
  int moves = 0;
  Broadcast<Moving> broadcast;
  EXPECT_TRUE(broadcast.publish(Moving(moves)));
  EXPECT_EQ(moves, 0);
  {
    auto subscriber = broadcast.subscribe();
    EXPECT_TRUE(broadcast.publish(Moving(moves)));
    EXPECT_EQ(moves, 1);
  }
  broadcast.close();
  EXPECT_EQ(broadcast.publish(Moving(moves)).error(), Errc::closed);
  EXPECT_EQ(moves, 1);
}

// --- slow readers
// -------------------------------------------------------------------------------

TEST_F(BroadcastTest, ALaggingReaderGetsTheNumberOfMissedValues) {
  Broadcast<int> broadcast({.capacity = 4, .slow_reader_policy = SlowReaderPolicy::lag});
  auto slow = broadcast.subscribe();
  auto quick = broadcast.subscribe();
  for (int i = 1; i <= 10; ++i) {
    EXPECT_TRUE(broadcast.publish(int(i)));
    EXPECT_EQ(*next(quick).value(), i);
  }
  EXPECT_EQ(quick.missed(), 0U);
  EXPECT_EQ(slow.missed(), 0U);
  EXPECT_EQ(next(slow).error(), Errc::limit_reached);
  EXPECT_EQ(slow.missed(), 6U);
  for (int i = 7; i <= 10; ++i) EXPECT_EQ(*next(slow).value(), i);
  for (int i = 11; i <= 14; ++i) EXPECT_TRUE(broadcast.publish(int(i)));
  for (int i = 11; i <= 14; ++i) EXPECT_EQ(*next(slow).value(), i) << "just in time";
  for (int i = 15; i <= 19; ++i) EXPECT_TRUE(broadcast.publish(int(i)));
  EXPECT_EQ(next(slow).error(), Errc::limit_reached);
  EXPECT_EQ(slow.missed(), 7U);
  EXPECT_EQ(detail::MissedValues::of(loop(0)).count.value(), 7U);
  EXPECT_EQ(*next(slow).value(), 16);
  EXPECT_EQ(broadcast.subscribers(), 2U);
}

TEST_F(BroadcastTest, DropOldestContinuesWithTheOldestKeptValue) {
  Broadcast<int> broadcast({.capacity = 3, .slow_reader_policy = SlowReaderPolicy::drop_oldest});
  auto slow = broadcast.subscribe();
  for (int i = 1; i <= 10; ++i) EXPECT_TRUE(broadcast.publish(int(i)));
  EXPECT_EQ(*next(slow).value(), 8);
  EXPECT_EQ(slow.missed(), 7U);
  EXPECT_EQ(*next(slow).value(), 9);
  EXPECT_TRUE(broadcast.publish(11));
  EXPECT_TRUE(broadcast.publish(12));
  EXPECT_TRUE(broadcast.publish(13));
  EXPECT_EQ(*next(slow).value(), 11);
  EXPECT_EQ(slow.missed(), 8U);
}

TEST_F(BroadcastTest, ADisconnectedReaderStaysDisconnected) {
  Broadcast<int> broadcast({.capacity = 3, .slow_reader_policy = SlowReaderPolicy::disconnect});
  auto slow = broadcast.subscribe();
  auto other = broadcast.subscribe();
  for (int i = 1; i <= 4; ++i) EXPECT_TRUE(broadcast.publish(int(i)));
  EXPECT_EQ(next(slow).error(), Errc::limit_reached);
  EXPECT_EQ(slow.missed(), 1U);
  EXPECT_EQ(broadcast.subscribers(), 1U);
  EXPECT_EQ(next(slow).error(), Errc::limit_reached);
  auto moved = std::move(slow);
  EXPECT_EQ(next(moved).error(), Errc::limit_reached);
  EXPECT_EQ(next(other).error(), Errc::limit_reached);
  EXPECT_EQ(broadcast.subscribers(), 0U);
  auto again = broadcast.subscribe();
  EXPECT_TRUE(broadcast.publish(5));
  EXPECT_EQ(*next(again).value(), 5);
}

// --- the end, cancelling, other cores -----------------------------------------------------------

TEST_F(BroadcastTest, KeptValuesCanBeReceivedAfterClose) {
  Broadcast<int> broadcast;
  auto subscription = broadcast.subscribe();
  EXPECT_TRUE(broadcast.publish(1));
  broadcast.close();
  broadcast.close();
  EXPECT_EQ(broadcast.publish(2).error(), Errc::closed);
  std::vector<int> received;
  run_on_cores({[&] { return receive_all(subscription, received); }});
  EXPECT_EQ(received, numbers(1, 1));
  auto late = broadcast.subscribe();
  EXPECT_EQ(next(late).error(), Errc::end_of_stream);
}

TEST_F(BroadcastTest, AWaitingReaderResumesOnItsOwnCoreOncePerBatch) {
  Broadcast<int> broadcast;
  std::size_t received = 0;
  const auto reader = [&](std::size_t core) -> Task<> {
    auto subscription = broadcast.subscribe();
    while (co_await subscription.receive()) {
      EXPECT_EQ(Loop::current(), &loop(core));
      ++received;
    }
  };
  platform_.at(platform_.now() + 1s, [&] {
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(broadcast.publish(int(i)));
  });
  platform_.at(platform_.now() + 2s, [&] {
    EXPECT_EQ(received, 300U);
    broadcast.close();
  });
  run_on_cores({[&] { return reader(0); }, [&] { return reader(1); }, [&] { return reader(2); }});
  for (const Loop* const each : loops()) {
    EXPECT_EQ(each->counters().received.value(), 2U) << "the batch, and the end";
  }
}

TEST_F(BroadcastTest, CancellingTakesNothing) {
  Broadcast<int> broadcast;
  const auto body = [&]() -> Task<> {
    auto subscription = broadcast.subscribe();
    EXPECT_EQ((co_await timeout(1s, subscription.receive())).error(), Errc::timed_out);
    EXPECT_TRUE(broadcast.publish(1));
    const auto cancelled = [&](Scope& scope) -> Task<> {
      scope.cancel();
      const auto value = co_await subscription.receive();
      EXPECT_EQ(**value, 1) << "a published value needs no wait";
      EXPECT_EQ((co_await subscription.receive()).error(), Errc::cancelled);
    };
    std::ignore = co_await with_scope(cancelled);
    EXPECT_TRUE(broadcast.publish(2));
    const auto value = co_await timeout(1s, subscription.receive());
    EXPECT_EQ(**value, 2);
  };
  run_on_cores({body});
}

TEST_F(BroadcastTest, ACancelledTaskResumesFromTheReadyQueue) {
  Broadcast<int> broadcast;
  auto subscription = broadcast.subscribe();
  CancelSource source;
  bool ended = false;
  const auto receive = [&]() -> Task<> {
    EXPECT_EQ((co_await subscription.receive()).error(), Errc::cancelled);
    ended = true;
  };
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(in_context({&scope.loop(), &source}, receive()));
    source.cancel();
    EXPECT_FALSE(ended);
    co_await yield();
    EXPECT_TRUE(ended);
  };
  const auto root = [&]() -> Task<> { EXPECT_TRUE(co_await with_scope(body)); };
  run_on_cores({root});
}

TEST_F(BroadcastTest, AValueAndTheEndBeatALaterCancellation) {
  Broadcast<int> broadcast;
  auto subscription = broadcast.subscribe();
  std::array<CancelSource, 3> sources;
  std::vector<int> received;
  const auto receive = [&](std::error_code expected) -> Task<> {
    const auto value = co_await subscription.receive();
    EXPECT_EQ(value ? std::error_code() : value.error(), expected);
    if (value) received.push_back(**value);
  };
  const auto wait_until_readable = [&]() -> Task<> {
    EXPECT_TRUE(co_await subscription.readable());
    co_await receive({});
  };
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(in_context({&scope.loop(), &sources[0]}, receive({})));
    EXPECT_TRUE(broadcast.publish(1));
    sources[0].cancel();
    EXPECT_TRUE(co_await sleep(1s));
    EXPECT_EQ(received, numbers(1, 1));
    scope.spawn(in_context({&scope.loop(), &sources[1]}, wait_until_readable()));
    EXPECT_TRUE(broadcast.publish(2));
    sources[1].cancel();
    EXPECT_TRUE(co_await sleep(1s));
    EXPECT_EQ(received, numbers(1, 2));
    scope.spawn(in_context({&scope.loop(), &sources[2]}, receive(Errc::end_of_stream)));
    broadcast.close();
    sources[2].cancel();
  };
  const auto root = [&]() -> Task<> { EXPECT_TRUE(co_await with_scope(body)); };
  run_on_cores({root});
}

TEST_F(BroadcastTest, ReadableTakesNothing) {
  Broadcast<int> broadcast({.capacity = 2});
  const auto body = [&]() -> Task<> {
    auto subscription = broadcast.subscribe();
    EXPECT_EQ((co_await timeout(1s, subscription.readable())).error(), Errc::timed_out);
    for (int i = 1; i <= 3; ++i) EXPECT_TRUE(broadcast.publish(int(i)));
    EXPECT_TRUE(co_await subscription.readable());
    EXPECT_EQ(subscription.missed(), 0U) << "readable() does not count";
    EXPECT_EQ((co_await subscription.receive()).error(), Errc::limit_reached);
    for (int i = 2; i <= 3; ++i) {
      EXPECT_TRUE(co_await subscription.readable());
      const auto value = co_await subscription.receive();
      EXPECT_EQ(**value, i);
    }
    EXPECT_TRUE(co_await subscription.readable()) << "of a value from outside";
    EXPECT_EQ(**co_await subscription.receive(), 4);
    broadcast.close();
    EXPECT_EQ((co_await subscription.readable()).error(), Errc::end_of_stream);
  };
  platform_.at(platform_.now() + 2s, [&] { EXPECT_TRUE(broadcast.publish(4)); });
  run_on_cores({body});
}

TEST_F(BroadcastTest, AFloodDoesNotStarveTheReadersCore) {
  constexpr int count = 10'000;
  Broadcast<int> broadcast({.capacity = count});
  auto subscription = broadcast.subscribe();
  for (int i = 0; i < count; ++i) EXPECT_TRUE(broadcast.publish(int(i)));
  broadcast.close();
  std::vector<int> received;
  run_beside_others(receive_all(subscription, received), received, count);
  EXPECT_EQ(received, numbers(0, count - 1));
}

TEST_F(BroadcastTest, TheLoopTakesATurnAfterEach256ValuesWithoutAWait) {
  Broadcast<int> broadcast({.capacity = 1000});
  auto subscription = broadcast.subscribe();
  for (int i = 0; i < 800; ++i) EXPECT_TRUE(broadcast.publish(int(i)));
  const auto reader = [&]() -> Task<> {
    const std::uint64_t first = loop(0).counters().turns.value();
    for (std::uint64_t number = 1; number <= 800; ++number) {
      EXPECT_TRUE(co_await subscription.receive());
      EXPECT_EQ(loop(0).counters().turns.value() - first, number / 256) << number;
    }
  };
  run_on_cores({reader});
}

TEST_F(BroadcastTest, AWaitBeginsANewRowOfValues) {
  Broadcast<int> broadcast({.capacity = 1000});
  auto subscription = broadcast.subscribe();
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(broadcast.publish(int(i)));
  platform_.at(platform_.now() + 1s, [&] {
    for (int i = 0; i < 400; ++i) EXPECT_TRUE(broadcast.publish(int(i)));
  });
  const auto reader = [&]() -> Task<> {
    for (int i = 0; i < 201; ++i) EXPECT_TRUE(co_await subscription.receive());
    const std::uint64_t first = loop(0).counters().turns.value();
    for (std::uint64_t number = 1; number < 400; ++number) {
      EXPECT_TRUE(co_await subscription.receive());
      EXPECT_EQ(loop(0).counters().turns.value() - first, number / 256) << number;
    }
  };
  run_on_cores({reader});
}

TEST_F(BroadcastTest, KeepsItsCapacity) {
  for (const std::size_t capacity : {0U, 1U, 2U, 3U, 17U}) {
    const std::size_t kept = capacity == 0 ? 1 : capacity;
    Broadcast<int> broadcast({.capacity = capacity});
    EXPECT_EQ(broadcast.capacity(), kept);
    auto slow = broadcast.subscribe();
    for (int i = 0; i <= static_cast<int>(kept); ++i) EXPECT_TRUE(broadcast.publish(int(i)));
    EXPECT_EQ(next(slow).error(), Errc::limit_reached);
    EXPECT_EQ(slow.missed(), 1U);
    for (int i = 1; i <= static_cast<int>(kept); ++i) EXPECT_EQ(*next(slow).value(), i);
  }
}

TEST_F(BroadcastTest, ReadableReturnsIfReceiveWouldFailImmediately) {
  Broadcast<int> broadcast({.capacity = 1, .slow_reader_policy = SlowReaderPolicy::disconnect});
  auto subscription = broadcast.subscribe();
  EXPECT_TRUE(broadcast.publish(1));
  EXPECT_TRUE(broadcast.publish(2));
  EXPECT_EQ(next(subscription).error(), Errc::limit_reached);
  const auto body = [&]() -> Task<> {
    EXPECT_TRUE(co_await timeout(1s, subscription.readable()));
    broadcast.close();
    EXPECT_TRUE(co_await timeout(1s, subscription.readable()));
    EXPECT_EQ((co_await subscription.receive()).error(), Errc::limit_reached);
  };
  run_on_cores({body});
}

TEST_F(BroadcastTest, ADisconnectedReaderMissesNoLaterValues) {
  Broadcast<int> broadcast({.capacity = 2, .slow_reader_policy = SlowReaderPolicy::disconnect});
  {
    auto slow = broadcast.subscribe();
    auto other = broadcast.subscribe();
    for (int i = 1; i <= 5; ++i) EXPECT_TRUE(broadcast.publish(int(i)));
    EXPECT_EQ(next(slow).error(), Errc::limit_reached);
    EXPECT_TRUE(broadcast.publish(6));
    EXPECT_EQ(next(slow).error(), Errc::limit_reached);
    EXPECT_EQ(slow.missed(), 3U);
    EXPECT_EQ(broadcast.subscribers(), 1U);
  }
  EXPECT_EQ(broadcast.subscribers(), 0U) << "each subscriber leaves once";
}

/// Scenario with a reader on each core and values from outside; a cancelled target continues.
struct Hearing {
  explicit Hearing(CancelInjector& of) : injector(of) {
    for (int core = 0; core < 3; ++core) subscriptions.push_back(broadcast.subscribe());
  }
  Task<> on(unsigned core) {
    co_await injector.as_target(core, receive(core));
    co_await receive(core);
  }
  Task<> receive(std::size_t core) {
    for (;;) {
      const auto value = co_await subscriptions[core].receive();
      injector.checkpoint();
      if (!value) {
        EXPECT_TRUE(value.error() == Errc::cancelled || value.error() == Errc::end_of_stream);
        co_return;
      }
      received[core].push_back(**value);
    }
  }
  bool outside() {
    if (published == 5) return false;
    EXPECT_TRUE(broadcast.publish(++published));
    if (published == 5) broadcast.close();
    return true;
  }
  void check() {
    for (const auto& each : received) EXPECT_EQ(each, numbers(1, 5));
  }

  CancelInjector& injector;
  Broadcast<int> broadcast;
  std::vector<Broadcast<int>::Subscription> subscriptions;
  std::array<std::vector<int>, 3> received;
  int published = 0;
};

TEST_F(BroadcastTest, NoValueIsMissedWhenCancelledAtEveryStep) {
  EXPECT_GT(sweep<Hearing>(3), 60U);
}

/// The same scenario with readers that also wait for a bell, which rings in each turn. Both
/// events often come in the same turn.
struct HearingAndRacing : Hearing {
  using Hearing::Hearing;

  Task<> on(unsigned core) {
    const auto body = [this, core](Scope& scope) -> Task<> {
      scope.spawn(ring(core));
      co_await injector.as_target(core, race_until_cancelled(core));
      co_await race_until_cancelled(core);
      rings_left[core] = 0;
    };
    EXPECT_TRUE(co_await with_scope(body));
  }
  Task<> ring(std::size_t core) {
    for (; rings_left[core] > 0; --rings_left[core]) {
      bells[core].set();
      std::ignore = co_await sleep(0s);
    }
  }
  Task<> race_until_cancelled(std::size_t core) {
    Broadcast<int>::Subscription& subscription = subscriptions[core];
    for (;;) {
      const auto first =
          co_await race(as_task(subscription.readable()), as_task(bells[core].wait()));
      injector.checkpoint();
      if (!first) co_return;
      // The bell gives no information about the subscription.
      const auto more = co_await timeout(0s, subscription.receive());
      injector.checkpoint();
      if (more) received[core].push_back(**more);
      if (!more && more.error() != Errc::timed_out) co_return;
    }
  }

  std::array<AutoResetEvent, 3> bells;
  std::array<int, 3> rings_left{50, 50, 50};  // more turns than the scenario takes
};

TEST_F(BroadcastTest, NothingIsLostInARace) {
  EXPECT_GT(sweep<HearingAndRacing>(3), 60U);
}

#ifndef NDEBUG
TEST_F(BroadcastTest, AssertsThatItOutlivesItsSubscriptions) {
  const auto destroy = [] {
    auto broadcast = std::make_unique<Broadcast<int>>();
    const auto subscription = broadcast->subscribe();
    broadcast.reset();
  };
  EXPECT_DEATH(destroy(), "destroyed while there are readers");
}

TEST_F(BroadcastTest, AssertsThatASubscriptionStaysWhereItIsDuringAWait) {
  const auto act_while_waiting = [this](bool moves) {
    Broadcast<int> broadcast;
    auto subscription = std::make_unique<Broadcast<int>::Subscription>(broadcast.subscribe());
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(subscription->readable());
      if (moves) {
        const auto moved = std::move(*subscription);
      }
      subscription.reset();
      co_return;
    };
    const auto root = [&]() -> Task<> { std::ignore = co_await with_scope(body); };
    run_on_cores({root});
  };
  EXPECT_DEATH(act_while_waiting(true), "moved while it waits");
  EXPECT_DEATH(act_while_waiting(false), "destroyed while it waits");
}
#endif

}  // namespace
}  // namespace weir::broadcast_test
