// Tests of sleep() and sleep_until().
#include "weir/task/sleep.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "weir/task/scope.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::sleep_test {
namespace {

using SleepTest = LoopTest;

TEST_F(SleepTest, WakesAtItsExactTime) {
  EXPECT_TRUE(run(as_task(sleep(1234567ns))));
  EXPECT_EQ(elapsed(), 1234567ns);
  const Instant moment = platform_.now() + 10s;
  EXPECT_TRUE(run(as_task(sleep_until(moment))));
  EXPECT_EQ(platform_.now(), moment);
}

TEST_F(SleepTest, ZeroLengthLetsOthersRunAndPassesNoTime) {
  for (const Duration length : {Duration(0), Duration(-5s), Duration::min()}) {
    std::vector<int> order;
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn([](std::vector<int>& to, Duration nap) -> Task<> {
        to.push_back(1);
        EXPECT_TRUE(co_await sleep(nap));
        to.push_back(3);
      }(order, length));
      order.push_back(2);
      co_return;
    };
    EXPECT_TRUE(run(with_scope(body)));
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  }
  EXPECT_TRUE(run(as_task(sleep_until(Instant::min()))));
  EXPECT_EQ(elapsed(), 0s);
}

TEST_F(SleepTest, TheLengthCountsFromTheAwait) {
  const auto late = [this]() -> Task<Result<>> {
    const Sleep nap = sleep(1s);
    platform_.clock().move_to(platform_.now() + 3s);
    co_return co_await nap;
  };
  EXPECT_TRUE(run(late()));
  EXPECT_EQ(elapsed(), 4s);
}

TEST_F(SleepTest, NeverEndsOnlyByCancelling) {
  CancelSource cancel;
  platform_.at(platform_.now() + 1000h, [&] { cancel.cancel(); });
  EXPECT_EQ(run(as_task(sleep_until(never)), &cancel).error(), Errc::cancelled);
  EXPECT_EQ(elapsed(), 1000h);
  EXPECT_EQ(run(as_task(sleep(Duration::max())), &cancel).error(), Errc::cancelled);
}

TEST_F(SleepTest, MayBeCancelledBeforeItBegins) {
  CancelSource cancel;
  cancel.cancel();
  EXPECT_EQ(run(as_task(sleep(1s)), &cancel).error(), Errc::cancelled);
  EXPECT_EQ(run(as_task(sleep(0s)), &cancel).error(), Errc::cancelled);
  EXPECT_EQ(elapsed(), 0s);
}

TEST_F(SleepTest, MayBeCancelledWhileItSleeps) {
  CancelSource cancel;
  platform_.at(platform_.now() + 400ms, [&] { cancel.cancel(); });
  EXPECT_EQ(run(as_task(sleep(1s)), &cancel).error(), Errc::cancelled);
  EXPECT_EQ(elapsed(), 400ms);
}

// The clock calls the event first, then the loop would fire the timer.
TEST_F(SleepTest, ACancellationAtItsTimeResumesItOnce) {
  CancelSource cancel;
  platform_.at(platform_.now() + 1s, [&] { cancel.cancel(); });
  const auto body = [&]() -> Task<> {
    EXPECT_EQ((co_await sleep(1s)).error(), Errc::cancelled);
    co_await yield();
    EXPECT_EQ((co_await sleep_until(platform_.now())).error(), Errc::cancelled);
  };
  run(body(), &cancel);
  EXPECT_EQ(elapsed(), 1s);
}

// The timer of the sleeper fires, then the test cancels the sleeper, then the sleeper runs.
TEST_F(SleepTest, AFiredTimerBeatsCancellation) {
  CancelSource cancel;
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn([](CancelSource& source) -> Task<> {
      EXPECT_TRUE(co_await sleep(1s));
      source.cancel();
    }(cancel));
    EXPECT_TRUE(co_await sleep(1s));
    EXPECT_TRUE(cancel.cancelled());
  };
  EXPECT_TRUE(run(with_scope(body), &cancel));
}

TEST_F(SleepTest, ManySleepersWakeInOrder) {
  std::vector<int> order;
  const auto body = [&](Scope& scope) -> Task<> {
    for (const int number : {5, 1, 4, 1, 3}) {
      scope.spawn([](std::vector<int>& to, int seconds) -> Task<> {
        EXPECT_TRUE(co_await sleep(std::chrono::seconds(seconds)));
        to.push_back(seconds);
      }(order, number));
    }
    co_return;
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(order, (std::vector<int>{1, 1, 3, 4, 5}));
}

}  // namespace
}  // namespace weir::sleep_test
