// Tests of select().
#include "weir/task/select.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/task/scope.hpp"
#include "weir/task/sync/channel.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/sync/mutex.hpp"
#include "weir/task/sync/semaphore.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::select_test {
namespace {

using SelectTest = CancelSweepTest;

TEST_F(SelectTest, TakesOnlyTheFirstAvailableCase) {
  Channel<int> numbers(2);
  Channel<std::string> words(2);
  EXPECT_TRUE(numbers.try_send(1));
  EXPECT_TRUE(words.try_send("a"));
  const auto body = [&]() -> Task<> {
    const auto first = co_await select(numbers.receive(), words.receive());
    EXPECT_EQ(first->index(), 0U) << "the first in the list";
    EXPECT_EQ(std::get<0>(*first), 1);
    const auto second = co_await select(numbers.receive(), words.receive());
    EXPECT_EQ(second->index(), 1U);
    EXPECT_EQ(std::get<1>(*second), "a");
  };
  run(body());
  EXPECT_EQ(elapsed(), 0s);
}

TEST_F(SelectTest, WaitsForTheFirstAndLeavesTheOthersAlone) {
  Channel<int> left(1), right(0);
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn([](Channel<int>& one, Channel<int>& other) -> Task<> {
      EXPECT_TRUE(co_await sleep(1s));
      EXPECT_TRUE(other.try_send(2)) << "a task waits";
      EXPECT_EQ(other.try_send(3).error(), Errc::limit_reached) << "only one value is taken";
      EXPECT_TRUE(one.try_send(1));
      EXPECT_EQ(one.size(), 1U) << "no task waits here any more";
    }(left, right));
    const auto first = co_await select(left.receive(), right.receive(), sleep(5s));
    EXPECT_EQ(first->index(), 1U);
    EXPECT_EQ(std::get<1>(*first), 2);
    EXPECT_EQ(elapsed(), 1s);
    EXPECT_EQ(left.try_receive(), 1);
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(elapsed(), 1s) << "the timer was withdrawn";
}

TEST_F(SelectTest, TimersAreCases) {
  Channel<int> silent(1);
  const auto body = [&]() -> Task<> {
    const auto first = co_await select(silent.receive(), sleep(2s), sleep(1s));
    EXPECT_EQ(first->index(), 2U);
    EXPECT_EQ(elapsed(), 1s);
    const Instant moment = platform_.now() + 3s;
    const auto second = co_await select(sleep(4s), sleep_until(moment), silent.receive());
    EXPECT_EQ(second->index(), 1U);
    EXPECT_TRUE(std::get<1>(*second));
    EXPECT_EQ(platform_.now(), moment);
    const auto polled = co_await select(silent.receive(), sleep(0s));
    EXPECT_EQ(polled->index(), 1U);
    EXPECT_EQ(platform_.now(), moment);
  };
  run(body());
}

TEST_F(SelectTest, SendingIsACaseToo) {
  Channel<std::unique_ptr<int>> full(1), quit(1);
  EXPECT_TRUE(full.try_send(std::make_unique<int>(1)));
  auto mine = std::make_unique<int>(2);
  const auto body = [&]() -> Task<> {
    const auto late = co_await select(full.send_from(mine), sleep(1s));
    EXPECT_EQ(late->index(), 1U);
    EXPECT_NE(mine, nullptr) << "the value was not sent";
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

TEST_F(SelectTest, AClosedChannelIsAvailable) {
  Channel<int> open(1), closed(1);
  closed.close();
  const auto body = [&](Scope& scope) -> Task<> {
    const auto immediate = co_await select(open.receive(), closed.receive());
    EXPECT_EQ(immediate->index(), 1U);
    EXPECT_EQ(std::get<1>(*immediate).error(), Errc::end_of_stream);
    scope.spawn([](Channel<int>& channel) -> Task<> {
      EXPECT_TRUE(co_await sleep(1s));
      channel.close();
    }(open));
    const auto later = co_await select(sleep(2s), open.receive());
    EXPECT_EQ(std::get<1>(*later).error(), Errc::end_of_stream);
  };
  EXPECT_TRUE(run(with_scope(body)));
}

TEST_F(SelectTest, TakesLocksEventsAndPermits) {
  Mutex mutex;
  Semaphore semaphore(1);
  ManualResetEvent event;
  const auto body = [&]() -> Task<> {
    auto locked = co_await select(event.wait(), mutex.lock(), semaphore.acquire());
    EXPECT_EQ(locked->index(), 1U);
    const auto taken = co_await select(event.wait(), mutex.lock(), semaphore.acquire());
    EXPECT_EQ(taken->index(), 2U);
    const auto none = co_await timeout(1s, select(event.wait(), mutex.lock(), semaphore.acquire()));
    EXPECT_EQ(none.error(), Errc::timed_out);
    EXPECT_TRUE(std::get<1>(*locked)->owns());
  };
  run(body());
  EXPECT_FALSE(mutex.locked());
  EXPECT_EQ(semaphore.available(), 1U);
}

// A case that leaves a queue lets the waiters behind it continue. Both cases leave together here.
TEST_F(SelectTest, LeavesAQueueWithTwoCases) {
  Semaphore semaphore(1);
  const auto body = [&]() -> Task<> {
    auto own = semaphore.try_acquire();
    const auto none = co_await timeout(1s, select(semaphore.acquire(5), semaphore.acquire(1)));
    EXPECT_EQ(none.error(), Errc::timed_out);
    own.reset();
    EXPECT_EQ(semaphore.available(), 1U);
    bool cancelled = false;
    const auto waiting = [&]() -> Task<> {
      const auto either = co_await select(semaphore.acquire(5), semaphore.acquire(1));
      cancelled = !either && either.error() == Errc::cancelled;
    };
    own = semaphore.try_acquire();
    const auto release_and_cancel = [&](Scope& scope) -> Task<> {
      scope.spawn(waiting());
      own.reset();  // one is free, but the first waiter needs five
      scope.cancel();
      co_return;
    };
    EXPECT_TRUE(co_await with_scope(release_and_cancel));
    EXPECT_TRUE(cancelled);
  };
  run(body());
  EXPECT_EQ(semaphore.available(), 1U);
}

TEST_F(SelectTest, TakesOnlyAvailableCasesUnderACancelledSource) {
  Channel<int> channel(1);
  EXPECT_TRUE(channel.try_send(1));
  CancelSource cancel;
  cancel.cancel();
  EXPECT_EQ(run(as_task(select(sleep(1s), channel.receive())), &cancel)->index(), 1U);
  EXPECT_EQ(run(as_task(select(sleep(1s), channel.receive())), &cancel).error(), Errc::cancelled);
  EXPECT_EQ(elapsed(), 0s);
}

// --- kinds of waits -----------------------------------------------------------------------------

/// A Recorder stores the calls of a RecordedWait.
struct Recorder {
  Wait* wait = nullptr;
  std::string calls;
};

/// A wait of its own kind. It records its calls, and may be available only when it begins.
class RecordedWait : public Wait {
 public:
  using Value = Result<int>;
  explicit RecordedWait(Recorder& recorder, bool available = false) noexcept
      : recorder_(&recorder), available_(available) {}

  bool ready() const noexcept { return false; }
  bool begin(Loop&) {
    recorder_->wait = this;
    recorder_->calls += "b";
    return !available_;
  }
  void withdraw() const noexcept { recorder_->calls += "w"; }
  void on_withdrawn() const noexcept { recorder_->calls += "o"; }
  Value value() const noexcept { return 7; }
  WaitAwaiter<RecordedWait> operator co_await() && noexcept {
    return WaitAwaiter<RecordedWait>(*this);
  }

 private:
  Recorder* recorder_;
  bool available_;
};

TEST_F(SelectTest, ACaseMayBeAvailableWhenItBegins) {
  Recorder before, chosen, behind;
  const auto body = [&]() -> Task<> {
    const auto first =
        co_await select(RecordedWait(before), RecordedWait(chosen, true), RecordedWait(behind));
    EXPECT_EQ(first->index(), 1U);
    EXPECT_EQ(std::get<1>(*first), 7);
    EXPECT_EQ(co_await RecordedWait(chosen, true), 7);
  };
  run(body());
  EXPECT_EQ(before.calls, "bwo");
  EXPECT_EQ(chosen.calls, "bb") << "a case that is taken is not withdrawn";
  EXPECT_EQ(behind.calls, "") << "a case that has not begun is not withdrawn";
}

TEST_F(SelectTest, WithdrawsTheCasesThatLoseAndOnlyThem) {
  std::array<Recorder, 3> all;
  for (std::size_t granted = 0; granted < all.size(); ++granted) {
    for (Recorder& each : all) each = Recorder();
    CancelSource cancel;
    platform_.at(platform_.now() + 1s, [&] {
      all[granted].wait->grant();
      cancel.cancel();  // too late
    });
    const auto body = [&]() -> Task<> {
      const auto first =
          co_await select(RecordedWait(all[0]), RecordedWait(all[1]), RecordedWait(all[2]));
      EXPECT_EQ(first->index(), granted);
    };
    run(body(), &cancel);
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].calls, i == granted ? "b" : "bwo") << i << " of " << granted;
    }
  }
}

TEST_F(SelectTest, WithdrawsAllCasesWhenCancelled) {
  for (const bool early : {true, false}) {
    Recorder one, other;
    CancelSource cancel;
    if (early) {
      cancel.cancel();
    } else {
      platform_.at(platform_.now() + 1s, [&] { cancel.cancel(); });
    }
    const auto body = [&]() -> Task<> {
      const auto first = co_await select(RecordedWait(one), RecordedWait(other));
      EXPECT_EQ(first.error(), Errc::cancelled);
    };
    run(body(), &cancel);
    EXPECT_EQ(one.calls, "bwo");
    EXPECT_EQ(other.calls, "bwo");
  }
}

// --- waits for one primitive --------------------------------------------------------------------

/// Takes `count` permits and keeps them.
Task<> take_forever(Semaphore& semaphore, std::size_t count, int& passed) {
  auto permit = co_await semaphore.acquire(count);
  EXPECT_TRUE(permit);
  permit->forget();
  ++passed;
}

TEST_F(SelectTest, ACaseThatLosesLetsTheWaitersBehindItContinue) {
  for (const bool cancels : {false, true}) {
    Semaphore semaphore(1);
    ManualResetEvent event;
    CancelSource cancel;
    int passed = 0;
    const auto selects = [&]() -> Task<> {
      const auto first = co_await select(semaphore.acquire(5), semaphore.acquire(2), event.wait());
      EXPECT_EQ(first.has_value(), !cancels);
      if (!cancels) {
        EXPECT_EQ(first->index(), 2U);
      }
    };
    const auto body = [&](Scope& scope) -> Task<> {
      CancelSource own(scope.context().cancel);
      Scope inner({&scope.loop(), &own}, OnFailure::isolate);
      inner.spawn(selects());
      scope.spawn(take_forever(semaphore, 1, passed));
      co_await yield();
      EXPECT_EQ(passed, 0) << "the first case is before it";
      if (cancels) {
        own.cancel();
      } else {
        event.set();
      }
      co_await inner.children_finished();
      co_await yield();
      EXPECT_EQ(passed, 1);
    };
    EXPECT_TRUE(run(with_scope(body)));
  }
}

// The case that loses leaves its queue while the first case is granted.
TEST_F(SelectTest, TakesThePermitsOfOneCaseOnce) {
  for (const std::size_t released : {1U, 2U, 3U}) {
    SCOPED_TRACE(released);
    Semaphore semaphore(0);
    int passed = 0, selected = 0;
    const auto selects = [&]() -> Task<> {
      auto first = co_await select(semaphore.acquire(1), semaphore.acquire(5));
      EXPECT_EQ(first->index(), 0U);
      std::get<0>(*first)->forget();
      ++selected;
    };
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(selects());
      for (int i = 0; i < 2; ++i) scope.spawn(take_forever(semaphore, 1, passed));
      semaphore.release(released);
      co_await yield();
      co_await yield();
      EXPECT_EQ(selected, 1);
      EXPECT_EQ(passed, static_cast<int>(released) - 1);
      EXPECT_EQ(semaphore.available(), 0U);
      semaphore.release(3 - released);
    };
    EXPECT_TRUE(run(with_scope(body)));
    EXPECT_EQ(semaphore.available(), 0U);
  }
}

TEST_F(SelectTest, ACaseThatIsGrantedLeavesTheOtherPermitsFree) {
  Semaphore semaphore(0);
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn([](Semaphore& of) -> Task<> {
      EXPECT_TRUE(co_await sleep(1s));
      of.release(3);
      EXPECT_EQ(of.available(), 2U);
    }(semaphore));
    const auto first = co_await select(semaphore.acquire(1), semaphore.acquire(5));
    EXPECT_EQ(first->index(), 0U);
    co_await yield();
    EXPECT_EQ(semaphore.available(), 2U);
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(semaphore.available(), 3U);
}

TEST_F(SelectTest, AGrantBeatsALaterCancellation) {
  AutoResetEvent event;
  Channel<int> silent(1);
  CancelSource cancel;
  platform_.at(platform_.now() + 1s, [&] {
    event.set();
    cancel.cancel();
  });
  const auto body = [&]() -> Task<> {
    const auto first = co_await select(silent.receive(), event.wait());
    EXPECT_EQ(first->index(), 1U);
    EXPECT_TRUE(cancel.cancelled());
  };
  run(body(), &cancel);
  EXPECT_FALSE(event.is_set());
}

template <class... A>
concept Selectable = requires(A... waits) { select(std::move(waits)...); };

TEST_F(SelectTest, TakesAtLeastOneCase) {
  EXPECT_FALSE(Selectable<>);
  EXPECT_TRUE(Selectable<Sleep>);
  EXPECT_EQ(run(as_task(select(sleep(1s))))->index(), 0U);
  EXPECT_EQ(elapsed(), 1s);
}

// --- time ---------------------------------------------------------------------------------------

TEST_F(SelectTest, APassedDeadlineIsChosenInOrder) {
  Channel<int> channel(3), silent(1);
  const auto body = [&]() -> Task<> {
    const Instant past = platform_.now();
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
    EXPECT_EQ(length->index(), 1U) << "a sleep begins now, but the value was there before";
    EXPECT_EQ(elapsed(), 1s);
  };
  run(body());
}

TEST_F(SelectTest, ADeadlineThatPassesDuringATurnIsDueInTheNextOne) {
  Channel<int> channel(2);
  const auto body = [&]() -> Task<> {
    const Instant soon = platform_.now() + 1s;
    platform_.clock().move_to(soon);  // in the middle of this turn
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(channel.try_send(int(i)));
    const auto early = co_await select(sleep_until(soon), channel.receive());
    EXPECT_EQ(early->index(), 1U);
    EXPECT_TRUE(co_await sleep(0s));
    const auto due = co_await select(sleep_until(soon), channel.receive());
    EXPECT_EQ(due->index(), 0U) << "the turn began at its exact time";
    EXPECT_EQ(channel.size(), 1U);
  };
  run(body());
  EXPECT_EQ(elapsed(), 1s);
}

TEST_F(SelectTest, TheLengthOfASleepCountsFromTheAwait) {
  Channel<int> silent(1);
  const auto body = [&]() -> Task<> {
    platform_.clock().move_to(platform_.now() + 3s);  // in the middle of this turn
    const auto first = co_await select(silent.receive(), sleep(1s));
    EXPECT_EQ(first->index(), 1U);
  };
  run(body());
  EXPECT_EQ(elapsed(), 4s);
}

// The clock calls the event first, then the loop would fire the timer.
TEST_F(SelectTest, ATimerThatLosesAtItsTimeDoesNotFire) {
  Channel<int> channel(1);
  const auto body = [&]() -> Task<> {
    const auto first = co_await select(channel.receive(), sleep(1s));
    EXPECT_EQ(first->index(), 0U);
    co_await yield();
    const auto second = co_await select(sleep_until(started_ + 2s), channel.receive());
    EXPECT_EQ(second->index(), 1U);
    co_await yield();
  };
  for (const Duration length : {1s, 2s}) {
    platform_.at(started_ + length, [&] { EXPECT_TRUE(channel.try_send(7)); });
  }
  run(body());
  EXPECT_EQ(elapsed(), 2s);
}

TEST_F(SelectTest, ATaskThatIsAlwaysLateLetsOthersRun) {
  Channel<int> silent(1);
  const auto body = [&](Scope& scope) -> Task<> {
    bool others_ran = false;
    scope.spawn([](bool& ran) -> Task<> {
      co_await yield();
      ran = true;
    }(others_ran));
    const Instant now = platform_.now();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(co_await select(sleep_until(now), silent.receive()));
    EXPECT_TRUE(others_ran);
  };
  EXPECT_TRUE(run(with_scope(body)));
}

TEST_F(SelectTest, ADueDeadlineIsTakenUnderACancelledSource) {
  Channel<int> silent(1);
  CancelSource cancel;
  cancel.cancel();
  const Instant now = platform_.now();
  EXPECT_TRUE(run(as_task(select(silent.receive(), sleep_until(now))), &cancel));
  EXPECT_EQ(run(as_task(select(silent.receive(), sleep_until(now + 1ns))), &cancel).error(),
            Errc::cancelled);
}

/// Sends values throughout the test; each value takes a microsecond.
Task<> flood(MemoryPlatform& platform, Channel<int>& channel, int rounds_later) {
  for (int i = 0; i < rounds_later; ++i) co_await yield();
  for (int i = 0; i < 100'000; ++i) {
    platform.clock().move_to(platform.now() + 1us);
    if (!co_await channel.send(int(i))) co_return;
  }
  channel.close();
}

// The sender and the receiver take turns, so either may have run last when the loop runs its
// timers.
TEST_F(SelectTest, AChannelThatIsNeverSilentDelaysNoDeadline) {
  for (const int rounds_later : {0, 1}) {
    Channel<int> channel(1);
    const Instant end = platform_.now() + 10ms;
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(flood(platform_, channel, rounds_later));
      for (bool over = false; !over;) {
        const auto first = co_await select(sleep_until(end), channel.receive());
        over = first->index() == 0;
        if (!over && !std::get<1>(*first)) {
          ADD_FAILURE() << "the deadline never came";
          co_return;
        }
      }
      channel.close();
    };
    EXPECT_TRUE(run(with_scope(body)));
    EXPECT_GE(platform_.now(), end);
    EXPECT_LE(platform_.now(), end + 5ms) << "more than a turn later";
  }
}

TEST_F(SelectTest, AChannelThatIsNeverEmptyDelaysNoDeadline) {
  Channel<int> channel(1);
  const Instant end = platform_.now() + 10ms;
  const auto body = [&]() -> Task<> {
    for (int i = 0; i < 100'000; ++i) {
      platform_.clock().move_to(platform_.now() + 1us);
      EXPECT_TRUE(channel.try_send(int(i)));
      const auto first = co_await select(sleep_until(end), channel.receive());
      if (first->index() == 0) co_return;
      co_await yield();
    }
    ADD_FAILURE() << "the deadline never came";
  };
  run(body());
}

// --- cancelled at every point -------------------------------------------------------------------

Task<> send_cancellable(CancelInjector& injector, Channel<int>& channel, int first, int& kept) {
  for (int number = first; number < first + 3; ++number) {
    injector.checkpoint();
    if (!co_await channel.send(number)) ++kept;
    if (number % 2 == 0) std::ignore = co_await sleep(1ms);
  }
}

Task<> merge_cancellable(CancelInjector& injector, Channel<int>& left, Channel<int>& right,
                         std::vector<int>& received) {
  for (;;) {
    injector.checkpoint();
    const auto first = co_await select(left.receive(), sleep(500us), right.receive());
    injector.checkpoint();
    if (!first) co_return;
    if (first->index() == 1) continue;
    const Result<int>& number = first->index() == 0 ? std::get<0>(*first) : std::get<2>(*first);
    if (!number) co_return;
    received.push_back(*number);
  }
}

Task<> merge_scenario(CancelInjector& injector, std::size_t capacity) {
  Channel<int> left(capacity), right(capacity);
  std::vector<int> received;
  int kept = 0;
  const auto senders = [&](Scope& scope) -> Task<> {
    scope.spawn(injector.as_target(0, send_cancellable(injector, left, 10, kept)));
    scope.spawn(injector.as_target(1, send_cancellable(injector, right, 20, kept)));
    co_return;
  };
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(injector.as_target(2, merge_cancellable(injector, left, right, received)));
    scope.spawn(injector.as_target(3, merge_cancellable(injector, right, left, received)));
    EXPECT_TRUE(co_await with_scope(senders));
    left.close();
    right.close();
  };
  EXPECT_TRUE(co_await with_scope(body));
  for (Channel<int>* channel : {&left, &right}) {
    while (const auto number = channel->try_receive()) received.push_back(*number);
  }
  std::ranges::sort(received);
  EXPECT_EQ(std::ranges::adjacent_find(received), received.end()) << "duplicated";
  EXPECT_EQ(received.size() + static_cast<std::size_t>(kept), 6U) << "lost";
}

TEST_F(SelectTest, NoValueIsLostOrDuplicatedByACancellation) {
  for (const std::size_t capacity : {0U, 1U}) {
    SCOPED_TRACE(capacity);
    const auto scenario = [&](CancelInjector& injector) {
      return merge_scenario(injector, capacity);
    };
    EXPECT_GT(sweep(4, scenario), 100U);
  }
}

}  // namespace
}  // namespace weir::select_test
