// Tests of the count of calls that keeps the threads of a pool from being freed.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "weir/runtime/pool/detail/pool_threads.hpp"

namespace weir::in_flight_calls_test {
namespace {

TEST(InFlightCalls, AreCountedUntilTheyEnd) {
  std::mutex mutex;
  InFlightCalls calls(mutex);
  EXPECT_TRUE(calls.none());
  calls.begin();
  calls.begin();
  calls.end();
  EXPECT_FALSE(calls.none());
  calls.end();
  EXPECT_TRUE(calls.none());
  calls.wait_until_none();
}

// For the sanitizers: a call's objects exist until it has ended, and end() does not touch a
// destroyed object.
TEST(InFlightCalls, NothingIsFreedBeforeTheLastCallHasEnded) {
  constexpr int callers = 3;
  for (int round = 0; round < 200; ++round) {
    std::mutex mutex;
    auto calls = std::make_optional<InFlightCalls>(mutex);
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
    calls->wait_until_none();
    EXPECT_EQ(*used, callers);
    used.reset();
    calls.reset();
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace weir::in_flight_calls_test
