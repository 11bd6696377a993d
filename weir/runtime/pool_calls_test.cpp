#include "weir/runtime/pool_calls.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace weir {
namespace {

TEST(PoolCalls, AreCountedUntilTheyEnd) {
  std::mutex mutex;
  PoolCalls calls(mutex);
  EXPECT_TRUE(calls.none());
  calls.begin();
  calls.begin();
  calls.end();
  EXPECT_FALSE(calls.none());
  calls.end();
  EXPECT_TRUE(calls.none());
  calls.await_none();
}

// With the sanitizers: what a call uses is there until it has ended, and end() touches nothing of
// an object that is gone.
TEST(PoolCalls, NothingIsFreedBeforeTheLastHasEnded) {
  constexpr int callers = 3;
  for (int round = 0; round < 200; ++round) {
    std::mutex mutex;
    auto calls = std::make_optional<PoolCalls>(mutex);
    auto used = std::make_unique<std::atomic<int>>(0);
    for (int i = 0; i < callers; ++i) calls->begin();
    std::vector<std::thread> threads;
    for (int i = 0; i < callers; ++i) {
      threads.emplace_back([&calls, counter = used.get(), pause = round % 3] {
        for (int turn = 0; turn < pause; ++turn) std::this_thread::yield();
        ++*counter;
        calls->end();
      });
    }
    calls->await_none();
    EXPECT_EQ(*used, callers);
    used.reset();
    calls.reset();
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace weir
