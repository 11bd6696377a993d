#include "weir/task/mutex.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir {
namespace {

using MutexTest = StrikeTest;

TEST_F(MutexTest, OneAtATimeInTheOrderOfComing) {
  CoreMutex mutex;
  std::vector<int> order;
  const auto work = [&](int number) -> Task<> {
    const auto guard = co_await mutex.lock();
    EXPECT_TRUE(guard);
    order.push_back(number);
    EXPECT_TRUE(co_await sleep(1s));
    order.push_back(number);
  };
  const auto body = [&](Scope& scope) -> Task<> {
    for (int i = 0; i < 3; ++i) scope.spawn(work(i));
    co_return;
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(order, (std::vector<int>{0, 0, 1, 1, 2, 2}));
  EXPECT_FALSE(mutex.locked());
}

TEST_F(MutexTest, UnlockHandsOverAtOnceAndResumesLater) {
  CoreMutex mutex;
  bool inside = false;
  const auto body = [&](Scope& scope) -> Task<> {
    auto guard = co_await mutex.lock();
    EXPECT_TRUE(guard && guard->holds());
    scope.spawn([](CoreMutex& of, bool& in) -> Task<> {
      const auto own = co_await of.lock();
      in = own.has_value();
    }(mutex, inside));
    guard->unlock();
    EXPECT_FALSE(guard->holds());
    EXPECT_FALSE(inside);
    EXPECT_FALSE(mutex.try_lock()) << "it belongs to the one who waited";
    co_await yield();
    EXPECT_TRUE(inside);
    EXPECT_TRUE(mutex.try_lock());
  };
  EXPECT_TRUE(run(with_scope(body)));
}

TEST_F(MutexTest, LockingTwiceEndsOnlyByCancelling) {
  CoreMutex mutex;
  const auto body = [&]() -> Task<> {
    const auto guard = co_await mutex.lock();
    EXPECT_EQ((co_await timeout(1s, mutex.lock())).error(), Errc::timed_out);
    EXPECT_TRUE(mutex.locked());
  };
  run(body());
  EXPECT_FALSE(mutex.locked());
}

Task<> enter_often(Strike& strike, CoreMutex& mutex, bool& inside, int& entered) {
  for (int i = 0; i < 3; ++i) {
    strike.point();
    const auto guard = co_await mutex.lock();
    strike.point();
    if (!guard) co_return;
    EXPECT_FALSE(std::exchange(inside, true));
    ++entered;
    if (i == 1) {
      co_await yield();
    } else {
      static_cast<void>(co_await sleep(1ms));
    }
    strike.point();
    inside = false;
  }
}

TEST_F(MutexTest, NeverForgottenWhoeverIsCancelled) {
  const auto scenario = [](Strike& strike) -> Task<> {
    CoreMutex mutex;
    bool inside = false;
    int entered = 0;
    const auto body = [&](Scope& scope) -> Task<> {
      for (std::size_t victim = 0; victim < 3; ++victim) {
        scope.spawn(strike.as_victim(victim, enter_often(strike, mutex, inside, entered)));
      }
      co_return;
    };
    EXPECT_TRUE(co_await with_scope(body));
    EXPECT_FALSE(mutex.locked());
    EXPECT_GE(entered, 6);
  };
  EXPECT_GT(sweep(3, scenario), 60U);
}

}  // namespace
}  // namespace weir
