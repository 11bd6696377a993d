// Tests of Semaphore.
#include "weir/task/sync/semaphore.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::semaphore_test {
namespace {

using SemaphoreTest = CancelSweepTest;

TEST_F(SemaphoreTest, AdmitsAtMostItsPermitsAtATime) {
  Semaphore semaphore(2);
  std::size_t inside = 0, most = 0;
  const auto work = [&]() -> Task<> {
    const auto permit = co_await semaphore.acquire();
    EXPECT_TRUE(permit);
    most = std::max(most, ++inside);
    EXPECT_TRUE(co_await sleep(1s));
    --inside;
  };
  const auto body = [&](Scope& scope) -> Task<> {
    for (int i = 0; i < 6; ++i) scope.spawn(work());
    co_return;
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(most, 2U);
  EXPECT_EQ(elapsed(), 3s);
  EXPECT_EQ(semaphore.available(), 2U);
}

Task<> take(Semaphore& semaphore, std::size_t count, std::vector<std::size_t>& order) {
  auto permit = co_await semaphore.acquire(count);
  EXPECT_TRUE(permit);
  EXPECT_EQ(permit->count(), count);
  order.push_back(count);
  permit->forget();
}

TEST_F(SemaphoreTest, SmallRequestsDoNotOvertakeALargeOne) {
  Semaphore semaphore(1);
  std::vector<std::size_t> order;
  const auto body = [&](Scope& scope) -> Task<> {
    for (const std::size_t count : {3U, 1U, 2U}) scope.spawn(take(semaphore, count, order));
    co_await yield();
    EXPECT_TRUE(order.empty());
    EXPECT_FALSE(semaphore.try_acquire()) << "try_acquire() does not overtake either";
    EXPECT_EQ(semaphore.available(), 1U);
    semaphore.release(2);
    EXPECT_EQ(semaphore.available(), 0U) << "the waiter has them before it runs";
    co_await yield();
    EXPECT_EQ(order, (std::vector<std::size_t>{3}));
    semaphore.release(3);
    co_await yield();
    EXPECT_EQ(order, (std::vector<std::size_t>{3, 1, 2}));
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(semaphore.available(), 0U);
}

TEST_F(SemaphoreTest, PermitsMoveAndGiveBackOnce) {
  Semaphore semaphore(5);
  auto first = semaphore.try_acquire(2);
  auto second = semaphore.try_acquire(3);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(semaphore.try_acquire());
  SemaphorePermit moved = std::move(*first);
  EXPECT_EQ(first->count(), 0U);
  first.reset();
  EXPECT_EQ(semaphore.available(), 0U);
  moved = std::move(*second);
  EXPECT_EQ(semaphore.available(), 2U) << "its former permits were given back";
  moved.release();
  EXPECT_EQ(moved.count(), 0U);
  moved.release();
  EXPECT_EQ(semaphore.available(), 5U);
  EXPECT_EQ(SemaphorePermit().count(), 0U);
}

TEST_F(SemaphoreTest, TakesAndAddsOnePermitByDefault) {
  Semaphore semaphore(3);
  const auto one = semaphore.try_acquire();
  ASSERT_TRUE(one);
  EXPECT_EQ(one->count(), 1U);
  EXPECT_EQ(semaphore.available(), 2U);
  const auto two = run(as_task(semaphore.acquire()));
  EXPECT_EQ(two->count(), 1U);
  EXPECT_EQ(semaphore.available(), 1U);
  semaphore.release();
  EXPECT_EQ(semaphore.available(), 2U);
  EXPECT_TRUE(semaphore.try_acquire(2)) << "exactly as many as there are";
  EXPECT_FALSE(semaphore.try_acquire(3));
}

TEST_F(SemaphoreTest, ForgottenPermitsAreLost) {
  Semaphore semaphore(2);
  {
    auto permit = semaphore.try_acquire(2);
    ASSERT_TRUE(permit);
    permit->forget();
    EXPECT_EQ(permit->count(), 0U);
    permit->release();
  }
  EXPECT_EQ(semaphore.available(), 0U);
}

TEST_F(SemaphoreTest, ACancelledWaiterLetsThoseBehindItContinue) {
  Semaphore semaphore(1);
  std::vector<std::size_t> order;
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn([](Semaphore& of) -> Task<> {
      EXPECT_EQ((co_await timeout(1s, of.acquire(2))).error(), Errc::timed_out);
    }(semaphore));
    scope.spawn(take(semaphore, 1, order));
    EXPECT_TRUE(co_await sleep(999ms));
    EXPECT_TRUE(order.empty());
    EXPECT_TRUE(co_await sleep(2ms));
    EXPECT_EQ(order.size(), 1U);
  };
  EXPECT_TRUE(run(with_scope(body)));
}

// --- cancelled at every point -------------------------------------------------------------------

Task<> use_often(CancelInjector& injector, Semaphore& semaphore, std::size_t count, int& uses) {
  for (int i = 0; i < 2; ++i) {
    injector.checkpoint();
    const auto permit = co_await semaphore.acquire(count);
    injector.checkpoint();
    if (!permit) co_return;
    ++uses;
    co_await yield();
  }
}

TEST_F(SemaphoreTest, PermitsReturnDespiteCancellations) {
  const auto scenario = [](CancelInjector& injector) -> Task<> {
    Semaphore semaphore(3);
    int uses = 0;
    const auto body = [&](Scope& scope) -> Task<> {
      std::size_t target = 0;
      for (const std::size_t count : {2U, 3U, 1U, 2U}) {
        scope.spawn(injector.as_target(target++, use_often(injector, semaphore, count, uses)));
      }
      co_return;
    };
    EXPECT_TRUE(co_await with_scope(body));
    EXPECT_EQ(semaphore.available(), 3U);
    EXPECT_GE(uses, 6) << "each task that is not cancelled gets its turns";
  };
  EXPECT_GT(sweep(4, scenario), 50U);
}

#ifndef NDEBUG
TEST_F(SemaphoreTest, AssertsThatNoTaskWaitsWhenDestroyed) {
  const auto destroy = [this] {
    auto semaphore = std::make_unique<Semaphore>(0);
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn([](Semaphore& of) -> Task<> { std::ignore = co_await of.acquire(); }(*semaphore));
      semaphore.reset();
      co_return;
    };
    static_cast<void>(run(with_scope(body)));
  };
  EXPECT_DEATH(destroy(), "destroyed while waited on");
}
#endif

}  // namespace
}  // namespace weir::semaphore_test
