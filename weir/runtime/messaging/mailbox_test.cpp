#include "weir/runtime/messaging/mailbox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "weir/runtime/test/runtime_fixture.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/timeout.hpp"

namespace weir::mailbox_test {
namespace {

Task<> receive_all(Mailbox<int>& mailbox, std::vector<int>& to) {
  for (;;) {
    const auto number = co_await mailbox.receive();
    if (!number) {
      EXPECT_EQ(number.error(), Errc::end_of_stream);
      co_return;
    }
    to.push_back(*number);
  }
}

class MailboxTest : public MultiCoreTest {};

TEST_F(MailboxTest, ValuesArriveInOrderAtAnyCapacity) {
  for (const std::size_t capacity : {1U, 2U, 3U, 7U, 8U, 100U}) {
    SCOPED_TRACE(capacity);
    Mailbox<int> mailbox({.capacity = capacity});
    EXPECT_EQ(mailbox.capacity(), capacity);
    std::vector<int> received;
    const auto receiver = [&] { return receive_all(mailbox, received); };
    const auto sender = [&]() -> Task<> {
      for (int number = 1; number <= 50; ++number) EXPECT_TRUE(co_await mailbox.send(number));
      mailbox.close();
    };
    run_on_cores({receiver, sender});
    EXPECT_EQ(received, numbers(1, 50));
  }
}

TEST_F(MailboxTest, TheReceiverResumesOnItsOwnCore) {
  Mailbox<unsigned> mailbox;
  const auto receiver = [&]() -> Task<> {
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(co_await mailbox.receive());
      EXPECT_EQ(Loop::current(), &loop(0));
    }
  };
  const auto sender = [&]() -> Task<> {
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(co_await mailbox.send(Loop::current()->core()));
      co_await yield();
    }
  };
  run_on_cores({receiver, sender, sender});
}

TEST_F(MailboxTest, HoldsItsCapacity) {
  for (const std::size_t capacity : {1U, 2U, 3U, 5U, 8U}) {
    SCOPED_TRACE(capacity);
    Mailbox<int> mailbox({.capacity = capacity});
    for (int lap = 0; lap < 10; ++lap) {
      for (std::size_t i = 0; i < capacity; ++i) {
        EXPECT_TRUE(mailbox.try_send(static_cast<int>(i)));
      }
      EXPECT_EQ(mailbox.try_send(-1).error(), Errc::limit_reached);
      for (std::size_t i = 0; i < capacity; ++i) {
        EXPECT_EQ(mailbox.try_receive(), static_cast<int>(i));
        // Unread values of a lap shift the next lap.
        if (i + 1 == capacity / 2) {
          EXPECT_TRUE(mailbox.try_send(static_cast<int>(capacity + i)));
        }
      }
      if (capacity / 2 > 0) {
        EXPECT_EQ(mailbox.try_receive(), static_cast<int>(capacity + capacity / 2 - 1));
      }
      EXPECT_FALSE(mailbox.try_receive());
    }
  }
}

TEST_F(MailboxTest, ZeroCapacityMeansOne) {
  Mailbox<int> mailbox({.capacity = 0});
  EXPECT_EQ(mailbox.capacity(), 1U);
  EXPECT_TRUE(mailbox.try_send(1));
  EXPECT_FALSE(mailbox.try_send(2));
}

TEST_F(MailboxTest, AValueIsMovedFromOnlyWhenItIsSent) {
  Mailbox<std::unique_ptr<int>> mailbox({.capacity = 1, .overflow_policy = OverflowPolicy::reject});
  const auto body = [&]() -> Task<> {
    auto first = std::make_unique<int>(1);
    auto second = std::make_unique<int>(2);
    EXPECT_TRUE(mailbox.try_send(std::move(first)));
    EXPECT_FALSE(first);
    EXPECT_EQ(mailbox.try_send(std::move(second)).error(), Errc::limit_reached);
    EXPECT_TRUE(second);
    EXPECT_EQ((co_await mailbox.send_from(second)).error(), Errc::limit_reached);
    EXPECT_TRUE(second);
    EXPECT_EQ(**mailbox.try_receive(), 1);
    EXPECT_TRUE(co_await mailbox.send_from(second));
    EXPECT_FALSE(second);
    EXPECT_EQ(**co_await mailbox.receive(), 2);
    mailbox.close();
    auto third = std::make_unique<int>(3);
    EXPECT_EQ((co_await mailbox.send_from(third)).error(), Errc::closed);
    EXPECT_TRUE(third);
  };
  run_on_cores({body});
}

TEST_F(MailboxTest, AFullRejectingMailboxRejectsWithoutWaiting) {
  Mailbox<int> mailbox({.capacity = 2, .overflow_policy = OverflowPolicy::reject});
  const auto sender = [&]() -> Task<> {
    EXPECT_TRUE(co_await mailbox.send(1));
    EXPECT_TRUE(co_await mailbox.send(2));
    const auto refused = co_await mailbox.send(3);
    EXPECT_EQ(refused.error(), Errc::limit_reached);
    EXPECT_EQ(mailbox.try_receive(), 1);
    EXPECT_TRUE(co_await mailbox.send(4));
  };
  run_on_cores({sender});
}

TEST_F(MailboxTest, NoSenderOvertakesAWaitingOne) {
  Mailbox<int> mailbox({.capacity = 1});
  EXPECT_TRUE(mailbox.try_send(0));
  std::vector<int> sent;
  const auto sender = [&](int value) -> Task<> {
    EXPECT_TRUE(co_await mailbox.send(value));
    sent.push_back(value);
  };
  const auto first = [&] { return sender(1); };
  const auto second = [&]() -> Task<> {
    co_await yield();
    co_await sender(2);
  };
  const auto receiver = [&]() -> Task<> {
    EXPECT_TRUE(co_await sleep(1ms));
    EXPECT_EQ(mailbox.try_send(9).error(), Errc::limit_reached);
    EXPECT_EQ(mailbox.try_receive(), 0);
    EXPECT_TRUE(sent.empty()) << "the sender runs on its own core";
    EXPECT_EQ(mailbox.try_send(9).error(), Errc::limit_reached) << "the first sender gets the room";
    for (const int expected : {1, 2}) {
      EXPECT_TRUE(co_await sleep(1ms));
      EXPECT_EQ(sent, numbers(1, expected));
      const auto value = co_await mailbox.receive();
      EXPECT_EQ(value, expected);
    }
    EXPECT_TRUE(mailbox.try_send(9)) << "no sender waits any more";
  };
  run_on_cores({first, second, receiver});
}

// --- the end ------------------------------------------------------------------------------------

TEST_F(MailboxTest, QueuedValuesCanBeReceivedAfterClose) {
  Mailbox<int> mailbox;
  EXPECT_TRUE(mailbox.try_send(1));
  EXPECT_TRUE(mailbox.try_send(2));
  mailbox.close();
  mailbox.close();
  EXPECT_TRUE(mailbox.closed());
  EXPECT_EQ(mailbox.try_send(3).error(), Errc::closed);
  std::vector<int> received;
  run_on_cores({[&] { return receive_all(mailbox, received); }});
  EXPECT_EQ(received, numbers(1, 2));
  EXPECT_FALSE(mailbox.try_receive());
}

TEST_F(MailboxTest, ClosingEndsEveryWait) {
  Mailbox<int> full({.capacity = 1});
  Mailbox<int> empty;
  EXPECT_TRUE(full.try_send(1));
  int ended = 0;
  const auto sender = [&]() -> Task<> {
    int value = 2;
    const auto sent = co_await full.send_from(value);
    EXPECT_EQ(sent.error(), Errc::closed);
    EXPECT_EQ(value, 2);
    ++ended;
  };
  const auto receiver = [&]() -> Task<> {
    const auto value = co_await empty.receive();
    EXPECT_EQ(value.error(), Errc::end_of_stream);
    ++ended;
  };
  platform_.at(platform_.now() + 1s, [&] {
    EXPECT_EQ(ended, 0);
    full.close();
    empty.close();
  });
  run_on_cores({sender, sender, receiver});
  EXPECT_EQ(ended, 3);
}

TEST_F(MailboxTest, UnreceivedValuesAreDestroyedWithTheMailbox) {
  const auto value = std::make_shared<int>(1);
  {
    Mailbox<std::shared_ptr<int>> mailbox({.capacity = 5});
    for (int i = 0; i < 7; ++i) static_cast<void>(mailbox.try_send(std::shared_ptr<int>(value)));
    EXPECT_EQ(value.use_count(), 6);
    EXPECT_TRUE(mailbox.try_receive());
    EXPECT_TRUE(mailbox.try_send(std::shared_ptr<int>(value)));
    EXPECT_EQ(value.use_count(), 6);
  }
  EXPECT_EQ(value.use_count(), 1);
}

// --- cancelling, and other cores -----------------------------------------------------------------

TEST_F(MailboxTest, CancellingTakesNothing) {
  Mailbox<int> mailbox({.capacity = 1});
  const auto receiver = [&]() -> Task<> {
    EXPECT_EQ((co_await timeout(1s, mailbox.receive())).error(), Errc::timed_out);
    EXPECT_TRUE(co_await mailbox.send(1));
    int value = 2;
    EXPECT_EQ((co_await timeout(1s, mailbox.send_from(value))).error(), Errc::timed_out);
    EXPECT_EQ(value, 2);
    EXPECT_EQ((co_await timeout(1s, mailbox.receive())).value(), 1);
    EXPECT_EQ((co_await timeout(1s, mailbox.receive())).error(), Errc::timed_out);
  };
  run_on_cores({receiver});
}

TEST_F(MailboxTest, ReadableTakesNothing) {
  Mailbox<int> mailbox;
  const auto receiver = [&]() -> Task<> {
    EXPECT_EQ((co_await timeout(1s, mailbox.readable())).error(), Errc::timed_out);
    EXPECT_TRUE(co_await mailbox.send(1));
    EXPECT_TRUE(co_await mailbox.readable());
    EXPECT_TRUE(co_await mailbox.readable());
    EXPECT_EQ((co_await mailbox.receive()).value(), 1);
    EXPECT_TRUE(co_await mailbox.readable()) << "of a value from outside";
    EXPECT_EQ(mailbox.try_receive(), 2);
    EXPECT_TRUE(co_await mailbox.send(3));
    mailbox.close();
    EXPECT_TRUE(co_await mailbox.readable());
    EXPECT_EQ(mailbox.try_receive(), 3);
    EXPECT_EQ((co_await mailbox.readable()).error(), Errc::end_of_stream);
  };
  platform_.at(platform_.now() + 2s, [&] { EXPECT_TRUE(mailbox.try_send(2)); });
  run_on_cores({receiver});
}

TEST_F(MailboxTest, ACancelledTaskSucceedsOnlyWithoutWaiting) {
  Mailbox<int> mailbox({.capacity = 1});
  const auto body = [&]() -> Task<> {
    const auto cancelled = [&](Scope& scope) -> Task<> {
      scope.cancel();
      EXPECT_EQ((co_await mailbox.receive()).error(), Errc::cancelled);
      EXPECT_TRUE(co_await mailbox.send(1));
      EXPECT_EQ((co_await mailbox.send(2)).error(), Errc::cancelled);
      EXPECT_EQ((co_await mailbox.receive()).value(), 1);
    };
    std::ignore = co_await with_scope(cancelled);
  };
  run_on_cores({body});
}

TEST_F(MailboxTest, ACancelledTaskResumesFromTheReadyQueue) {
  Mailbox<int> full({.capacity = 1}), empty;
  EXPECT_TRUE(full.try_send(1));
  CancelSource source;
  int ended = 0;
  const auto send = [&]() -> Task<> {
    EXPECT_EQ((co_await full.send(2)).error(), Errc::cancelled);
    ++ended;
  };
  const auto receive = [&]() -> Task<> {
    EXPECT_EQ((co_await empty.receive()).error(), Errc::cancelled);
    ++ended;
  };
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(in_context({&scope.loop(), &source}, send()));
    scope.spawn(in_context({&scope.loop(), &source}, receive()));
    source.cancel();
    EXPECT_EQ(ended, 0);
    co_await yield();
    EXPECT_EQ(ended, 2);
  };
  const auto root = [&]() -> Task<> { EXPECT_TRUE(co_await with_scope(body)); };
  run_on_cores({root});
}

TEST_F(MailboxTest, AValueAndTheEndBeatALaterCancellation) {
  Mailbox<int> mailbox;
  std::array<CancelSource, 3> sources;
  int received = 0;
  const auto receive = [&](std::error_code expected) -> Task<> {
    const auto value = co_await mailbox.receive();
    EXPECT_EQ(value ? std::error_code() : value.error(), expected);
    if (value) received = *value;
  };
  const auto wait_until_readable = [&]() -> Task<> {
    EXPECT_TRUE(co_await mailbox.readable());
    received = mailbox.try_receive().value_or(-1);
  };
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(in_context({&scope.loop(), &sources[0]}, receive({})));
    EXPECT_TRUE(mailbox.try_send(1));
    sources[0].cancel();
    EXPECT_TRUE(co_await sleep(1s));
    EXPECT_EQ(received, 1);
    scope.spawn(in_context({&scope.loop(), &sources[1]}, wait_until_readable()));
    EXPECT_TRUE(mailbox.try_send(2));
    sources[1].cancel();
    EXPECT_TRUE(co_await sleep(1s));
    EXPECT_EQ(received, 2);
    scope.spawn(in_context({&scope.loop(), &sources[2]}, receive(Errc::end_of_stream)));
    mailbox.close();
    sources[2].cancel();
  };
  const auto root = [&]() -> Task<> { EXPECT_TRUE(co_await with_scope(body)); };
  run_on_cores({root});
}

TEST_F(MailboxTest, ABatchWakesTheReceiverOnce) {
  Mailbox<int> mailbox;
  std::size_t received = 0;
  const auto receiver = [&]() -> Task<> {
    while (co_await mailbox.receive()) ++received;
  };
  const std::uint64_t before = loop(0).counters().received.value();
  platform_.at(platform_.now() + 1s, [&] {
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(mailbox.try_send(int(i)));
  });
  platform_.at(platform_.now() + 2s, [&] {
    EXPECT_EQ(received, 100U);
    mailbox.close();
  });
  run_on_cores({receiver});
  EXPECT_EQ(loop(0).counters().received.value() - before, 2U) << "the batch, and the end";
}

TEST_F(MailboxTest, AFloodDoesNotStarveTheReceiversCore) {
  constexpr int count = 10'000;
  Mailbox<int> mailbox({.capacity = count});
  for (int i = 0; i < count; ++i) EXPECT_TRUE(mailbox.try_send(int(i)));
  mailbox.close();
  std::vector<int> received;
  run_beside_others(receive_all(mailbox, received), received, count);
  EXPECT_EQ(received, numbers(0, count - 1));
}

TEST_F(MailboxTest, TheLoopTakesATurnAfterEach256ValuesWithoutAWait) {
  Mailbox<int> mailbox;
  for (int i = 0; i < 800; ++i) EXPECT_TRUE(mailbox.try_send(int(i)));
  const auto receiver = [&]() -> Task<> {
    const std::uint64_t first = loop(0).counters().turns.value();
    for (std::uint64_t number = 1; number <= 800; ++number) {
      EXPECT_TRUE(co_await mailbox.receive());
      EXPECT_EQ(loop(0).counters().turns.value() - first, number / 256) << number;
    }
  };
  run_on_cores({receiver});
}

TEST_F(MailboxTest, AWaitBeginsANewRowOfValues) {
  Mailbox<int> mailbox;
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(mailbox.try_send(int(i)));
  platform_.at(platform_.now() + 1s, [&] {
    for (int i = 0; i < 400; ++i) EXPECT_TRUE(mailbox.try_send(int(i)));
  });
  const auto receiver = [&]() -> Task<> {
    for (int i = 0; i < 201; ++i) EXPECT_TRUE(co_await mailbox.receive());
    const std::uint64_t first = loop(0).counters().turns.value();
    for (std::uint64_t number = 1; number < 400; ++number) {
      EXPECT_TRUE(co_await mailbox.receive());
      EXPECT_EQ(loop(0).counters().turns.value() - first, number / 256) << number;
    }
  };
  run_on_cores({receiver});
}

TEST_F(MailboxTest, ACancelledSenderLeavesItsPlaceInTheLine) {
  Mailbox<int> mailbox({.capacity = 1});
  EXPECT_TRUE(mailbox.try_send(1));
  std::vector<int> sent;
  const auto patient = [&]() -> Task<> {
    co_await yield();
    EXPECT_TRUE(co_await mailbox.send(3));
    sent.push_back(3);
  };
  const auto body = [&]() -> Task<> {
    EXPECT_EQ((co_await timeout(1s, mailbox.send(2))).error(), Errc::timed_out);
    EXPECT_TRUE(sent.empty());
    EXPECT_EQ(mailbox.try_receive(), 1);
    EXPECT_TRUE(co_await sleep(1s));
    EXPECT_EQ(sent, numbers(3, 3)) << "the next sender gets the room";
    EXPECT_EQ(mailbox.try_receive(), 3);
    EXPECT_TRUE(mailbox.try_send(4)) << "no sender waits any more";
  };
  run_on_cores({body, patient});
  EXPECT_EQ(mailbox.try_receive(), 4);
  EXPECT_FALSE(mailbox.try_receive());
}

TEST_F(MailboxTest, ValuesOfWaitingSendersReplaceReceivedOnes) {
  Mailbox<std::unique_ptr<int>> mailbox({.capacity = 1});
  const auto sender = [&]() -> Task<> {
    for (int i = 1; i <= 5; ++i) EXPECT_TRUE(co_await mailbox.send(std::make_unique<int>(i)));
  };
  const auto receiver = [&]() -> Task<> {
    EXPECT_TRUE(co_await sleep(1s));
    for (int i = 1; i <= 5; ++i) {
      const auto value = co_await mailbox.receive();
      EXPECT_EQ(**value, i);
    }
  };
  run_on_cores({sender, receiver});
}

/// Scenario with two senders on two cores, one outside, and little room: each sent value is
/// received once.
struct Exchange {
  explicit Exchange(CancelInjector& of) : injector(of) {}

  Task<> on(unsigned core) {
    if (core == 0) return receive();
    return injector.as_target(core, send(static_cast<int>(core) * 100));
  }
  Task<> send(int first) {
    for (int i = 0; i < 4; ++i) {
      int value = first + i;
      const auto done = co_await mailbox.send_from(value);
      if (done) sent.push_back(value);
      EXPECT_TRUE(done || done.error() == Errc::cancelled);
      injector.checkpoint();
    }
    if (--senders == 0) mailbox.close();
  }
  /// Cancels target 0; another receiver then continues.
  Task<> receive() {
    co_await injector.as_target(0, receive_until_cancelled());
    co_await receive_until_cancelled();
  }
  Task<> receive_until_cancelled() {
    for (;;) {
      const auto value = co_await mailbox.receive();
      injector.checkpoint();
      if (!value) {
        EXPECT_TRUE(value.error() == Errc::cancelled || value.error() == Errc::end_of_stream);
        co_return;
      }
      received.push_back(*value);
    }
  }
  bool outside() {
    if (tries == 0) return false;
    --tries;
    if (mailbox.try_send(300 + tries)) sent.push_back(300 + tries);
    if (tries == 0 && --senders == 0) mailbox.close();
    return true;
  }
  void check() {
    std::vector<int> of_first;
    std::ranges::copy_if(received, std::back_inserter(of_first), [](int v) { return v < 200; });
    EXPECT_TRUE(std::ranges::is_sorted(of_first)) << "in the order of sending";
    std::ranges::sort(sent);
    std::ranges::sort(received);
    EXPECT_EQ(received, sent);
  }

  CancelInjector& injector;
  Mailbox<int> mailbox{{.capacity = 2}};
  int senders = 3;
  int tries = 5;
  std::vector<int> sent;
  std::vector<int> received;
};

TEST_F(MailboxTest, NoValueIsLostOrDoubledWhenCancelledAtEveryStep) {
  EXPECT_GT(sweep<Exchange>(3), 60U);
}

/// The same scenario with a receiver that also waits for a bell, which rings in each turn. Both
/// events often come in the same turn.
struct Racing : Exchange {
  using Exchange::Exchange;

  Task<> on(unsigned core) {
    if (core != 0) return Exchange::on(core);
    return receive_by_the_bell();
  }
  Task<> receive_by_the_bell() {
    const auto body = [this](Scope& scope) -> Task<> {
      scope.spawn(ring());
      co_await injector.as_target(0, race_until_cancelled());
      co_await race_until_cancelled();
      rings_left = 0;
    };
    EXPECT_TRUE(co_await with_scope(body));
  }
  Task<> ring() {
    for (; rings_left > 0; --rings_left) {
      bell.set();
      std::ignore = co_await sleep(0s);
    }
  }
  Task<> race_until_cancelled() {
    for (bool over = false; !over;) {
      const auto first = co_await race(as_task(mailbox.readable()), as_task(bell.wait()));
      injector.checkpoint();
      while (const auto value = mailbox.try_receive()) received.push_back(*value);
      over = !first;
      EXPECT_TRUE(first || first.error() == Errc::cancelled ||
                  first.error() == Errc::end_of_stream);
    }
  }

  AutoResetEvent bell;
  int rings_left = 30;  // more turns than the scenario takes
};

TEST_F(MailboxTest, NothingIsLostInARace) {
  EXPECT_GT(sweep<Racing>(3), 60U);
}

#ifndef NDEBUG
TEST_F(MailboxTest, AssertsThatOneTaskWaitsAtATime) {
  const auto wait_twice = [this] {
    Mailbox<int> mailbox;
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(mailbox.readable());
      scope.spawn(mailbox.readable());
      co_return;
    };
    const auto root = [&]() -> Task<> { std::ignore = co_await with_scope(body); };
    run_on_cores({root});
  };
  EXPECT_DEATH(wait_twice(), "one receiver at a time");
}

TEST_F(MailboxTest, AssertsThatNoTaskWaitsWhenDestroyed) {
  const auto destroy = [this](bool sends) {
    auto mailbox = std::make_unique<Mailbox<int>>(MailboxOptions{.capacity = 1});
    EXPECT_TRUE(!sends || mailbox->try_send(1));
    const auto body = [&](Scope& scope) -> Task<> {
      if (sends) scope.spawn(mailbox->send(2));
      if (!sends) scope.spawn(mailbox->readable());
      mailbox.reset();
      co_return;
    };
    const auto root = [&]() -> Task<> { std::ignore = co_await with_scope(body); };
    run_on_cores({root});
  };
  EXPECT_DEATH(destroy(false), "destroyed while waited on");
  EXPECT_DEATH(destroy(true), "destroyed while waited on");
}
#endif

}  // namespace
}  // namespace weir::mailbox_test
