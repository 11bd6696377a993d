#include "weir/task/shared_mutex.hpp"

#include <gtest/gtest.h>

#include <string>

#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir {
namespace {

/// A shared mutex and who is in: 'r' a reader, 'w' a writer.
class SharedMutexTest : public StrikeTest {
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

  CoreSharedMutex mutex_;
  std::string log_;
};

TEST_F(SharedMutexTest, ReadersTogetherWritersAlone) {
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

TEST_F(SharedMutexTest, AWriterWhoGivesUpLetsTheReadersBehindItIn) {
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(read("a"));
    scope.spawn([](CoreSharedMutex& of) -> Task<> {
      EXPECT_EQ((co_await timeout(500ms, of.lock())).error(), Errc::timed_out);
    }(mutex_));
    scope.spawn(read("b"));
    co_return;
  };
  EXPECT_TRUE(run(with_scope(body)));
  EXPECT_EQ(log_, "+a+b-a-b");
  EXPECT_EQ(elapsed(), 1500ms);
}

TEST_F(SharedMutexTest, TryingNeverWaits) {
  {
    auto first = mutex_.try_lock_shared();
    auto second = mutex_.try_lock_shared();
    EXPECT_TRUE(first && second);
    EXPECT_FALSE(mutex_.try_lock());
    first->unlock();
    EXPECT_FALSE(first->holds() || first->exclusive());
  }
  auto alone = mutex_.try_lock();
  ASSERT_TRUE(alone);
  EXPECT_FALSE(mutex_.try_lock() || mutex_.try_lock_shared());
}

// --- struck at every point ----------------------------------------------------------------------

struct Inside {
  int readers = 0;
  int writers = 0;
  int entered = 0;
};

Task<> visit(Strike& strike, CoreSharedMutex& mutex, Inside& inside, bool writes) {
  for (int i = 0; i < 2; ++i) {
    strike.point();
    auto wait = writes ? mutex.lock() : mutex.lock_shared();
    const auto guard = co_await std::move(wait);
    strike.point();
    if (!guard) co_return;
    ++(writes ? inside.writers : inside.readers);
    ++inside.entered;
    EXPECT_TRUE(inside.writers == 0 || (inside.writers == 1 && inside.readers == 0));
    static_cast<void>(co_await sleep(1ms));
    --(writes ? inside.writers : inside.readers);
    writes = !writes;
  }
}

TEST_F(SharedMutexTest, NobodyIsForgottenWhoeverIsCancelled) {
  const auto scenario = [](Strike& strike) -> Task<> {
    CoreSharedMutex mutex;
    Inside inside;
    const auto body = [&](Scope& scope) -> Task<> {
      std::size_t victim = 0;
      for (const bool writes : {false, true, false, true}) {
        scope.spawn(strike.as_victim(victim++, visit(strike, mutex, inside, writes)));
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
}  // namespace weir
