// Tests of mailboxes and broadcasts as cases of select(): a case that loses takes nothing, even if
// another core has posted it already.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/runtime/messaging/broadcast.hpp"
#include "weir/runtime/messaging/mailbox.hpp"
#include "weir/runtime/test/runtime_fixture.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/select.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/channel.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/timeout.hpp"

namespace weir::messages_select_test {
namespace {

using namespace std::chrono_literals;

class SelectMessagesTest : public MultiCoreTest {};

TEST_F(SelectMessagesTest, TakesValuesOfSeveralMailboxesOfOtherCores) {
  Mailbox<int> numbers_box;
  Mailbox<std::string> texts_box({.capacity = 2});
  std::vector<int> received;
  std::string text;
  const auto receiver = [&]() -> Task<> {
    bool numbers_open = true;
    bool texts_open = true;
    while (numbers_open || texts_open) {
      const auto first = co_await select(numbers_box.receive(), texts_box.receive());
      EXPECT_TRUE(first);
      if (first->index() == 0) {
        const Result<int>& number = std::get<0>(*first);
        if (number) {
          received.push_back(*number);
        } else {
          EXPECT_EQ(number.error(), Errc::end_of_stream);
          numbers_open = false;
          break;
        }
      } else if (const Result<std::string>& piece = std::get<1>(*first); piece) {
        text += *piece;
      } else {
        EXPECT_EQ(piece.error(), Errc::end_of_stream);
        texts_open = false;
        numbers_box.close();
      }
    }
  };
  const auto send_numbers = [&]() -> Task<> {
    for (int number = 1; number <= 100; ++number) {
      EXPECT_TRUE(co_await numbers_box.send(number));
      if (number % 7 == 0) co_await yield();
    }
  };
  const auto send_texts = [&]() -> Task<> {
    for (int each = 0; each < 20; ++each) EXPECT_TRUE(co_await texts_box.send("x"));
    std::ignore = co_await sleep(1ms);
    texts_box.close();
  };
  run_on_cores({receiver, send_numbers, send_texts});
  EXPECT_EQ(received, numbers(1, 100));
  EXPECT_EQ(text, std::string(20, 'x'));
}

TEST_F(SelectMessagesTest, TheFirstCaseInTheListWinsIfSeveralAreAvailable) {
  Mailbox<int> box;
  Broadcast<int> news;
  auto subscription = news.subscribe();
  const auto body = [&]() -> Task<> {
    EXPECT_TRUE(box.try_send(1));
    EXPECT_TRUE(news.publish(2));
    EXPECT_EQ((co_await select(box.receive(), subscription.receive()))->index(), 0U);
    EXPECT_TRUE(box.try_send(3));
    const auto second = co_await select(subscription.receive(), box.receive());
    EXPECT_EQ(*std::get<0>(*second).value(), 2);
    EXPECT_EQ(box.try_receive(), 3);
    // The same with a case that only the loop's time decides.
    EXPECT_TRUE(box.try_send(4));
    const auto third = co_await select(sleep(1s), box.receive());
    EXPECT_EQ(std::get<1>(*third).value(), 4);
  };
  run_on_cores({body});
}

// The sender of the mailbox and the event are on the core of the receiver, so that both come in the
// same turn. The mailbox has posted its receiver when the event is set.
TEST_F(SelectMessagesTest, AMailboxThatHasPostedItsReceiverMayLose) {
  for (const bool readable : {false, true}) {
    for (const bool mailbox_first : {false, true}) {
      Mailbox<int> box;
      AutoResetEvent quit;
      std::size_t winner = 9;
      std::optional<int> left;
      const auto receiver = [&]() -> Task<> {
        if (readable) {
          winner = (co_await select(box.readable(), quit.wait()))->index();
        } else {
          winner = (co_await select(box.receive(), quit.wait()))->index();
        }
        left = box.try_receive();
      };
      const auto both = [&](Scope& scope) -> Task<> {
        scope.spawn(receiver());
        co_await yield();
        if (mailbox_first) {
          EXPECT_TRUE(box.try_send(7));
        }
        quit.set();
        if (!mailbox_first) {
          EXPECT_TRUE(box.try_send(7));
        }
      };
      const auto body = [&]() -> Task<> { std::ignore = co_await with_scope(both); };
      run_on_cores({body});
      EXPECT_EQ(winner, 1U);
      EXPECT_EQ(left, 7) << "the mailbox keeps its value";
    }
  }
}

TEST_F(SelectMessagesTest, ABroadcastThatHasPostedItsReaderMayLose) {
  for (const bool readable : {false, true}) {
    for (const bool broadcast_first : {false, true}) {
      Broadcast<int> news;
      auto subscription = news.subscribe();
      AutoResetEvent quit;
      std::size_t winner = 9;
      const auto reader = [&]() -> Task<> {
        if (readable) {
          winner = (co_await select(subscription.readable(), quit.wait()))->index();
        } else {
          winner = (co_await select(subscription.receive(), quit.wait()))->index();
        }
        const auto value = co_await subscription.receive();
        EXPECT_EQ(*value.value(), 7);
      };
      const auto both = [&](Scope& scope) -> Task<> {
        scope.spawn(reader());
        co_await yield();
        if (broadcast_first) {
          EXPECT_TRUE(news.publish(7));
        }
        quit.set();
        if (!broadcast_first) {
          EXPECT_TRUE(news.publish(7));
        }
      };
      const auto body = [&]() -> Task<> { std::ignore = co_await with_scope(both); };
      run_on_cores({body});
      EXPECT_EQ(winner, 1U);
    }
  }
}

TEST_F(SelectMessagesTest, ACaseThatFailsToWaitMayFollowOneThatIsPosted) {
  Mailbox<int> one;
  Mailbox<int> other;
  std::size_t winner = 9;
  const auto receiver = [&]() -> Task<> {
    winner = (co_await select(one.receive(), other.receive()))->index();
  };
  const auto both = [&](Scope& scope) -> Task<> {
    scope.spawn(receiver());
    co_await yield();
    EXPECT_TRUE(one.try_send(1));
    EXPECT_TRUE(other.try_send(2));
  };
  const auto body = [&]() -> Task<> { std::ignore = co_await with_scope(both); };
  run_on_cores({body});
  EXPECT_EQ(winner, 0U);
  EXPECT_EQ(one.try_receive(), std::nullopt);
  EXPECT_EQ(other.try_receive(), 2);
}

TEST_F(SelectMessagesTest, TheEndsOfMailboxAndBroadcastAreAvailable) {
  Mailbox<int> box;
  Broadcast<int> news;
  auto subscription = news.subscribe();
  std::vector<std::size_t> winners;
  const auto receiver = [&]() -> Task<> {
    AutoResetEvent never_set;
    const auto first = co_await select(never_set.wait(), box.receive());
    winners.push_back(first->index());
    EXPECT_EQ(std::get<1>(*first).error(), Errc::end_of_stream);
    const auto second = co_await select(never_set.wait(), subscription.receive());
    winners.push_back(second->index());
    EXPECT_EQ(std::get<1>(*second).error(), Errc::end_of_stream);
    const auto third = co_await select(box.readable(), subscription.readable());
    winners.push_back(third->index());
    EXPECT_EQ(std::get<0>(*third).error(), Errc::end_of_stream);
  };
  const auto closer = [&]() -> Task<> {
    std::ignore = co_await sleep(1ms);
    box.close();
    std::ignore = co_await sleep(1ms);
    news.close();
  };
  run_on_cores({receiver, closer});
  EXPECT_EQ(winners, (std::vector<std::size_t>{1, 1, 0}));
}

TEST_F(SelectMessagesTest, CancelledSelectTakesNothing) {
  Mailbox<int> box;
  Broadcast<int> news;
  auto subscription = news.subscribe();
  const auto receiver = [&]() -> Task<> {
    // The second time, both have values when the time is over.
    for (int round = 0; round < 2; ++round) {
      auto none = select(box.receive(), subscription.receive());
      const auto waited = co_await timeout(1ms, as_task(std::move(none)));
      EXPECT_EQ(round == 0, !waited);
      if (!waited) {
        EXPECT_EQ(waited.error(), Errc::timed_out);
      }
      if (round == 0) {
        EXPECT_TRUE(box.try_send(1));
        EXPECT_TRUE(news.publish(2));
      }
    }
    EXPECT_EQ(box.try_receive(), std::nullopt) << "the second select took it";
    const auto value = co_await subscription.receive();
    EXPECT_EQ(*value.value(), 2);
  };
  run_on_cores({receiver});
}

// A cancelled task waits for its posted case, whose node is in its frame.
TEST_F(SelectMessagesTest, CancelAfterAPostKeepsTheValue) {
  Mailbox<int> box;
  Broadcast<int> news;
  auto subscription = news.subscribe();
  std::error_code error;
  const auto receiver = [&]() -> Task<> {
    AutoResetEvent never_set;
    const auto none = co_await select(never_set.wait(), box.receive(), subscription.receive());
    if (!none) error = none.error();
  };
  const auto both = [&](Scope& scope) -> Task<> {
    scope.spawn(receiver());
    co_await yield();
    EXPECT_TRUE(box.try_send(1));
    EXPECT_TRUE(news.publish(2));
    scope.cancel();
  };
  const auto body = [&]() -> Task<> { std::ignore = co_await with_scope(both); };
  run_on_cores({body});
  EXPECT_EQ(error, Errc::cancelled);
  EXPECT_EQ(box.try_receive(), 1);
}

TEST_F(SelectMessagesTest, FullMailboxesLetOtherTasksRun) {
  constexpr std::size_t count = 5000;
  Mailbox<int> box({.capacity = count});
  for (int number = 0; number < static_cast<int>(count); ++number) {
    ASSERT_TRUE(box.try_send(int{number}));
  }
  std::vector<int> received;
  AutoResetEvent never_set;
  const auto receiving = [&]() -> Task<> {
    while (received.size() < count) {
      const auto first = co_await select(never_set.wait(), box.receive());
      received.push_back(std::get<1>(*first).value());
    }
  };
  run_beside_others(receiving(), received, count);
}

TEST_F(SelectMessagesTest, FullBroadcastsLetOtherTasksRun) {
  constexpr std::size_t count = 5000;
  Broadcast<int> news({.capacity = count});
  auto subscription = news.subscribe();
  for (int number = 0; number < static_cast<int>(count); ++number) {
    ASSERT_TRUE(news.publish(number));
  }
  std::vector<int> received;
  AutoResetEvent never_set;
  const auto receiving = [&]() -> Task<> {
    while (received.size() < count) {
      const auto first = co_await select(never_set.wait(), subscription.receive());
      received.push_back(*std::get<1>(*first).value());
    }
  };
  run_beside_others(receiving(), received, count);
}

TEST_F(SelectMessagesTest, ASlowReaderLearnsThatItMissedValues) {
  Broadcast<int> news({.capacity = 2, .slow_reader_policy = SlowReaderPolicy::lag});
  auto subscription = news.subscribe();
  AutoResetEvent never_set;
  const auto reader = [&]() -> Task<> {
    for (int number = 0; number < 5; ++number) EXPECT_TRUE(news.publish(number));
    const auto first = co_await select(never_set.wait(), subscription.receive());
    EXPECT_EQ(std::get<1>(*first).error(), Errc::limit_reached);
    EXPECT_EQ(subscription.missed(), 3U);
    EXPECT_EQ(detail::MissedValues::of(loop(0)).count.value(), 3U);
    const auto second = co_await select(never_set.wait(), subscription.receive());
    EXPECT_EQ(*std::get<1>(*second).value(), 3);
  };
  run_on_cores({reader});
}

/// Two senders on other cores, and a receiver that selects between a mailbox and a broadcast. Each
/// task can be cancelled at every point. No value is lost or doubled.
struct Selecting {
  explicit Selecting(CancelInjector& of) : injector(of) {}

  Task<> on(unsigned core) {
    if (core == 0) return injector.as_target(0, receive());
    return injector.as_target(core, send(static_cast<int>(core) * 100));
  }
  Task<> send(int first) {
    for (int number = first; number < first + 3; ++number) {
      if (co_await box.send(number)) ++sent;
      EXPECT_TRUE(news.publish(number));
      ++published;
      injector.checkpoint();
      co_await yield();
    }
    if (--senders == 0) box.close();
  }
  Task<> receive() {
    for (;;) {
      const auto first = co_await select(box.receive(), subscription.receive());
      injector.checkpoint();
      if (!first) {
        EXPECT_EQ(first.error(), Errc::cancelled);
        co_return;
      }
      if (first->index() == 1) {
        EXPECT_TRUE(std::get<1>(*first));
        ++heard;
      } else if (std::get<0>(*first)) {
        ++received;
      } else {
        co_return;
      }
    }
  }
  bool outside() { return false; }
  void check() {
    while (box.try_receive()) ++received;
    EXPECT_EQ(received, sent);
    EXPECT_LE(heard, published);
  }

  CancelInjector& injector;
  Mailbox<int> box{MailboxOptions{.capacity = 16}};
  Broadcast<int> news;
  Broadcast<int>::Subscription subscription = news.subscribe();
  int senders = 2;
  int sent = 0;
  int published = 0;
  int received = 0;
  int heard = 0;
};

TEST_F(SelectMessagesTest, CancellingAtAnyPointLosesNothing) {
  EXPECT_GT(sweep<Selecting>(3), 30U);
}

}  // namespace
}  // namespace weir::messages_select_test
