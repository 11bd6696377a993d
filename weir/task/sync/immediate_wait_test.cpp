// Tests that a thing that is available is taken without suspending the task.
#include <gtest/gtest.h>

#include <utility>

#include "weir/task/sync/channel.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/sync/latch.hpp"
#include "weir/task/sync/mutex.hpp"
#include "weir/task/sync/rate_limiter.hpp"
#include "weir/task/sync/semaphore.hpp"
#include "weir/testing/test/loop_fixture.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir {
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

}  // namespace
}  // namespace weir
