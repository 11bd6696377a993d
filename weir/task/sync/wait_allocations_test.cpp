// Nothing in the vocabulary of one core allocates: not what can be had at once, nor waiting for it.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "weir/task/sync/channel.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/generator.hpp"
#include "weir/task/interval.hpp"
#include "weir/task/sync/latch.hpp"
#include "weir/task/mutex.hpp"
#include "weir/task/sync/rate_limiter.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/select.hpp"
#include "weir/task/semaphore.hpp"
#include "weir/task/shared_mutex.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace {

std::uint64_t news = 0;  // calls of operator new, in this whole binary, where they are counted

}  // namespace

// The thread sanitizer's operators cannot be replaced; there, only blocks are counted.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_TEST_THREAD_SANITIZED 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define WEIR_TEST_THREAD_SANITIZED 1
#endif
#ifndef WEIR_TEST_THREAD_SANITIZED
void* operator new(std::size_t bytes) {
  ++news;
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
#endif

namespace weir {
namespace {

/// While tasks wait for one another, nothing may be taken from anywhere: the heap, or the memory of
/// the core.
class WaitAllocations : public LoopTest {
 protected:
  struct Count {
    std::uint64_t news;
    std::size_t blocks;
    std::size_t cached;
    bool operator==(const Count&) const = default;
  };
  Count count() { return {news, loop_->blocks().blocks_in_use(), loop_->blocks().cached_bytes()}; }

  /// `twice(who)` gives a generator whose next() does everything once, and which ends when it is
  /// cancelled; two of them run side by side.
  template <class Twice>
  void expect_none(Twice twice) {
    int compared = 0;
    const auto repeat = [&](Scope& scope, int who) -> Task<> {
      Generator<int> doing = twice(who);
      Count before{};
      for (int round = 0; round < 110; ++round) {
        if (round == 10) before = count();
        const auto done = co_await doing.next();
        EXPECT_TRUE(done && *done);
      }
      EXPECT_EQ(count(), before);
      if (++compared == 2) scope.cancel();
      while (compared < 2) {  // or the other one would wait for it
        static_cast<void>(co_await doing.next());
      }
    };
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(repeat(scope, 1));
      co_await repeat(scope, 0);
    };
    EXPECT_TRUE(run(with_scope(body)));
    EXPECT_EQ(compared, 2);
  }
};

TEST_F(WaitAllocations, NoneForLocks) {
  CoreMutex mutex;
  CoreSharedMutex shared;
  CoreSemaphore semaphore(2);
  expect_none([&](int who) -> Generator<int> {
    for (;; co_yield 0) {
      {
        const auto guard = co_await mutex.lock();
        if (!guard) co_return;
        co_await yield();  // so that the other one waits
      }
      {
        const auto permit = co_await semaphore.acquire(2);
        if (!permit) co_return;
        co_await yield();
      }
      auto way_in = who == 0 ? shared.lock() : shared.lock_shared();
      const auto inside = co_await std::move(way_in);
      if (!inside) co_return;
      co_await yield();
    }
  });
}

TEST_F(WaitAllocations, NoneForEvents) {
  CoreAutoResetEvent turns[2];
  CoreManualResetEvent open(true);
  CoreLatch latch(0);
  turns[0].set();
  expect_none([&](int who) -> Generator<int> {
    for (;; co_yield 0) {
      if (!co_await turns[who].wait()) co_return;
      EXPECT_TRUE(co_await open.wait());
      EXPECT_TRUE(co_await latch.wait());
      turns[1 - who].set();
    }
  });
}

TEST_F(WaitAllocations, NoneForChannelsAndSelect) {
  CoreChannel<int> there(1), back(0);
  expect_none([&](int who) -> Generator<int> {
    CoreChannel<int>& from = who == 0 ? there : back;
    CoreChannel<int>& to = who == 0 ? back : there;
    for (;; co_yield 0) {
      if (who == 0) {
        if (!co_await to.send(1)) co_return;
        if (!co_await select(sleep(1s), from.receive())) co_return;
      } else {
        if (!co_await from.receive()) co_return;
        if (!co_await select(sleep(1s), to.send(2))) co_return;
      }
    }
  });
}

TEST_F(WaitAllocations, NoneForTime) {
  CoreRateLimiter limiter({.tokens = 1000, .per = 1s, .burst = 2});
  expect_none([&](int who) -> Generator<int> {
    Interval ticks(who == 0 ? 1ms : 3ms);
    for (;; co_yield 0) {
      if (!co_await ticks.next()) co_return;
      if (!co_await limiter.acquire()) co_return;
    }
  });
}

}  // namespace
}  // namespace weir
