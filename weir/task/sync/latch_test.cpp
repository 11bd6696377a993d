#include "weir/task/sync/latch.hpp"

#include <gtest/gtest.h>

#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir {
namespace {

using LatchTest = StrikeTest;

Task<> work(CoreLatch& latch, Duration length) {
  EXPECT_TRUE(co_await sleep(length));
  latch.count_down();
}

TEST_F(LatchTest, OpensWhenEverythingIsDone) {
  CoreLatch latch(3);
  const auto body = [&](Scope& scope) -> Task<> {
    for (const Duration length : {3s, 1s, 2s}) scope.spawn(work(latch, length));
    EXPECT_EQ((co_await timeout(2500ms, latch.wait())).error(), Errc::timed_out);
    EXPECT_EQ(latch.count(), 1U);
    EXPECT_TRUE(co_await latch.wait());
    EXPECT_EQ(elapsed(), 3s);
    EXPECT_TRUE(co_await latch.wait()) << "it stays open";
  };
  EXPECT_TRUE(run(with_scope(body)));
}

TEST_F(LatchTest, OfNothingIsOpen) {
  CoreLatch latch(0);
  CancelSource cancel;
  cancel.cancel();
  EXPECT_TRUE(run(as_task(latch.wait()), &cancel));
}

TEST_F(LatchTest, CountsDownBySeveral) {
  CoreLatch latch(5);
  latch.count_down(0);
  latch.count_down(4);
  EXPECT_EQ(latch.count(), 1U);
  latch.count_down();
  EXPECT_TRUE(run(as_task(latch.wait())));
}

Task<Result<>> wait_struck(Strike& strike, CoreLatch& latch) {
  strike.point();
  const auto opened = co_await latch.wait();
  strike.point();
  EXPECT_TRUE(!opened || latch.count() == 0);
  co_return opened;
}

TEST_F(LatchTest, WhoIsNotCancelledPasses) {
  const auto scenario = [](Strike& strike) -> Task<> {
    CoreLatch latch(2);
    int passed = 0;
    const auto waiter = [&](std::size_t victim) -> Task<> {
      if (co_await strike.as_victim(victim, wait_struck(strike, latch))) ++passed;
    };
    const auto body = [&](Scope& scope) -> Task<> {
      for (std::size_t victim = 0; victim < 3; ++victim) scope.spawn(waiter(victim));
      for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(co_await sleep(1ms));
        latch.count_down();
        strike.point();
      }
    };
    EXPECT_TRUE(co_await with_scope(body));
    EXPECT_GE(passed, 2);
  };
  EXPECT_GT(sweep(3, scenario), 20U);
}

}  // namespace
}  // namespace weir
