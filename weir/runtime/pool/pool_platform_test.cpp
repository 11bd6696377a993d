// Tests of the defaults of a pool, and of what it asks of its platform.
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/loop/contract/detail/trace_context.hpp"
#include "weir/runtime/pool/blocking_pool.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/task/scope.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::pool_platform_test {
namespace {

TEST(PoolOptions, HaveTheDocumentedDefaults) {
  const PoolSizeOptions size;
  EXPECT_EQ(size.fixed, 0U);
  EXPECT_EQ(size.min, 1U);
  EXPECT_EQ(size.max, 0U);
  EXPECT_EQ(size.idle_timeout, 10s);
  EXPECT_EQ(size.sample_period, 5ms);
  const PoolLaneOptions lane;
  EXPECT_EQ(lane.name, "work");
  EXPECT_EQ(lane.capacity, 4096U);
  EXPECT_EQ(lane.overflow_policy, OverflowPolicy::reject);
  EXPECT_EQ(lane.priority, 0);
  EXPECT_EQ(lane.share_max, 1.0);
  EXPECT_EQ(lane.reserved_threads, 0U);
  EXPECT_EQ(lane.concurrency_max, PoolLaneOptions::unlimited);
  const BlockingPoolOptions pool;
  EXPECT_EQ(pool.name, "pool");
  EXPECT_EQ(pool.priority, ThreadPriority::background);
  EXPECT_EQ(pool.stack_bytes, loop::PlatformThreadOptions::stack_bytes_usual);
}

TEST(PoolReport, StartsWithNothing) {
  const PoolReport report;
  EXPECT_EQ(report.size + report.threads + report.running + report.queued, 0U);
  EXPECT_EQ(report.last_change.from + report.last_change.to, 0U);
  EXPECT_EQ(report.last_change.reason, SizeReason::started);
  EXPECT_EQ(report.evidence, SizeEvidence::none);
  EXPECT_EQ(report.blocked_share, 0);
  EXPECT_FALSE(report.blocked_now);
  const PoolLaneReport lane;
  EXPECT_EQ(lane.queued + lane.running, 0U);
  EXPECT_EQ(lane.finished + lane.rejected + lane.waited_for_room + lane.cancelled, 0U);
  EXPECT_EQ(lane.queue_wait.count + lane.run_time.count, 0U);
  EXPECT_EQ(lane.run_time.mean(), Duration(0));
}

TEST(PoolLaneReport, TheBlockedShareIsOfMeasuredRunTime) {
  struct Case {
    Duration run_time, unmeasured, cpu_time;
    double share;
  };
  const std::vector<Case> cases = {{0s, 0s, 0s, 0},    {1s, 1s, 0s, 0},  {10s, 0s, 4s, 0.6},
                                   {10s, 2s, 4s, 0.5}, {10s, 0s, 0s, 1}, {10s, 0s, 11s, 0},
                                   {1ns, 0s, 0s, 1}};
  for (const Case& each : cases) {
    PoolLaneReport lane;
    lane.run_time.total = each.run_time;
    lane.unmeasured_time = each.unmeasured;
    lane.cpu_time = each.cpu_time;
    EXPECT_DOUBLE_EQ(lane.blocked_share(), each.share);
  }
}

TEST(PoolReport, DescribesEachReason) {
  const std::vector<std::pair<SizeReason, std::string_view>> texts = {
      {SizeReason::started, "initial size"},
      {SizeReason::set, "set by the program"},
      {SizeReason::all_blocked, "all threads with work are blocked"},
      {SizeReason::some_blocked, "fewer threads run than there are CPUs"},
      {SizeReason::too_many_running, "more threads run than there are CPUs"},
      {SizeReason::no_gain, "more threads did not increase the throughput"},
      {SizeReason::little_work, "some threads had no work"},
      {SizeReason::no_threads_left, "the platform cannot start more threads"},
      {SizeReason::retry, "retry after threads could not be started"}};
  for (const auto& [reason, text] : texts) EXPECT_EQ(describe(reason), text);
}

/// A platform that records the options of its threads and has the CPUs that a test chooses.
class ThreadsPlatform final : public MemoryPlatform {
 public:
  std::unique_ptr<loop::PlatformThread> make_thread(const loop::PlatformThreadOptions& options,
                                                    loop::ThreadWork& work) override {
    made.push_back(options);
    return MemoryPlatform::make_thread(options, work);
  }
  os::Topology topology() override {
    os::Topology topology = MemoryPlatform::topology();
    topology.cpus_allowed = cpus;
    topology.cpu_quota = quota;
    return topology;
  }
  std::vector<loop::PlatformThreadOptions> made;
  std::size_t cpus = 1;
  std::optional<double> quota;
};

TEST(PoolOnAPlatform, HasAThreadForEachCpuThatItMayUse) {
  struct Case {
    std::size_t cpus;
    std::optional<double> quota;
    std::size_t size;
  };
  const std::vector<Case> cases = {{0, {}, 1},  {1, {}, 1},  {4, {}, 4},  {4, 0.0, 1}, {4, 0.1, 1},
                                   {4, 1.0, 1}, {4, 1.1, 2}, {4, 2.0, 2}, {4, 3.5, 4}, {4, 9.0, 4}};
  for (const Case& each : cases) {
    ThreadsPlatform platform;
    platform.cpus = each.cpus;
    platform.quota = each.quota;
    EXPECT_EQ(BlockingPool(platform).report().size, each.size)
        << each.cpus << " CPUs, quota " << each.quota.value_or(-1);
  }
}

TEST(PoolOnAPlatform, ALimitedShareNeedsASecondThread) {
  ThreadsPlatform platform;
  BlockingPool pool(platform);
  static_cast<void>(pool.add_lane({.share_max = 1.0}));
  EXPECT_EQ(pool.report().size, 1U);
  static_cast<void>(pool.add_lane({.share_max = 0.99}));
  EXPECT_EQ(pool.report().size, 2U);
  EXPECT_EQ(pool.report().last_change.reason, SizeReason::set);
  BlockingPoolOptions options;
  options.size.max = 1;
  BlockingPool small(platform, options);
  static_cast<void>(small.add_lane({.share_max = 0.5}));
  EXPECT_EQ(small.report().size, 1U) << "`max` forbids it";
}

TEST(PoolOnAPlatform, ItsThreadsHaveTheChosenOptions) {
  for (const ThreadPriority priority : {ThreadPriority::background, ThreadPriority::normal}) {
    ThreadsPlatform platform;
    const auto loop = Loop::make(platform, {}).value();
    BlockingPoolOptions options;
    options.name = "slow";
    options.priority = priority;
    options.stack_bytes = 123 * 1024;
    BlockingPool pool(platform, options);
    const auto nothing = [] {};
    const auto work = [&]() -> Task<Result<>> { co_return co_await pool.run(nothing); };
    EXPECT_TRUE(run(*loop, work()));
    ASSERT_EQ(platform.made.size(), 2U);
    const loop::PlatformThreadOptions& worker = platform.made[1];
    EXPECT_EQ(worker.name, "slow");
    EXPECT_EQ(worker.priority, priority);
    EXPECT_EQ(worker.stack_bytes, std::size_t{123} * 1024);
    const loop::PlatformThreadOptions& controller = platform.made[0];
    EXPECT_EQ(controller.name, "slow");
    EXPECT_EQ(controller.priority, ThreadPriority::normal) << "it works while all CPUs are busy";
    EXPECT_LT(controller.stack_bytes, loop::PlatformThreadOptions::stack_bytes_usual);
  }
}

TEST(PoolOnAPlatform, TheSharedPoolHasALaneForFiles) {
  ThreadsPlatform platform;
  platform.cpus = 10;
  const auto loop = Loop::make(platform, {}).value();
  SharedPool& shared = shared_pool(*loop);
  EXPECT_EQ(&shared_pool(*loop), &shared);
  EXPECT_EQ(platform.made.at(0).name, "weir-pool");
  const PoolReport report = shared.report();
  ASSERT_EQ(report.lanes.size(), 2U);
  EXPECT_EQ(report.lanes[0].name, "work");
  EXPECT_EQ(report.lanes[1].name, "files");
}

// --- what a function sees ----------------------------------------------------------------------

struct Job final : TraceContext {
  std::string_view kind() const noexcept override { return "job"; }
  std::string_view id(IdBuffer) const noexcept override { return "7"; }
};

class PoolFunction : public LoopTest {};

TEST_F(PoolFunction, WorksForTheTraceContextOfItsCaller) {
  BlockingPool pool(platform_);
  const Job job;
  const TraceContext* seen = nullptr;
  bool called = false;
  const auto look = [&] {
    seen = loop::CurrentActivity::trace();
    called = true;
  };
  const auto body = [&]() -> Task<> { EXPECT_TRUE(co_await pool.run(look)); };
  CancelSource source;
  source.set_trace(&job);
  run(body(), &source);
  EXPECT_TRUE(called);
  EXPECT_EQ(seen, &job);
  EXPECT_EQ(loop::CurrentActivity::trace(), nullptr);
}

}  // namespace
}  // namespace weir::pool_platform_test
