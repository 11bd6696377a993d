#include "weir/runtime/pool/detail/pool_queue.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <optional>
#include <vector>

namespace weir::pool_queue_test {
namespace {

struct Job : PoolJob {};

class PoolQueueTest : public testing::Test {
 protected:
  Job& push(std::size_t lane = 0) {
    jobs_.push_back(std::make_unique<Job>());
    EXPECT_TRUE(queue_.push(*jobs_.back(), lane, 0, now_));
    return *jobs_.back();
  }
  PoolLaneReport lane(std::size_t index = 0) const {
    PoolReport report;
    queue_.report(report);
    return report.lanes.at(index);
  }
  std::vector<std::unique_ptr<Job>> jobs_;
  PoolQueue queue_;
  Instant now_{1h};
};

TEST_F(PoolQueueTest, IsFirstInFirstOutAndMeasuresTimes) {
  queue_.add_lane({});
  Job& first = push();
  now_ += 2s;
  Job& second = push();
  EXPECT_EQ(queue_.queued(), 2U);
  now_ += 1s;
  EXPECT_EQ(queue_.take(4, now_), &first);
  EXPECT_EQ(queue_.take(4, now_), &second);
  EXPECT_EQ(queue_.take(4, now_), nullptr);
  EXPECT_EQ(queue_.running(), 2U);
  EXPECT_EQ(lane().queue_wait.longest, 3s);
  EXPECT_EQ(lane().queue_wait.mean(), 2s);
  now_ += 5s;
  queue_.finished(second, now_, 3s);
  now_ += 2s;
  queue_.finished(first, now_, 100s);
  EXPECT_EQ(lane().run_time.mean(), 6s);
  EXPECT_EQ(lane().run_time.longest, 7s);
  EXPECT_EQ(lane().finished, 2U);
  EXPECT_EQ(lane().cpu_time, 10s) << "3 s, and at most the 7 s of the other job's run time";
  EXPECT_DOUBLE_EQ(lane().blocked_share(), 2.0 / 12);
  PoolReport all;
  queue_.report(all);
  EXPECT_DOUBLE_EQ(all.blocked_share, 2.0 / 12);
  EXPECT_EQ(queue_.running(), 0U);
}

TEST_F(PoolQueueTest, ReportsTheSumsOfItsLanes) {
  EXPECT_EQ(queue_.add_lane({.name = "one"}), 0U);
  EXPECT_EQ(queue_.add_lane({.name = "two"}), 1U);
  Job& measured = push(0);
  Job& unmeasured = push(1);
  push(0);
  push(1);
  push(1);
  EXPECT_EQ(queue_.take(2, now_), &measured);
  EXPECT_EQ(queue_.take(2, now_), &unmeasured);
  now_ += 10s;
  queue_.finished(measured, now_, 4s);
  queue_.finished(unmeasured, now_, std::nullopt);
  EXPECT_EQ(queue_.finished_count(), 2U);
  EXPECT_NE(queue_.take(2, now_), nullptr);
  PoolReport report;
  queue_.report(report);
  EXPECT_EQ(report.queued, 2U);
  EXPECT_EQ(report.running, 1U);
  EXPECT_DOUBLE_EQ(report.blocked_share, 0.6) << "of the measured job";
  ASSERT_EQ(report.lanes.size(), 2U);
  EXPECT_EQ(report.lanes[0].name, "one");
  EXPECT_EQ(report.lanes[1].name, "two");
  EXPECT_EQ(report.lanes[0].running, 1U);
  EXPECT_EQ(report.lanes[1].queued, 2U);
  while (queue_.cancel_any() != nullptr) {
  }
}

TEST_F(PoolQueueTest, HasReservedThreadsOnlyForLanesWithWork) {
  queue_.add_lane({});
  push(0);
  EXPECT_EQ(queue_.reserved_threads(), 0U);
  EXPECT_EQ(queue_.reserved_threads_max(), 0U);
  queue_.add_lane({.reserved_threads = 1});
  EXPECT_EQ(queue_.reserved_threads(), 0U);
  push(1);
  EXPECT_EQ(queue_.reserved_threads(), 1U);
  EXPECT_EQ(queue_.reserved_threads_max(), 1U);
  while (queue_.cancel_any() != nullptr) {
  }
}

TEST_F(PoolQueueTest, AFullQueueRejects) {
  queue_.add_lane({.capacity = 2});
  push();
  push();
  Job third;
  EXPECT_EQ(queue_.push(third, 0, 0, now_).error(), Errc::limit_reached);
  EXPECT_FALSE(third.linked());
  EXPECT_EQ(lane().rejected, 1U);
  ASSERT_NE(queue_.take(4, now_), nullptr);
  push();
  EXPECT_EQ(lane().queued, 2U);
}

TEST_F(PoolQueueTest, JobsForFreeThreadsDoNotFillTheQueue) {
  queue_.add_lane({.capacity = 1});
  queue_.add_lane({.capacity = 0, .share_max = 0.5});
  std::vector<Job> jobs(8);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_TRUE(queue_.push(jobs[i], 0, 4, now_)) << i;
  EXPECT_FALSE(queue_.push(jobs[5], 0, 4, now_));
  EXPECT_TRUE(queue_.push(jobs[5], 1, 4, now_));
  EXPECT_TRUE(queue_.push(jobs[6], 1, 4, now_));
  EXPECT_FALSE(queue_.push(jobs[7], 1, 4, now_)) << "its share is two";
  for (int i = 0; i < 4; ++i) EXPECT_NE(queue_.take(4, now_), nullptr);
  EXPECT_FALSE(queue_.push(jobs[7], 0, 4, now_));
  while (queue_.cancel_any() != nullptr) {
  }
}

TEST_F(PoolQueueTest, NoThreadIsFreeWhileMoreRunThanTheSize) {
  queue_.add_lane({.capacity = 1});
  queue_.add_lane({.capacity = 0, .reserved_threads = 2});
  std::vector<Job> running(4);
  std::vector<Job> jobs(5);
  for (Job& each : running) {
    EXPECT_TRUE(queue_.push(each, 0, 4, now_));
    EXPECT_EQ(queue_.take(4, now_), &each);
  }
  EXPECT_TRUE(queue_.push(jobs[0], 0, 2, now_));
  EXPECT_FALSE(queue_.push(jobs[1], 0, 2, now_)) << "the pool has shrunk";
  EXPECT_EQ(queue_.take(2, now_), nullptr);
  EXPECT_TRUE(queue_.push(jobs[2], 1, 2, now_));
  EXPECT_TRUE(queue_.push(jobs[3], 1, 2, now_));
  EXPECT_FALSE(queue_.push(jobs[4], 1, 2, now_)) << "only the reserved threads are free";
  EXPECT_EQ(queue_.take(2, now_), &jobs[2]);
  EXPECT_EQ(queue_.take(2, now_), &jobs[3]);
  EXPECT_EQ(queue_.running_shared(), 4U);
  for (std::size_t i = 0; i < 2; ++i) queue_.finished(running[i], now_, {});
  EXPECT_EQ(queue_.take(2, now_), nullptr) << "two threads still run";
  queue_.finished(running[2], now_, {});
  EXPECT_EQ(queue_.take(2, now_), &jobs[0]);
}

TEST_F(PoolQueueTest, AFullQueueWithWaitPolicyKeepsTheOrder) {
  queue_.add_lane({.capacity = 1, .overflow_policy = OverflowPolicy::wait});
  Job& first = push();
  Job& second = push();
  Job& third = push();
  EXPECT_EQ(lane().waited_for_room, 2U);
  EXPECT_EQ(queue_.take(4, now_), &first);
  EXPECT_EQ(queue_.take(4, now_), &second);
  EXPECT_EQ(queue_.take(4, now_), &third);
}

TEST_F(PoolQueueTest, HigherPrioritiesGoFirstAndEqualOnesByAge) {
  queue_.add_lane({.name = "low", .priority = -1});
  queue_.add_lane({.name = "one"});
  queue_.add_lane({.name = "two"});
  Job& low = push(0);
  Job& first = push(2);
  Job& second = push(1);
  Job& third = push(2);
  for (Job* const expected : {&first, &second, &third, &low}) {
    EXPECT_EQ(queue_.take(9, now_), expected);
  }
}

TEST_F(PoolQueueTest, AShareFollowsTheSizeAndIsAtLeastOne) {
  queue_.add_lane({.name = "slow", .priority = 1, .share_max = 0.5});
  queue_.add_lane({.name = "fast"});
  for (int i = 0; i < 4; ++i) push(0);
  Job& fast = push(1);
  EXPECT_NE(queue_.take(1, now_), nullptr);
  EXPECT_EQ(queue_.take(2, now_), &fast) << "half of two is one, which `slow` uses";
  EXPECT_FALSE(queue_.has_runnable(3));
  EXPECT_TRUE(queue_.has_runnable(4));
  EXPECT_NE(queue_.take(4, now_), nullptr);
  EXPECT_FALSE(queue_.has_runnable(5));
  EXPECT_EQ(queue_.take(5, now_), nullptr);
  queue_.finished(*jobs_[0], now_, {});
  EXPECT_TRUE(queue_.has_runnable(4));
}

TEST_F(PoolQueueTest, ALaneMayLimitItsConcurrency) {
  queue_.add_lane({.concurrency_max = 2});
  for (int i = 0; i < 3; ++i) push();
  EXPECT_NE(queue_.take(100, now_), nullptr);
  EXPECT_NE(queue_.take(100, now_), nullptr);
  EXPECT_EQ(queue_.take(100, now_), nullptr);
  EXPECT_EQ(queue_.queued(), 1U);
}

TEST_F(PoolQueueTest, UnmeasuredWorkCountsAsComputingOnlyIfBrief) {
  queue_.add_lane({});
  for (const Duration took : {10us, 19us, 20us, 50'000us}) {
    Job& job = push();
    EXPECT_EQ(queue_.take(1, now_), &job);
    now_ += took;
    queue_.finished(job, now_, std::nullopt);
  }
  EXPECT_EQ(lane().cpu_time, 29us);
  EXPECT_EQ(lane().unmeasured_time, 50'020us);
  EXPECT_EQ(lane().blocked_share(), 0);
}

TEST_F(PoolQueueTest, AnInvalidShareIsClamped) {
  queue_.add_lane({.name = "less than nothing", .share_max = -1e300});
  queue_.add_lane({.name = "not a number", .share_max = std::numeric_limits<double>::quiet_NaN()});
  queue_.add_lane({.name = "more than all", .share_max = 1e300});
  for (const std::size_t lane : {0U, 0U, 1U, 1U, 2U, 2U, 2U}) push(lane);
  for (const std::size_t expected : {0U, 2U, 4U, 5U, 6U}) {
    EXPECT_EQ(queue_.take(100, now_), jobs_[expected].get());
  }
  EXPECT_EQ(queue_.take(100, now_), nullptr) << "the first two lanes have one thread each";
  while (queue_.cancel_any() != nullptr) {
  }
}

TEST_F(PoolQueueTest, ReservedThreadsServeTheirLaneOnly) {
  queue_.add_lane({.name = "own"});
  queue_.add_lane({.name = "files", .priority = 1, .reserved_threads = 2});
  for (int i = 0; i < 4; ++i) push(0);
  EXPECT_EQ(queue_.reserved_threads(), 0U);
  EXPECT_NE(queue_.take(2, now_), nullptr);
  EXPECT_NE(queue_.take(2, now_), nullptr);
  EXPECT_EQ(queue_.take(2, now_), nullptr);
  Job& first = push(1);
  EXPECT_EQ(queue_.reserved_threads(), 1U);
  Job& second = push(1);
  Job& third = push(1);
  EXPECT_EQ(queue_.reserved_threads(), 2U) << "at most the reserved number";
  EXPECT_EQ(queue_.take(2, now_), &first);
  EXPECT_EQ(queue_.take(2, now_), &second);
  EXPECT_FALSE(queue_.has_runnable(2));
  queue_.finished(first, now_, {});
  EXPECT_EQ(queue_.take(2, now_), &third);
  queue_.finished(*jobs_[0], now_, {});
  Job& fourth = push(1);
  EXPECT_EQ(queue_.take(2, now_), &fourth) << "it has priority for a shared thread";
  EXPECT_EQ(queue_.take(2, now_), nullptr);
  queue_.finished(second, now_, {});
  EXPECT_EQ(queue_.take(2, now_), jobs_[2].get()) << "the remaining files use reserved threads";
  EXPECT_EQ(queue_.take(2, now_), nullptr);
  for (Job* const each : {&third, &fourth}) queue_.discard(*each);
  EXPECT_EQ(queue_.reserved_threads(), 0U);
  EXPECT_EQ(queue_.take(2, now_), nullptr);
  EXPECT_EQ(queue_.cancel_any(), jobs_[3].get());
}

// The same lanes as in the shared pool.
TEST_F(PoolQueueTest, ALaneOfHigherPriorityCanLeaveAThreadToOthers) {
  for (const std::size_t size : {1U, 2U, 8U, 100U}) {
    PoolQueue queue;
    queue.add_lane({.name = "own"});
    queue.add_lane({.name = "files", .priority = 1, .share_max = 0.9, .reserved_threads = 1});
    std::vector<Job> files(size + 2);
    Job own;
    for (Job& each : files) EXPECT_TRUE(queue.push(each, 1, size, now_));
    EXPECT_TRUE(queue.push(own, 0, size, now_));
    std::size_t before = 0;
    while (before < size + 2 && queue.take(size, now_) != &own) ++before;
    EXPECT_GE(before, 1U) << size;
    EXPECT_LE(before, size) << size;
    while (queue.cancel_any() != nullptr) {
    }
  }
}

TEST_F(PoolQueueTest, WorkLimitedByItsLaneIsNoBacklog) {
  queue_.add_lane({.concurrency_max = 1});
  queue_.add_lane({.name = "shared", .share_max = 0.5});
  EXPECT_FALSE(queue_.has_backlog());
  push(0);
  EXPECT_TRUE(queue_.has_backlog());
  Job& second = push(0);
  EXPECT_NE(queue_.take(2, now_), nullptr);
  EXPECT_FALSE(queue_.has_backlog()) << "it has its one thread at any size";
  push(1);
  push(1);
  EXPECT_NE(queue_.take(2, now_), nullptr);
  EXPECT_FALSE(queue_.has_runnable(2));
  EXPECT_TRUE(queue_.has_backlog()) << "a share grows with the size";
  queue_.finished(*jobs_[0], now_, {});
  EXPECT_EQ(queue_.take(2, now_), &second);
  while (queue_.cancel_any() != nullptr) {
  }
}

TEST_F(PoolQueueTest, QueuedWorkCanBeCancelled) {
  queue_.add_lane({.capacity = 3});
  queue_.add_lane({});
  Job& first = push();
  Job& second = push();
  Job& third = push();
  Job& other = push(1);
  queue_.cancel(second);
  EXPECT_FALSE(second.linked());
  push();
  EXPECT_EQ(queue_.take(9, now_), &first);
  EXPECT_EQ(queue_.cancel_any(), &third);
  EXPECT_NE(queue_.cancel_any(), nullptr);
  EXPECT_EQ(queue_.cancel_any(), &other);
  EXPECT_EQ(queue_.cancel_any(), nullptr);
  EXPECT_EQ(lane(0).cancelled, 3U);
  EXPECT_EQ(lane(1).cancelled, 1U);
  EXPECT_EQ(queue_.queued(), 0U);
  EXPECT_EQ(queue_.running(), 1U);
  queue_.discard(first);
  EXPECT_EQ(lane(0).cancelled, 4U);
  EXPECT_EQ(lane(0).finished, 0U);
  EXPECT_EQ(queue_.running(), 0U);
}

}  // namespace
}  // namespace weir::pool_queue_test
