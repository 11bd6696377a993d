// Tests of the pool that the loops of a runtime share.
#include "weir/runtime/pool/detail/shared_pool.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>

#include "weir/loop/os/os_platform.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/runtime/test/pool_fixture.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::shared_pool_test {
namespace {

TEST(SharedPool, IsSharedByTheLoopsOfAGroup) {
  MemoryPlatform platform;
  loop::LoopGroup group;
  const auto one = Loop::make(platform, {.group = &group}).value();
  const auto two = Loop::make(platform, {.core = 1, .group = &group}).value();
  const auto alone = Loop::make(platform, {}).value();
  EXPECT_EQ(&shared_pool(*one), &shared_pool(*two));
  EXPECT_NE(&shared_pool(*one), &shared_pool(*alone));
  EXPECT_EQ(&shared_pool(*alone), &shared_pool(*alone));
}

Task<Result<int>> add_on_a_thread(int left, int right) {
  Loop& loop = *(co_await this_context()).loop;
  const auto add = [](int one, int other) { return one + other; };
  co_return co_await shared_pool(loop).pool().run(add, left, right);
}

TEST(SharedPool, HasNoThreadBeforeThereIsWork) {
  OsPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  EXPECT_EQ(shared_pool(*loop).pool().report().threads, 0U);
  EXPECT_EQ(run(*loop, add_on_a_thread(2, 3)).value(), 5);
  EXPECT_GE(shared_pool(*loop).pool().report().threads, 1U);
}

constexpr auto nothing = [] {};

/// Keeps the share of `busy` in the pool computing, and runs a function in `other` meanwhile.
Task<Result<>> ask_beside(BlockingPool& pool, PoolLane busy, PoolLane other) {
  std::atomic<bool> done = false;
  const auto compute = [&done] {
    while (!done) std::this_thread::yield();  // it is not blocked, and yields to others
  };
  const auto whole = [&](Scope& computing) -> Task<Result<>> {
    const std::size_t size = pool.report().size;
    for (std::size_t i = 0; i < size + 3; ++i) computing.spawn(busy.run(compute));
    while (pool.report().running < size) std::ignore = co_await sleep(1ms);
    auto asked = other.run(nothing);
    auto answer = co_await timeout(2min, std::move(asked));
    done = true;
    co_return answer;
  };
  co_return co_await with_scope(whole);
}

TEST(SharedPool, FilesAndOtherWorkDoNotStarveEachOther) {
  OsPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  SharedPool& shared = shared_pool(*loop);
  const PoolLane own = shared.pool().default_lane();
  EXPECT_TRUE(run(*loop, ask_beside(shared.pool(), own, shared.file_lane())));
  EXPECT_TRUE(run(*loop, ask_beside(shared.pool(), shared.file_lane(), own)));
}

// --- step by step -------------------------------------------------------------------------------

/// Fixture of a shared pool on ten CPUs, whose threads take steps on the test's command.
class SharedPoolSteps : public testing::Test {
 protected:
  /// Runs `body(scope)`, and then all threads until the calls that it spawned have ended.
  template <class Body>
  void run_calls(Body body) {
    const auto whole = [&](Scope& scope) -> Task<> {
      body(scope);
      for (int idle = 0; scope.running() != 0 && idle < 100; ++idle) {
        if (take_steps()) idle = 0;
        co_await yield();
      }
    };
    EXPECT_TRUE(run(*loop_, with_scope(OnFailure::isolate, whole)));
  }
  /// Lets the controller, which is the first thread, start the others.
  void start_threads() { platform_.threads.at(0)->step(); }
  /// Lets each thread that is due take one step.
  bool take_steps() {
    bool some = false;
    for (std::size_t i = 0; i < platform_.threads.size(); ++i) {
      if (!platform_.threads[i]->due(platform_.now())) continue;
      platform_.threads[i]->step();
      some = true;
    }
    return some;
  }
  PoolLaneReport own() const { return shared_.report().lanes.at(0); }
  PoolLaneReport files() const { return shared_.report().lanes.at(1); }

  ManualPlatform platform_{{.cores = 10}};
  std::unique_ptr<Loop> loop_ = Loop::make(platform_, {}).value();
  SharedPool shared_{platform_};
};

TEST_F(SharedPoolSteps, FilesGoFirst) {
  run_calls([&](Scope& scope) {
    scope.spawn(shared_.pool().run(nothing));
    scope.spawn(shared_.file_lane().run(nothing));
    start_threads();
    platform_.threads.at(1)->step();
    EXPECT_EQ(files().running, 1U);
    EXPECT_EQ(own().running, 0U);
  });
}

TEST_F(SharedPoolSteps, FilesHaveOneReservedThreadAndLeaveOneToOtherWork) {
  run_calls([&](Scope& scope) {
    for (int i = 0; i < 20; ++i) scope.spawn(shared_.file_lane().run(nothing));
    for (int i = 0; i < 20; ++i) scope.spawn(shared_.pool().run(nothing));
    start_threads();
    for (std::size_t i = 1; i < platform_.threads.size(); ++i) platform_.threads[i]->step();
    EXPECT_EQ(shared_.report().size, 10U);
    EXPECT_EQ(shared_.report().threads, 11U);
    EXPECT_EQ(files().running, 10U) << "nine tenths of the size, and the reserved thread";
    EXPECT_EQ(own().running, 1U);
  });
}

TEST_F(SharedPoolSteps, RejectsAFileOperationIf4096AlreadyWait) {
  run_calls([&](Scope& scope) {
    for (int i = 0; i < 4096 + 10; ++i) scope.spawn(shared_.file_lane().run(nothing));
    EXPECT_EQ(files().rejected, 0U) << "ten threads are about to take one each";
    scope.spawn(shared_.file_lane().run(nothing));
    EXPECT_EQ(files().rejected, 1U);
  });
  EXPECT_EQ(files().finished, 4096U + 10);
}

// --- all cores ----------------------------------------------------------------------------------

Task<Result<>> ask_on_each_core(Scope& scope, std::array<SharedPool*, 2>& asked) {
  const auto sum = co_await add_on_a_thread(static_cast<int>(scope.loop().core()), 1);
  EXPECT_EQ(sum.value_or(-1), static_cast<int>(scope.loop().core()) + 1);
  asked[scope.loop().core()] = &shared_pool(scope.loop());
  co_return {};
}

// Runs twice, because a runtime may run again. The cores call shared_pool() at the same time.
TEST(SharedPool, ServesAllCoresOfARuntime) {
  RuntimeOptions options;
  options.cores = 2;
  options.pin = options.announce = options.handle_signals = false;
  Runtime runtime(options);
  for (int round = 0; round < 2; ++round) {
    std::array<SharedPool*, 2> asked{};
    EXPECT_EQ(runtime.run_on_each_core(ask_on_each_core, std::ref(asked)), 0);
    EXPECT_NE(asked[0], nullptr);
    EXPECT_EQ(asked[0], asked[1]);
  }
}

}  // namespace
}  // namespace weir::shared_pool_test
