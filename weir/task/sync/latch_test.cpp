// Tests of Latch.
#include "weir/task/sync/latch.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::latch_test {
namespace {

using LatchTest = CancelSweepTest;

Task<> work(Latch& latch, Duration length) {
  EXPECT_TRUE(co_await sleep(length));
  latch.count_down();
}

TEST_F(LatchTest, OpensWhenTheCountIsZero) {
  Latch latch(3);
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

TEST_F(LatchTest, IsOpenIfItsCountIsZero) {
  Latch latch(0);
  CancelSource cancel;
  cancel.cancel();
  EXPECT_TRUE(run(as_task(latch.wait()), &cancel));
}

TEST_F(LatchTest, CountsDownBySeveralAtATime) {
  Latch latch(5);
  latch.count_down(0);
  latch.count_down(4);
  EXPECT_EQ(latch.count(), 1U);
  latch.count_down();
  EXPECT_TRUE(run(as_task(latch.wait())));
}

TEST_F(LatchTest, ResumesItsWaitersInTheOrderOfArrivalWhenItOpens) {
  Latch latch(2);
  std::vector<int> passed;
  const auto waiter = [&](int number) -> Task<> {
    EXPECT_TRUE(co_await latch.wait());
    passed.push_back(number);
  };
  const auto body = [&](Scope& scope) -> Task<> {
    for (int number = 0; number < 3; ++number) scope.spawn(waiter(number));
    latch.count_down();
    co_await yield();
    EXPECT_TRUE(passed.empty());
    latch.count_down();
    EXPECT_TRUE(passed.empty()) << "the loop resumes them later";
    co_await yield();
    EXPECT_EQ(passed, (std::vector<int>{0, 1, 2}));
  };
  EXPECT_TRUE(run(with_scope(body)));
}

#ifndef NDEBUG
TEST_F(LatchTest, AssertsThatItIsNotCountedDownBelowZero) {
  Latch latch(2);
  EXPECT_DEATH(latch.count_down(3), "counted down below zero");
}

TEST_F(LatchTest, AssertsThatNoTaskWaitsWhenDestroyed) {
  const auto destroy = [this] {
    auto latch = std::make_unique<Latch>(1);
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(latch->wait());
      latch.reset();
      co_return;
    };
    static_cast<void>(run(with_scope(body)));
  };
  EXPECT_DEATH(destroy(), "destroyed while waited on");
}
#endif

Task<Result<>> wait_cancellable(CancelInjector& injector, Latch& latch) {
  injector.checkpoint();
  const auto opened = co_await latch.wait();
  injector.checkpoint();
  EXPECT_TRUE(!opened || latch.count() == 0);
  co_return opened;
}

TEST_F(LatchTest, EachTaskThatIsNotCancelledPasses) {
  const auto scenario = [](CancelInjector& injector) -> Task<> {
    Latch latch(2);
    int passed = 0;
    const auto waiter = [&](std::size_t target) -> Task<> {
      if (co_await injector.as_target(target, wait_cancellable(injector, latch))) ++passed;
    };
    const auto body = [&](Scope& scope) -> Task<> {
      for (std::size_t target = 0; target < 3; ++target) scope.spawn(waiter(target));
      for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(co_await sleep(1ms));
        latch.count_down();
        injector.checkpoint();
      }
    };
    EXPECT_TRUE(co_await with_scope(body));
    EXPECT_GE(passed, 2);
  };
  EXPECT_GT(sweep(3, scenario), 20U);
}

}  // namespace
}  // namespace weir::latch_test
