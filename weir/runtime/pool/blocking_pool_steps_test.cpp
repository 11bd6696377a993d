// Tests of BlockingPool::run() in virtual time: calls are cancelled, or the pool is closed, at
// every step.
#include <gtest/gtest.h>

#include <stop_token>

#include "weir/runtime/pool/blocking_pool.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"

namespace weir::blocking_pool_steps_test {
namespace {

constexpr std::size_t askers = 4;

/// Counts the outcomes of the calls.
struct Seen {
  int called = 0;
  int served = 0;
  int asked_to_stop = 0;
  int refused = 0;
};

class BlockingPoolSteps : public CancelSweepTest, public testing::WithParamInterface<std::size_t> {
 protected:
  BlockingPoolSteps() : CancelSweepTest(MemoryPlatformOptions{.cores = 2}) {}

  /// Awaits a call of injected_work(), which returns `number`.
  static Task<> await_one(CancelInjector& injector, Task<Result<std::size_t>> call,
                          std::size_t number, Seen& seen) {
    injector.checkpoint();
    const auto value = co_await std::move(call);
    injector.checkpoint();
    if (value) {
      EXPECT_EQ(*value, number);
      ++seen.served;
    } else {
      EXPECT_TRUE(value.error() == Errc::cancelled || value.error() == Errc::closed);
      ++seen.refused;
    }
  }
  static auto injected_work(CancelInjector& injector, Seen& seen) {
    return [&](std::stop_token stop, std::size_t value) {
      injector.checkpoint();  // cancels a queued, a taken or this call
      ++seen.called;
      if (stop.stop_requested()) ++seen.asked_to_stop;
      return value;
    };
  }
  void expect_all_answered(const BlockingPool& pool, const Seen& seen) {
    EXPECT_EQ(seen.served + seen.refused, static_cast<int>(askers));
    EXPECT_EQ(seen.called, seen.served) << "rejected work was not called";
    const PoolReport report = pool.report();
    EXPECT_EQ(report.queued + report.running, 0U);
    EXPECT_EQ(report.lanes.at(0).finished, static_cast<std::uint64_t>(seen.served));
    refused_ += seen.refused;
    asked_to_stop_ += seen.asked_to_stop;
  }

  int refused_ = 0;  // in all runs
  int asked_to_stop_ = 0;
};

TEST_P(BlockingPoolSteps, ACancelledCallEndsOnceAndDelaysNoOther) {
  const auto scenario = [&](CancelInjector& injector) -> Task<> {
    BlockingPoolOptions options;
    options.size.fixed = GetParam();
    options.lane.capacity = 1;
    options.lane.overflow_policy = OverflowPolicy::wait;
    BlockingPool pool(platform_, options);
    Seen seen;
    const auto ask_all = [&](Scope& scope) -> Task<> {
      for (std::size_t i = 0; i < askers; ++i) {
        auto call = injector.as_target(i, pool.run(injected_work(injector, seen), i));
        scope.spawn(await_one(injector, std::move(call), i, seen));
      }
      co_return;
    };
    EXPECT_TRUE(co_await with_scope(ask_all));
    EXPECT_LE(seen.refused, 1);
    expect_all_answered(pool, seen);
  };
  EXPECT_GT(sweep(askers, scenario), 2 * askers);
  EXPECT_GT(refused_, 0);
  EXPECT_GT(asked_to_stop_, 0);
}

/// A Closer closes a pool when its source is cancelled.
struct Closer : CancelNode {
  explicit Closer(BlockingPool& closed) : CancelNode(unnamed_kind<&on_cancel>), pool(closed) {}
  static void on_cancel(CancelNode& self) { static_cast<Closer&>(self).pool.close(); }
  BlockingPool& pool;
};

/// The target task: its cancellation closes the pool and does not affect the callers.
Task<> closing(BlockingPool& pool, Context outside, Task<Result<>> asking) {
  Closer closer(pool);
  const Context context = co_await this_context();
  if (context.cancelled()) {
    pool.close();
  } else {
    EXPECT_TRUE(closer.join(context.cancel));
  }
  auto running = in_context(outside, std::move(asking));
  EXPECT_TRUE(co_await std::move(running));
}

TEST_P(BlockingPoolSteps, ClosingAtAnyStepEndsAllCalls) {
  const auto scenario = [&](CancelInjector& injector) -> Task<> {
    BlockingPoolOptions options;
    options.size.fixed = GetParam();
    BlockingPool pool(platform_, options);
    Seen seen;
    const auto ask_all = [&](Scope& scope) -> Task<> {
      for (std::size_t i = 0; i < askers; ++i) {
        scope.spawn(await_one(injector, pool.run(injected_work(injector, seen), i), i, seen));
      }
      co_return;
    };
    const Context outside = co_await this_context();
    auto injected = injector.as_target(0, closing(pool, outside, with_scope(ask_all)));
    co_await std::move(injected);
    expect_all_answered(pool, seen);
  };
  EXPECT_GT(sweep(1, scenario), askers);
  EXPECT_GT(refused_, 0);
  EXPECT_GT(asked_to_stop_, 0);
}

INSTANTIATE_TEST_SUITE_P(OfSize, BlockingPoolSteps, testing::Values(0, 1, 2));

}  // namespace
}  // namespace weir::blocking_pool_steps_test
