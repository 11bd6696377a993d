// Tests that the primitives of one core allocate nothing, with and without waiting.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "weir/task/generator.hpp"
#include "weir/task/interval.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/select.hpp"
#include "weir/task/sync/channel.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/sync/latch.hpp"
#include "weir/task/sync/mutex.hpp"
#include "weir/task/sync/rate_limiter.hpp"
#include "weir/task/sync/semaphore.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace {

std::uint64_t news = 0;  // calls of operator new in this binary, if they are counted

}  // namespace

// The thread sanitizer's operators cannot be replaced. Only blocks are counted there.
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

namespace weir::wait_allocations_test {
namespace {

/// Waiting tasks must take no memory from the heap or from the core's pool.
class WaitAllocations : public LoopTest {
 protected:
  struct Count {
    std::uint64_t news;
    std::size_t blocks;
    std::size_t cached;
    bool operator==(const Count&) const = default;
  };
  Count count() { return {news, loop_->blocks().blocks_in_use(), loop_->blocks().cached_bytes()}; }

  /// `twice(side)` returns a generator whose next() does everything once. The generator ends when
  /// it is cancelled. Two generators run concurrently.
  template <class Twice>
  void expect_none(Twice twice) {
    int compared = 0;
    const auto repeat = [&](Scope& scope, int side) -> Task<> {
      Generator<int> doing = twice(side);
      Count before{};
      for (int round = 0; round < 110; ++round) {
        if (round == 10) before = count();
        const auto done = co_await doing.next();
        EXPECT_TRUE(done && *done);
      }
      EXPECT_EQ(count(), before);
      if (++compared == 2) scope.cancel();
      while (compared < 2) {  // or the other generator would wait
        std::ignore = co_await doing.next();
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

TEST_F(WaitAllocations, LocksAllocateNothing) {
  Mutex mutex;
  SharedMutex shared;
  Semaphore semaphore(2);
  expect_none([&](int side) -> Generator<int> {
    for (;; co_yield 0) {
      {
        const auto guard = co_await mutex.lock();
        if (!guard) co_return;
        co_await yield();  // so that the other task waits
      }
      {
        const auto permit = co_await semaphore.acquire(2);
        if (!permit) co_return;
        co_await yield();
      }
      auto way_in = side == 0 ? shared.lock() : shared.lock_shared();
      const auto inside = co_await std::move(way_in);
      if (!inside) co_return;
      co_await yield();
    }
  });
}

TEST_F(WaitAllocations, EventsAllocateNothing) {
  AutoResetEvent turns[2];
  ManualResetEvent open(true);
  Latch latch(0);
  turns[0].set();
  expect_none([&](int side) -> Generator<int> {
    for (;; co_yield 0) {
      if (!co_await turns[side].wait()) co_return;
      EXPECT_TRUE(co_await open.wait());
      EXPECT_TRUE(co_await latch.wait());
      turns[1 - side].set();
    }
  });
}

TEST_F(WaitAllocations, ChannelsAndSelectAllocateNothing) {
  Channel<int> there(1), back(0);
  expect_none([&](int side) -> Generator<int> {
    Channel<int>& from = side == 0 ? there : back;
    Channel<int>& to = side == 0 ? back : there;
    for (;; co_yield 0) {
      if (side == 0) {
        if (!co_await to.send(1)) co_return;
        if (!co_await select(sleep(1s), from.receive())) co_return;
      } else {
        if (!co_await from.receive()) co_return;
        if (!co_await select(sleep(1s), to.send(2))) co_return;
      }
    }
  });
}

TEST_F(WaitAllocations, IntervalsAndRateLimitersAllocateNothing) {
  RateLimiter limiter({.tokens = 1000, .per = 1s, .burst = 2});
  expect_none([&](int side) -> Generator<int> {
    Interval ticks(side == 0 ? 1ms : 3ms);
    for (;; co_yield 0) {
      if (!co_await ticks.next()) co_return;
      if (!co_await limiter.acquire()) co_return;
    }
  });
}

}  // namespace
}  // namespace weir::wait_allocations_test
