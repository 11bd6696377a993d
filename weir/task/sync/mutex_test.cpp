// Tests of Mutex and SharedMutex.
#include "weir/task/sync/mutex.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::mutex_test {
namespace {

using MutexTest = CancelSweepTest;

TEST_F(MutexTest, AdmitsOneTaskAtATimeInTheOrderOfArrival) {
  Mutex mutex;
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

TEST_F(MutexTest, UnlockHandsOverImmediatelyAndResumesLater) {
  Mutex mutex;
  bool inside = false;
  const auto body = [&](Scope& scope) -> Task<> {
    auto guard = co_await mutex.lock();
    EXPECT_TRUE(guard && guard->owns());
    scope.spawn([](Mutex& of, bool& in) -> Task<> {
      const auto own = co_await of.lock();
      in = own.has_value();
    }(mutex, inside));
    guard->unlock();
    EXPECT_FALSE(guard->owns());
    EXPECT_FALSE(inside);
    EXPECT_FALSE(mutex.try_lock()) << "the lock belongs to the waiter";
    co_await yield();
    EXPECT_TRUE(inside);
    EXPECT_TRUE(mutex.try_lock());
  };
  EXPECT_TRUE(run(with_scope(body)));
}

TEST_F(MutexTest, TryLockHoldsTheMutexAlone) {
  Mutex mutex;
  for (int round = 0; round < 3; ++round) {
    const auto guard = mutex.try_lock();
    ASSERT_TRUE(guard && guard->owns());
    EXPECT_TRUE(mutex.locked());
    EXPECT_FALSE(mutex.try_lock());
  }
  EXPECT_FALSE(mutex.locked());
  EXPECT_FALSE(Mutex::Guard().owns());
}

TEST_F(MutexTest, AGuardMovesWithTheLock) {
  Mutex first, second;
  auto guard = first.try_lock();
  auto other = second.try_lock();
  ASSERT_TRUE(guard && other);
  *guard = std::move(*other);
  EXPECT_FALSE(first.locked()) << "the guard gave its lock back";
  EXPECT_TRUE(second.locked());
  EXPECT_FALSE(other->owns());
  other.reset();
  EXPECT_TRUE(second.locked());
  guard->unlock();
  guard->unlock();
  EXPECT_FALSE(second.locked());
}

TEST_F(MutexTest, LockingTwiceEndsOnlyByCancelling) {
  Mutex mutex;
  const auto body = [&]() -> Task<> {
    const auto guard = co_await mutex.lock();
    EXPECT_EQ((co_await timeout(1s, mutex.lock())).error(), Errc::timed_out);
    EXPECT_TRUE(mutex.locked());
  };
  run(body());
  EXPECT_FALSE(mutex.locked());
}

Task<> enter_often(CancelInjector& injector, Mutex& mutex, bool& inside, int& entered) {
  for (int i = 0; i < 3; ++i) {
    injector.checkpoint();
    const auto guard = co_await mutex.lock();
    injector.checkpoint();
    if (!guard) co_return;
    EXPECT_FALSE(std::exchange(inside, true));
    ++entered;
    if (i == 1) {
      co_await yield();
    } else {
      std::ignore = co_await sleep(1ms);
    }
    injector.checkpoint();
    inside = false;
  }
}

TEST_F(MutexTest, IsNeverStuckAfterACancellation) {
  const auto scenario = [](CancelInjector& injector) -> Task<> {
    Mutex mutex;
    bool inside = false;
    int entered = 0;
    const auto body = [&](Scope& scope) -> Task<> {
      for (std::size_t target = 0; target < 3; ++target) {
        scope.spawn(injector.as_target(target, enter_often(injector, mutex, inside, entered)));
      }
      co_return;
    };
    EXPECT_TRUE(co_await with_scope(body));
    EXPECT_FALSE(mutex.locked());
    EXPECT_GE(entered, 6);
  };
  EXPECT_GT(sweep(3, scenario), 60U);
}

#ifndef NDEBUG
TEST_F(MutexTest, AssertsThatItIsUnlockedWhenDestroyed) {
  const auto destroy = [](auto mutex) {
    const auto guard = mutex->try_lock();
    mutex.reset();
  };
  EXPECT_DEATH(destroy(std::make_unique<Mutex>()), "destroyed while locked");
  EXPECT_DEATH(destroy(std::make_unique<SharedMutex>()), "destroyed while locked");
}
#endif

}  // namespace

namespace {

/// A shared mutex and a log of the tasks that hold it: 'r' for a reader, 'w' for a writer.
class SharedMutexTest : public CancelSweepTest {
 protected:
  Task<> read(std::string name) {
    const auto guard = co_await mutex_.lock_shared();
    EXPECT_TRUE(guard && !guard->exclusive());
    co_await be_inside(name);
  }
  Task<> write(std::string name) {
    const auto guard = co_await mutex_.lock();
    EXPECT_TRUE(guard && guard->exclusive());
    co_await be_inside(name);
  }
  Task<> be_inside(std::string name) {
    log_ += "+" + name;
    EXPECT_TRUE(co_await sleep(1s));
    log_ += "-" + name;
  }

  SharedMutex mutex_;
  std::string log_;
};

TEST_F(SharedMutexTest, AdmitsReadersTogetherAndWritersAlone) {
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(read("a"));
    scope.spawn(read("b"));
    scope.spawn(write("c"));
    scope.spawn(write("d"));
    co_return;
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(log_, "+a+b-a-b+c-c+d-d");
  EXPECT_EQ(elapsed(), 3s);
}

TEST_F(SharedMutexTest, ReadersBehindAWriterWaitForIt) {
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(read("a"));
    scope.spawn(write("b"));
    scope.spawn(read("c"));
    scope.spawn(read("d"));
    scope.spawn(write("e"));
    EXPECT_FALSE(mutex_.try_lock_shared());
    EXPECT_FALSE(mutex_.try_lock());
    co_return;
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(log_, "+a-a+b-b+c+d-c-d+e-e");
}

TEST_F(SharedMutexTest, UnlockHandsOverToAllReadersBeforeTheNextWriter) {
  const auto body = [&](Scope& scope) -> Task<> {
    auto guard = mutex_.try_lock();
    EXPECT_TRUE(guard && guard->exclusive());
    scope.spawn(read("a"));
    scope.spawn(read("b"));
    scope.spawn(write("c"));
    scope.spawn(read("d"));
    guard->unlock();
    EXPECT_FALSE(guard->owns() || guard->exclusive());
    EXPECT_EQ(log_, "") << "the loop resumes them later";
    EXPECT_FALSE(mutex_.try_lock()) << "the readers hold it already";
    EXPECT_FALSE(mutex_.try_lock_shared()) << "a writer waits";
    co_await yield();
    EXPECT_EQ(log_, "+a+b");
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(log_, "+a+b-a-b+c-c+d-d");
  EXPECT_EQ(elapsed(), 3s);
}

TEST_F(SharedMutexTest, AGuardUnlocksOnce) {
  const auto body = [&](Scope& scope) -> Task<> {
    auto guard = co_await mutex_.lock();
    scope.spawn(write("a"));
    guard->unlock();
    guard->unlock();
    EXPECT_FALSE(mutex_.try_lock_shared()) << "the waiter holds it";
    *guard = SharedMutex::Guard();
    EXPECT_FALSE(guard->owns() || guard->exclusive());
    EXPECT_TRUE(co_await sleep(2s));
    EXPECT_TRUE(mutex_.try_lock());
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(log_, "+a-a");
}

TEST_F(SharedMutexTest, ACancelledWriterLetsTheReadersBehindItIn) {
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(read("a"));
    scope.spawn([](SharedMutex& of) -> Task<> {
      EXPECT_EQ((co_await timeout(500ms, of.lock())).error(), Errc::timed_out);
    }(mutex_));
    scope.spawn(read("b"));
    co_return;
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(log_, "+a+b-a-b");
  EXPECT_EQ(elapsed(), 1500ms);
}

TEST_F(SharedMutexTest, TryLockNeverWaits) {
  {
    auto first = mutex_.try_lock_shared();
    auto second = mutex_.try_lock_shared();
    EXPECT_TRUE(first && second);
    EXPECT_FALSE(mutex_.try_lock());
    first->unlock();
    EXPECT_FALSE(first->owns() || first->exclusive());
  }
  auto alone = mutex_.try_lock();
  ASSERT_TRUE(alone);
  EXPECT_FALSE(mutex_.try_lock() || mutex_.try_lock_shared());
}

TEST_F(SharedMutexTest, AReaderHoldsTheMutexTogetherWithReadersOnly) {
  {
    auto guard = mutex_.try_lock_shared();
    ASSERT_TRUE(guard && guard->owns());
    EXPECT_FALSE(guard->exclusive());
    SharedMutex::Guard moved = std::move(*guard);
    EXPECT_FALSE(guard->owns());
    EXPECT_TRUE(moved.owns());
    EXPECT_FALSE(mutex_.try_lock());
    EXPECT_TRUE(mutex_.try_lock_shared());
  }
  const auto alone = mutex_.try_lock();
  ASSERT_TRUE(alone) << "all readers have left";
  EXPECT_TRUE(alone->exclusive());
}

// --- cancelled at every point -------------------------------------------------------------------

struct Inside {
  int readers = 0;
  int writers = 0;
  int entered = 0;
};

Task<> visit(CancelInjector& injector, SharedMutex& mutex, Inside& inside, bool writes) {
  for (int i = 0; i < 2; ++i) {
    injector.checkpoint();
    auto wait = writes ? mutex.lock() : mutex.lock_shared();
    const auto guard = co_await std::move(wait);
    injector.checkpoint();
    if (!guard) co_return;
    ++(writes ? inside.writers : inside.readers);
    ++inside.entered;
    EXPECT_TRUE(inside.writers == 0 || (inside.writers == 1 && inside.readers == 0));
    std::ignore = co_await sleep(1ms);
    --(writes ? inside.writers : inside.readers);
    writes = !writes;
  }
}

TEST_F(SharedMutexTest, IsNeverStuckAfterACancellation) {
  const auto scenario = [](CancelInjector& injector) -> Task<> {
    SharedMutex mutex;
    Inside inside;
    const auto body = [&](Scope& scope) -> Task<> {
      std::size_t target = 0;
      for (const bool writes : {false, true, false, true}) {
        scope.spawn(injector.as_target(target++, visit(injector, mutex, inside, writes)));
      }
      co_return;
    };
    EXPECT_TRUE(co_await with_scope(body));
    EXPECT_TRUE(mutex.try_lock());
    EXPECT_GE(inside.entered, 6);
  };
  EXPECT_GT(sweep(4, scenario), 60U);
}

}  // namespace
}  // namespace weir::mutex_test
