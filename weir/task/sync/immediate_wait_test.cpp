// Tests that a thing that is available is taken without suspending the task, and that a cancelled
// task waits for nothing.
#include <gtest/gtest.h>

#include <utility>

#include "weir/task/interval.hpp"
#include "weir/task/select.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/channel.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/sync/latch.hpp"
#include "weir/task/sync/mutex.hpp"
#include "weir/task/sync/rate_limiter.hpp"
#include "weir/task/sync/semaphore.hpp"
#include "weir/testing/test/loop_fixture.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir::immediate_wait_test {
namespace {

class ImmediateWait : public LoopTest {
 protected:
  /// Awaits `wait` in a task and expects that no other work runs before the task continues. The
  /// task is cancelled, unless `cancels` is false.
  template <class W>
  void expect_immediate(W wait, bool cancels = true) {
    CancelSource cancel;
    if (cancels) cancel.cancel();
    bool others_ran = false;
    CallProbe other([&] { others_ran = true; });
    const auto body = [&]() -> Task<> {
      loop_->ready(other);
      const auto had = co_await std::move(wait);
      EXPECT_TRUE(had);
      EXPECT_FALSE(others_ran);
    };
    run(body(), &cancel);
    EXPECT_TRUE(others_ran);
    EXPECT_EQ(elapsed(), 0s);
  }

  /// Awaits `wait`, which has to wait, in a task that is cancelled before, or while it waits if
  /// `later` is true. Expects that no task is resumed inside cancel().
  template <class W>
  void expect_cancelled(W wait, bool later) {
    CancelSource cancel;
    if (!later) cancel.cancel();
    bool ended = false;
    CallProbe canceller([&] {
      cancel.cancel();
      EXPECT_EQ(ended, !later);
    });
    const auto body = [&]() -> Task<> {
      loop_->ready(canceller);
      const auto had = co_await std::move(wait);
      EXPECT_EQ(cancel.cancelled(), true);
      EXPECT_FALSE(had);
      if (!had) {
        EXPECT_EQ(had.error(), Errc::cancelled);
      }
      ended = true;
    };
    run(body(), &cancel);
    platform_.run_until_idle(*loop_);
    EXPECT_TRUE(ended);
    EXPECT_EQ(elapsed(), 0s);
    EXPECT_EQ(loop_->timers().armed(), 0U);
  }
};

TEST_F(ImmediateWait, PassesAnOpenEventOrLatch) {
  ManualResetEvent manual(true);
  AutoResetEvent automatic;
  Latch latch(0);
  for (const bool cancels : {false, true}) {
    expect_immediate(manual.wait(), cancels);
    automatic.set();
    expect_immediate(automatic.wait(), cancels);
    expect_immediate(latch.wait(), cancels);
  }
}

TEST_F(ImmediateWait, TakesAFreeLockOrPermit) {
  Mutex mutex;
  SharedMutex shared;
  Semaphore semaphore(2);
  for (const bool cancels : {false, true}) {
    expect_immediate(mutex.lock(), cancels);
    expect_immediate(shared.lock(), cancels);
    expect_immediate(shared.lock_shared(), cancels);
    expect_immediate(semaphore.acquire(2), cancels);
  }
}

TEST_F(ImmediateWait, SendsToAChannelWithRoomAndReceivesItsValues) {
  Channel<int> channel(2);
  int number = 2;
  for (const bool cancels : {false, true}) {
    expect_immediate(channel.send(1), cancels);
    expect_immediate(channel.send_from(number), cancels);
    expect_immediate(channel.receive(), cancels);
    expect_immediate(channel.receive(), cancels);
  }
}

TEST_F(ImmediateWait, TakesTheTokensOfARateLimiter) {
  RateLimiter limiter({.tokens = 1, .per = 1s, .burst = 5});
  for (const bool cancels : {false, true}) {
    expect_immediate(limiter.acquire(), cancels);
    expect_immediate(limiter.acquire(), cancels);
  }
  EXPECT_EQ(limiter.available(platform_.now()), 1U);
}

TEST_F(ImmediateWait, ACancelledTaskWaitsForNoEventOrLatch) {
  ManualResetEvent manual;
  AutoResetEvent automatic;
  Latch latch(1);
  for (const bool later : {false, true}) {
    expect_cancelled(manual.wait(), later);
    expect_cancelled(automatic.wait(), later);
    expect_cancelled(latch.wait(), later);
    manual.set();
    manual.reset();
    automatic.set();
    EXPECT_TRUE(automatic.is_set()) << "no task waits";
    automatic.reset();
    EXPECT_EQ(latch.count(), 1U);
  }
}

TEST_F(ImmediateWait, ACancelledTaskWaitsForNoLockOrPermit) {
  Mutex mutex;
  SharedMutex shared;
  Semaphore semaphore(2);
  for (const bool later : {false, true}) {
    {
      const auto locked = mutex.try_lock();
      const auto alone = shared.try_lock();
      ASSERT_TRUE(locked && alone);
      expect_cancelled(mutex.lock(), later);
      expect_cancelled(shared.lock(), later);
      expect_cancelled(shared.lock_shared(), later);
      expect_cancelled(semaphore.acquire(3), later);
    }
    EXPECT_FALSE(mutex.locked());
    EXPECT_TRUE(shared.try_lock());
    EXPECT_TRUE(semaphore.try_acquire(2)) << "no task waits";
  }
  EXPECT_EQ(semaphore.available(), 2U);
}

TEST_F(ImmediateWait, ACancelledTaskWaitsForNoChannel) {
  Channel<int> full(1), empty(1);
  int number = 2;
  EXPECT_TRUE(full.try_send(1));
  for (const bool later : {false, true}) {
    expect_cancelled(full.send(3), later);
    expect_cancelled(full.send_from(number), later);
    expect_cancelled(empty.receive(), later);
    expect_cancelled(select(empty.receive(), full.send(4)), later);
    EXPECT_TRUE(empty.try_send(5));
    EXPECT_EQ(empty.try_receive(), 5) << "no task waits";
    EXPECT_EQ(full.try_receive(), 1);
    EXPECT_FALSE(full.try_receive());
    EXPECT_TRUE(full.try_send(1));
  }
}

TEST_F(ImmediateWait, ACancelledTaskWaitsForNoTime) {
  RateLimiter limiter({.tokens = 1, .per = 1s, .burst = 1});
  Interval ticks(1s);
  EXPECT_TRUE(limiter.try_acquire(platform_.now()));
  for (const bool later : {false, true}) {
    expect_cancelled(limiter.acquire(), later);
    expect_cancelled(ticks.next(), later);
    expect_cancelled(sleep(1s), later);
    expect_cancelled(sleep_until(never), later);
    expect_cancelled(select(sleep(1s), ticks.next(), limiter.acquire()), later);
  }
  EXPECT_TRUE(run(as_task(limiter.acquire())));
  EXPECT_EQ(elapsed(), 1s) << "no token was taken";
  EXPECT_EQ(run(as_task(ticks.next()))->number, 0U);
}

}  // namespace
}  // namespace weir::immediate_wait_test
