#include "weir/cores/pool_queue.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace weir {
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

TEST_F(PoolQueueTest, FirstInFirstOutAndTimed) {
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
  queue_.finished(second, now_);
  now_ += 2s;
  queue_.finished(first, now_);
  EXPECT_EQ(lane().run_time.mean(), 6s);
  EXPECT_EQ(lane().run_time.longest, 7s);
  EXPECT_EQ(lane().finished, 2U);
  EXPECT_EQ(queue_.running(), 0U);
}

TEST_F(PoolQueueTest, AFullQueueRejects) {
  queue_.add_lane({.queue_max = 2});
  push();
  push();
  Job third;
  EXPECT_EQ(queue_.push(third, 0, 0, now_).error(), Errc::limit_reached);
  EXPECT_FALSE(third.linked());
  EXPECT_EQ(lane().refused, 1U);
  ASSERT_NE(queue_.take(4, now_), nullptr);
  push();
  EXPECT_EQ(lane().queued, 2U);
}

TEST_F(PoolQueueTest, WhatThreadsAreAboutToTakeDoesNotFillIt) {
  queue_.add_lane({.queue_max = 1});
  queue_.add_lane({.queue_max = 0, .share = 0.5});
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

TEST_F(PoolQueueTest, AFullQueueLetsWaitInOrder) {
  queue_.add_lane({.queue_max = 1, .when_full = WhenFull::wait});
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

TEST_F(PoolQueueTest, AShareIsOfThePresentSizeAndAtLeastOne) {
  queue_.add_lane({.name = "slow", .priority = 1, .share = 0.5});
  queue_.add_lane({.name = "fast"});
  for (int i = 0; i < 4; ++i) push(0);
  Job& fast = push(1);
  EXPECT_NE(queue_.take(1, now_), nullptr);
  EXPECT_EQ(queue_.take(2, now_), &fast) << "half of two is one, which slow has";
  EXPECT_FALSE(queue_.takeable(3));
  EXPECT_TRUE(queue_.takeable(4));
  EXPECT_NE(queue_.take(4, now_), nullptr);
  EXPECT_FALSE(queue_.takeable(5));
  EXPECT_EQ(queue_.take(5, now_), nullptr);
  queue_.finished(*jobs_[0], now_);
  EXPECT_TRUE(queue_.takeable(4));
}

TEST_F(PoolQueueTest, ALaneMayHaveALimitOfItsOwn) {
  queue_.add_lane({.running_max = 2});
  for (int i = 0; i < 3; ++i) push();
  EXPECT_NE(queue_.take(100, now_), nullptr);
  EXPECT_NE(queue_.take(100, now_), nullptr);
  EXPECT_EQ(queue_.take(100, now_), nullptr);
  EXPECT_EQ(queue_.queued(), 1U);
}

TEST_F(PoolQueueTest, QueuedWorkCanBeGivenUp) {
  queue_.add_lane({.queue_max = 3});
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
  queue_.give_up(first);
  EXPECT_EQ(lane(0).cancelled, 4U);
  EXPECT_EQ(lane(0).finished, 0U);
  EXPECT_EQ(queue_.running(), 0U);
}

}  // namespace
}  // namespace weir
