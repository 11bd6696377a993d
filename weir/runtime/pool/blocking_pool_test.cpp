#include "weir/runtime/pool/blocking_pool.hpp"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "weir/runtime/pool/detail/pool_list.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::blocking_pool_test {
namespace {

// Types that run() rejects at compile time.
template <class T>
constexpr bool refused = detail::any_holds_reference<detail::Pointers::counted, 4, T>;
static_assert(refused<const char*> && refused<int*> && refused<void*>);
static_assert(refused<std::string_view> && refused<std::span<int>>);
static_assert(refused<std::reference_wrapper<int>> && refused<std::initializer_list<int>>);
static_assert(refused<std::vector<std::string_view>> && refused<std::pair<int, const char*>>);
static_assert(refused<std::map<std::string, std::span<int>>> && refused<std::tuple<int, int&>>);
static_assert(refused<std::optional<std::string_view>> && refused<std::array<int*, 2>>);
static_assert(refused<std::vector<std::vector<std::vector<int*>>>>);
static_assert(refused<std::ranges::filter_view<std::ranges::ref_view<std::vector<int>>,
                                               bool (*)(int)>>);  // a view that is not borrowed
static_assert(!refused<std::filesystem::path>);                   // a range of itself
static_assert(!refused<std::string> && !refused<std::unique_ptr<int>> && !refused<int (*)(int)>);
static_assert(!refused<std::map<std::string, std::vector<std::string>>> &&
              !refused<std::nullptr_t>);
static_assert(!refused<Borrowed<std::string_view>> && !refused<Borrowed<int&>>);
static_assert(std::is_same_v<PoolResult<int (*)(int), int>, Result<int>>);
static_assert(std::is_same_v<PoolResult<int* (*)()>, Result<int*>>);
static_assert(std::is_same_v<PoolResult<Result<int> (*)()>, Result<int>>);
static_assert(std::is_same_v<PoolResult<void (*)(std::stop_token, int), int>, Result<>>);
static_assert(std::is_same_v<PoolResult<int (*)(int&), Borrowed<int&>>, Result<int>>);

/// Fixture in memory: functions are called between turns.
class BlockingPoolTest : public LoopTest {
 protected:
  BlockingPool pool_{platform_};
};

TEST_F(BlockingPoolTest, IsInTheListOfItsPlatformWhileItExists) {
  const auto names = [](const loop::Platform& platform) {
    std::string text;
    for (const NamedPoolReport& each : report_on_pools(platform)) {
      text += each.name + " of " + std::to_string(each.report.size) + ", ";
    }
    return text;
  };
  {
    const BlockingPool images(platform_, {.name = "images", .size = {.fixed = 2}, .lane = {}});
    const BlockingPool others(platform_, {.name = "images", .size = {.fixed = 3}, .lane = {}});
    EXPECT_TRUE(names(platform_).ends_with("images of 2, images 2 of 3, ")) << names(platform_);
    const MemoryPlatform elsewhere{MemoryPlatformOptions()};
    EXPECT_EQ(names(elsewhere), "");
  }
  EXPECT_TRUE(names(platform_).starts_with("pool of "));
  EXPECT_FALSE(names(platform_).contains("images"));
}

TEST_F(BlockingPoolTest, ReturnsTheResultOfTheFunction) {
  const auto body = [](BlockingPool& pool) -> Task<> {
    const Loop* const owner_loop = Loop::current();
    const auto twice = [](std::unique_ptr<int> number) {
      *number *= 2;
      return number;
    };
    auto doubled = co_await pool.run(twice, std::make_unique<int>(21));
    EXPECT_EQ(Loop::current(), owner_loop);
    EXPECT_EQ(**doubled, 42);
    bool called = false;
    const auto nothing = [&called] { called = true; };
    EXPECT_TRUE(co_await pool.run(nothing));
    EXPECT_TRUE(called);
  };
  run(body(pool_));
  const PoolReport report = pool_.report();
  EXPECT_EQ(report.lanes.at(0).finished, 2U);
  EXPECT_EQ(report.queued + report.running, 0U);
}

TEST_F(BlockingPoolTest, PassesResultsOnAndRethrowsExceptions) {
  const auto body = [](BlockingPool& pool) -> Task<> {
    const auto answer = [](bool good) -> Result<int> {
      if (!good) return fail(Errc::not_found);
      return 7;
    };
    EXPECT_EQ((co_await pool.run(answer, true)).value(), 7);
    EXPECT_EQ((co_await pool.run(answer, false)).error(), Errc::not_found);
    const auto broken = [](const std::string& what) -> int { throw std::runtime_error(what); };
    std::string caught;
    try {
      std::ignore = co_await pool.run(broken, std::string("broken"));
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    EXPECT_EQ(caught, "broken");
  };
  run(body(pool_));
}

TEST_F(BlockingPoolTest, BorrowedArgumentsStayTheCallers) {
  const auto body = [](BlockingPool& pool) -> Task<> {
    std::string text = "some";
    const auto append = [](std::string& to, std::string_view what) { to += what; };
    EXPECT_TRUE(co_await pool.run(append, borrow(text), borrow(std::string_view(" text"))));
    EXPECT_EQ(text, "some text");
  };
  run(body(pool_));
}

TEST_F(BlockingPoolTest, CancelledQueuedWorkLeavesImmediately) {
  const auto body = [](BlockingPool& pool, Scope& scope) -> Task<> {
    int called = 0;
    const auto count = [&called] { ++called; };
    const auto outcome = [](Task<Result<>> work, Result<>& into) -> Task<> {
      into = co_await std::move(work);
    };
    Result<> result;
    scope.spawn(outcome(pool.run(count), result));
    EXPECT_EQ(pool.report().queued, 1U);
    scope.cancel();
    co_await yield();
    EXPECT_EQ(result.error(), Errc::cancelled);
    EXPECT_EQ((co_await pool.run(count)).error(), Errc::cancelled);
    EXPECT_EQ(called, 0);
    EXPECT_EQ(pool.report().lanes.at(0).cancelled, 1U);
  };
  const auto in_scope = [&](Scope& scope) { return body(pool_, scope); };
  static_cast<void>(run(with_scope(in_scope)));
}

TEST_F(BlockingPoolTest, ClosingCancelsQueuedWorkAndRejectsMore) {
  const auto body = [](BlockingPool& pool, Scope& scope) -> Task<> {
    const auto nothing = [] {};
    const auto outcome = [](Task<Result<>> work, Result<>& into) -> Task<> {
      into = co_await std::move(work);
    };
    Result<> result;
    scope.spawn(outcome(pool.run(nothing), result));
    pool.close();
    EXPECT_EQ((co_await pool.run(nothing)).error(), Errc::closed);
    EXPECT_TRUE(co_await sleep(1ns));
    EXPECT_EQ(result.error(), Errc::cancelled);
  };
  const auto in_scope = [&](Scope& scope) { return body(pool_, scope); };
  static_cast<void>(run(with_scope(in_scope)));
}

TEST_F(BlockingPoolTest, APoolMayBeDestroyedBeforeItsQueuedCalls) {
  const auto body = [](loop::Platform& platform, Scope& scope) -> Task<> {
    const auto nothing = [] {};
    const auto outcome = [](Task<Result<>> work) -> Task<> {
      EXPECT_EQ((co_await std::move(work)).error(), Errc::cancelled);
    };
    {
      BlockingPool pool(platform);
      scope.spawn(outcome(pool.run(nothing)));
    }
    scope.cancel();  // its result is on its way to the loop
    co_return;
  };
  const auto in_scope = [&](Scope& scope) { return body(platform_, scope); };
  static_cast<void>(run(with_scope(in_scope)));
}

TEST_F(BlockingPoolTest, AFullQueueRejects) {
  BlockingPoolOptions options;
  options.lane.capacity = 2;
  BlockingPool pool(platform_, options);
  const auto body = [](BlockingPool& full) -> Task<> {
    const auto number = [](int value) { return value; };
    std::vector<Task<Result<int>>> calls;
    for (int i = 0; i < 5; ++i) calls.push_back(full.run(number, i));  // one gets the thread
    const auto first = co_await all(std::move(calls));
    EXPECT_EQ(first.error(), Errc::limit_reached);
    EXPECT_EQ((co_await full.run(number, 5)).value(), 5);
  };
  run(body(pool));
  EXPECT_EQ(pool.report().lanes.at(0).rejected, 1U) << "all() has cancelled the last call";
}

TEST_F(BlockingPoolTest, AFullQueueWithWaitPolicyWaits) {
  BlockingPoolOptions options;
  options.lane.capacity = 1;
  options.lane.overflow_policy = OverflowPolicy::wait;
  BlockingPool pool(platform_, options);
  const auto body = [](BlockingPool& full) -> Task<> {
    const auto number = [](int value) { return value; };
    std::vector<Task<Result<int>>> calls;
    for (int i = 0; i < 100; ++i) calls.push_back(full.run(number, i));
    const auto values = co_await all(std::move(calls));
    for (int i = 0; i < 100; ++i) EXPECT_EQ((*values)[static_cast<std::size_t>(i)], i);
  };
  run(body(pool));
  EXPECT_EQ(pool.report().lanes.at(0).finished, 100U);
}

TEST_F(BlockingPoolTest, FailsWithTheKernelsErrorWithoutAnyThread) {
  platform_.set_threads_max(0);
  const auto body = [](BlockingPool& pool, MemoryPlatform& platform) -> Task<> {
    const auto number = [](int value) { return value; };
    EXPECT_EQ((co_await pool.run(number, 1)).error(), system_error(EAGAIN));
    EXPECT_EQ(pool.report().threads, 0U);
    EXPECT_EQ(pool.report().queued, 0U);
    platform.set_threads_max(9);
    EXPECT_EQ((co_await pool.run(number, 2)).value(), 2);
  };
  run(body(pool_, platform_));
}

TEST_F(BlockingPoolTest, WorksWithFewerThreadsThanItsSize) {
  BlockingPoolOptions options;
  options.size.fixed = 10;
  BlockingPool pool(platform_, options);
  platform_.set_threads_max(4);  // with the controllers of two pools
  const auto body = [](BlockingPool& few) -> Task<> {
    const auto number = [](int value) { return value; };
    std::vector<Task<Result<int>>> calls;
    for (int i = 0; i < 50; ++i) calls.push_back(few.run(number, i));
    EXPECT_TRUE(co_await all(std::move(calls)));
    EXPECT_EQ(few.report().threads, 2U);
    EXPECT_EQ(few.report().last_change.reason, SizeReason::no_threads_left);
  };
  run(body(pool));
}

TEST_F(BlockingPoolTest, ARestrictedFixedSizeIsRestoredLater) {
  BlockingPoolOptions options;
  options.size.fixed = 10;
  BlockingPool pool(platform_, options);
  platform_.set_threads_max(3);  // with the controllers of two pools
  const auto body = [](BlockingPool& cut, MemoryPlatform& platform) -> Task<> {
    const auto number = [](int value) { return value; };
    for (const std::size_t expected : {1U, 10U}) {
      std::vector<Task<Result<int>>> calls;
      for (int i = 0; i < 50; ++i) calls.push_back(cut.run(number, i));
      EXPECT_TRUE(co_await all(std::move(calls)));
      EXPECT_EQ(cut.report().size, expected);
      EXPECT_EQ(cut.report().threads, expected);
      platform.set_threads_max(100);
      EXPECT_TRUE(co_await sleep(1s));
    }
  };
  run(body(pool, platform_));
}

TEST_F(BlockingPoolTest, IdleThreadsEndAndAreStartedAgain) {
  BlockingPoolOptions options;
  options.size.min = 2;
  options.size.max = 9;
  options.size.idle_timeout = 3s;
  MemoryPlatform eight{{.cores = 8}};
  const auto loop = Loop::make(eight, {}).value();
  BlockingPool pool(eight, options);
  const auto body = [](BlockingPool& idle) -> Task<> {
    const auto number = [](int value) { return value; };
    for (int round = 0; round < 3; ++round) {
      std::vector<Task<Result<int>>> calls;
      for (int i = 0; i < 50; ++i) calls.push_back(idle.run(number, i));
      EXPECT_TRUE(co_await all(std::move(calls)));
      EXPECT_EQ(idle.report().threads, 8U);
      EXPECT_TRUE(co_await sleep(2s));
      EXPECT_EQ(idle.report().threads, 8U);
      EXPECT_TRUE(co_await sleep(2s));
      EXPECT_EQ(idle.report().threads, 2U);
    }
  };
  weir::run(*loop, body(pool));
}

TEST_F(BlockingPoolTest, CallsTakeNoVirtualTime) {
  const auto body = [](BlockingPool& pool) -> Task<> {
    const auto number = [](int value) { return value; };
    for (int i = 0; i < 50; ++i) EXPECT_EQ((co_await pool.run(number, i)).value(), i);
  };
  run(body(pool_));
  EXPECT_EQ(elapsed(), Duration(0));
}

}  // namespace
}  // namespace weir::blocking_pool_test
