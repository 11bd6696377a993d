#include "weir/task/select.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "weir/task/sync/channel.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/mutex.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/semaphore.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir {
namespace {

using SelectTest = StrikeTest;

TEST_F(SelectTest, TakesWhatIsThereAndNothingElse) {
  CoreChannel<int> numbers(2);
  CoreChannel<std::string> words(2);
  EXPECT_TRUE(numbers.try_send(1));
  EXPECT_TRUE(words.try_send("a"));
  const auto body = [&]() -> Task<> {
    const auto first = co_await select(numbers.receive(), words.receive());
    EXPECT_EQ(first->index(), 0U) << "the one named first";
    EXPECT_EQ(std::get<0>(*first), 1);
    const auto second = co_await select(numbers.receive(), words.receive());
    EXPECT_EQ(second->index(), 1U);
    EXPECT_EQ(std::get<1>(*second), "a");
  };
  run(body());
  EXPECT_EQ(elapsed(), 0s);
}

TEST_F(SelectTest, WaitsForTheFirstAndLeavesTheOthersAlone) {
  CoreChannel<int> left(1), right(0);
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn([](CoreChannel<int>& one, CoreChannel<int>& other) -> Task<> {
      EXPECT_TRUE(co_await sleep(1s));
      EXPECT_TRUE(other.try_send(2)) << "somebody waits";
      EXPECT_EQ(other.try_send(3).error(), Errc::limit_reached) << "and only for one";
      EXPECT_TRUE(one.try_send(1));
      EXPECT_EQ(one.size(), 1U) << "nobody waits here any more";
    }(left, right));
    const auto first = co_await select(left.receive(), right.receive(), sleep(5s));
    EXPECT_EQ(first->index(), 1U);
    EXPECT_EQ(std::get<1>(*first), 2);
    EXPECT_EQ(elapsed(), 1s);
    EXPECT_EQ(left.try_receive(), 1);
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(elapsed(), 1s) << "the timer went with it";
}

TEST_F(SelectTest, TimersAreCases) {
  CoreChannel<int> silent(1);
  const auto body = [&]() -> Task<> {
    const auto first = co_await select(silent.receive(), sleep(2s), sleep(1s));
    EXPECT_EQ(first->index(), 2U);
    EXPECT_EQ(elapsed(), 1s);
    const Instant moment = host_.now() + 3s;
    const auto second = co_await select(sleep(4s), sleep_until(moment), silent.receive());
    EXPECT_EQ(second->index(), 1U);
    EXPECT_TRUE(std::get<1>(*second));
    EXPECT_EQ(host_.now(), moment);
    const auto polled = co_await select(silent.receive(), sleep(0s));
    EXPECT_EQ(polled->index(), 1U);
    EXPECT_EQ(host_.now(), moment);
  };
  run(body());
}

TEST_F(SelectTest, SendingIsACaseToo) {
  CoreChannel<std::unique_ptr<int>> full(1), quit(1);
  EXPECT_TRUE(full.try_send(std::make_unique<int>(1)));
  auto mine = std::make_unique<int>(2);
  const auto body = [&]() -> Task<> {
    const auto late = co_await select(full.send_from(mine), sleep(1s));
    EXPECT_EQ(late->index(), 1U);
    EXPECT_NE(mine, nullptr) << "what was not sent stays";
    EXPECT_EQ(full.size(), 1U);
    EXPECT_EQ(**full.try_receive(), 1);
    const auto sent = co_await select(full.send_from(mine), quit.receive());
    EXPECT_EQ(sent->index(), 0U);
    EXPECT_EQ(mine, nullptr);
    const auto owned = co_await select(quit.send(std::make_unique<int>(3)), sleep(1s));
    EXPECT_EQ(owned->index(), 0U);
    EXPECT_EQ(**quit.try_receive(), 3);
  };
  run(body());
}

TEST_F(SelectTest, AClosedChannelIsHad) {
  CoreChannel<int> open(1), closed(1);
  closed.close();
  const auto body = [&](Scope& scope) -> Task<> {
    const auto at_once = co_await select(open.receive(), closed.receive());
    EXPECT_EQ(at_once->index(), 1U);
    EXPECT_EQ(std::get<1>(*at_once).error(), Errc::end_of_stream);
    scope.spawn([](CoreChannel<int>& channel) -> Task<> {
      EXPECT_TRUE(co_await sleep(1s));
      channel.close();
    }(open));
    const auto later = co_await select(sleep(2s), open.receive());
    EXPECT_EQ(std::get<1>(*later).error(), Errc::end_of_stream);
  };
  EXPECT_TRUE(run(with_scope(body)));
}

TEST_F(SelectTest, OfLocksEventsAndUnits) {
  CoreMutex mutex;
  CoreSemaphore semaphore(1);
  CoreManualResetEvent event;
  const auto body = [&]() -> Task<> {
    auto locked = co_await select(event.wait(), mutex.lock(), semaphore.acquire());
    EXPECT_EQ(locked->index(), 1U);
    const auto taken = co_await select(event.wait(), mutex.lock(), semaphore.acquire());
    EXPECT_EQ(taken->index(), 2U);
    const auto none = co_await timeout(1s, select(event.wait(), mutex.lock(), semaphore.acquire()));
    EXPECT_EQ(none.error(), Errc::timed_out);
    EXPECT_TRUE(std::get<1>(*locked)->holds());
  };
  run(body());
  EXPECT_FALSE(mutex.locked());
  EXPECT_EQ(semaphore.free(), 1U);
}

// Whoever leaves a queue lets those behind go on: here one who leaves together with itself.
TEST_F(SelectTest, TwoCasesOfOneQueue) {
  CoreSemaphore semaphore(1);
  const auto body = [&]() -> Task<> {
    auto own = semaphore.try_acquire();
    const auto none = co_await timeout(1s, select(semaphore.acquire(5), semaphore.acquire(1)));
    EXPECT_EQ(none.error(), Errc::timed_out);
    own.reset();
    EXPECT_EQ(semaphore.free(), 1U);
    bool cancelled = false;
    const auto waiting = [&]() -> Task<> {
      const auto either = co_await select(semaphore.acquire(5), semaphore.acquire(1));
      cancelled = !either && either.error() == Errc::cancelled;
    };
    own = semaphore.try_acquire();
    const auto release_and_cancel = [&](Scope& scope) -> Task<> {
      scope.spawn(waiting());
      own.reset();  // one is free, but the first in the queue wants five
      scope.cancel();
      co_return;
    };
    EXPECT_TRUE(co_await with_scope(release_and_cancel));
    EXPECT_TRUE(cancelled);
  };
  run(body());
  EXPECT_EQ(semaphore.free(), 1U);
}

TEST_F(SelectTest, UnderACancelledSourceOnlyWhatNeedsNoWaiting) {
  CoreChannel<int> channel(1);
  EXPECT_TRUE(channel.try_send(1));
  CancelSource cancel;
  cancel.cancel();
  EXPECT_EQ(run(as_task(select(sleep(1s), channel.receive())), &cancel)->index(), 1U);
  EXPECT_EQ(run(as_task(select(sleep(1s), channel.receive())), &cancel).error(), Errc::cancelled);
  EXPECT_EQ(elapsed(), 0s);
}

// --- what the time decides ----------------------------------------------------------------------

TEST_F(SelectTest, ADeadlineThatHasPassedIsHadInItsPlace) {
  CoreChannel<int> channel(3), silent(1);
  const auto body = [&]() -> Task<> {
    const Instant past = host_.now();
    EXPECT_TRUE(co_await sleep(1s));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(channel.try_send(int(i)));
    const auto before = co_await select(sleep_until(past), channel.receive());
    EXPECT_EQ(before->index(), 0U);
    EXPECT_TRUE(std::get<0>(*before));
    const auto between = co_await select(silent.receive(), sleep_until(past), channel.receive());
    EXPECT_EQ(between->index(), 1U);
    EXPECT_EQ(channel.size(), 3U);
    const auto behind = co_await select(channel.receive(), sleep_until(past));
    EXPECT_EQ(behind->index(), 0U);
    const auto length = co_await select(sleep(0s), channel.receive());
    EXPECT_EQ(length->index(), 1U) << "no length begins now, and what is there is there before";
    EXPECT_EQ(elapsed(), 1s);
  };
  run(body());
}

TEST_F(SelectTest, WhoIsAlwaysLateLetsOthersRun) {
  CoreChannel<int> silent(1);
  const auto body = [&](Scope& scope) -> Task<> {
    bool others_ran = false;
    scope.spawn([](bool& ran) -> Task<> {
      co_await yield();
      ran = true;
    }(others_ran));
    const Instant now = host_.now();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(co_await select(sleep_until(now), silent.receive()));
    EXPECT_TRUE(others_ran);
  };
  EXPECT_TRUE(run(with_scope(body)));
}

TEST_F(SelectTest, WhatIsDueNeedsNoWaitingUnderACancelledSource) {
  CoreChannel<int> silent(1);
  CancelSource cancel;
  cancel.cancel();
  const Instant now = host_.now();
  EXPECT_TRUE(run(as_task(select(silent.receive(), sleep_until(now))), &cancel));
  EXPECT_EQ(run(as_task(select(silent.receive(), sleep_until(now + 1ns))), &cancel).error(),
            Errc::cancelled);
}

/// Sends for ever, as far as the test goes; each value takes a microsecond.
Task<> flood(MemoryHost& host, CoreChannel<int>& channel, int rounds_later) {
  for (int i = 0; i < rounds_later; ++i) co_await yield();
  for (int i = 0; i < 100'000; ++i) {
    host.clock().move_to(host.now() + 1us);
    if (!co_await channel.send(int(i))) co_return;
  }
  channel.close();
}

// The sender and the receiver take turns: each time the loop comes to its timers, either one may
// have run last.
TEST_F(SelectTest, AChannelThatIsNeverSilentKeepsNoDeadlineOut) {
  for (const int rounds_later : {0, 1}) {
    CoreChannel<int> channel(1);
    const Instant end = host_.now() + 10ms;
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(flood(host_, channel, rounds_later));
      for (bool over = false; !over;) {
        const auto first = co_await select(sleep_until(end), channel.receive());
        over = first->index() == 0;
        if (!over && !std::get<1>(*first)) {
          ADD_FAILURE() << "it never came";
          co_return;
        }
      }
      channel.close();
    };
    EXPECT_TRUE(run(with_scope(body)));
    EXPECT_GE(host_.now(), end);
    EXPECT_LE(host_.now(), end + 5ms) << "more than a turn later";
  }
}

TEST_F(SelectTest, AChannelThatIsNeverEmptyKeepsNoDeadlineOut) {
  CoreChannel<int> channel(1);
  const Instant end = host_.now() + 10ms;
  const auto body = [&]() -> Task<> {
    for (int i = 0; i < 100'000; ++i) {
      host_.clock().move_to(host_.now() + 1us);
      EXPECT_TRUE(channel.try_send(int(i)));
      const auto first = co_await select(sleep_until(end), channel.receive());
      if (first->index() == 0) co_return;
      co_await yield();
    }
    ADD_FAILURE() << "it never came";
  };
  run(body());
}

// --- struck at every point ----------------------------------------------------------------------

Task<> send_struck(Strike& strike, CoreChannel<int>& channel, int first, int& kept) {
  for (int number = first; number < first + 3; ++number) {
    strike.point();
    if (!co_await channel.send(number)) ++kept;
    if (number % 2 == 0) static_cast<void>(co_await sleep(1ms));
  }
}

Task<> merge_struck(Strike& strike, CoreChannel<int>& left, CoreChannel<int>& right,
                    std::vector<int>& received) {
  for (;;) {
    strike.point();
    const auto first = co_await select(left.receive(), sleep(500us), right.receive());
    strike.point();
    if (!first) co_return;
    if (first->index() == 1) continue;
    const Result<int>& number = first->index() == 0 ? std::get<0>(*first) : std::get<2>(*first);
    if (!number) co_return;
    received.push_back(*number);
  }
}

Task<> merge_scenario(Strike& strike, std::size_t capacity) {
  CoreChannel<int> left(capacity), right(capacity);
  std::vector<int> received;
  int kept = 0;
  const auto senders = [&](Scope& scope) -> Task<> {
    scope.spawn(strike.as_victim(0, send_struck(strike, left, 10, kept)));
    scope.spawn(strike.as_victim(1, send_struck(strike, right, 20, kept)));
    co_return;
  };
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(strike.as_victim(2, merge_struck(strike, left, right, received)));
    scope.spawn(strike.as_victim(3, merge_struck(strike, right, left, received)));
    EXPECT_TRUE(co_await with_scope(senders));
    left.close();
    right.close();
  };
  EXPECT_TRUE(co_await with_scope(body));
  for (CoreChannel<int>* channel : {&left, &right}) {
    while (const auto number = channel->try_receive()) received.push_back(*number);
  }
  std::ranges::sort(received);
  EXPECT_EQ(std::ranges::adjacent_find(received), received.end()) << "doubled";
  EXPECT_EQ(received.size() + static_cast<std::size_t>(kept), 6U) << "lost";
}

TEST_F(SelectTest, NoValueIsLostOrDoubledWhoeverIsCancelled) {
  for (const std::size_t capacity : {0U, 1U}) {
    SCOPED_TRACE(capacity);
    const auto scenario = [&](Strike& strike) { return merge_scenario(strike, capacity); };
    EXPECT_GT(sweep(4, scenario), 100U);
  }
}

}  // namespace
}  // namespace weir
