#include "weir/runtime/pool_watch.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace weir {
namespace {

struct FakeThread final : HostThread {
  Result<> start() override { return {}; }
  void wake() noexcept override {}
  Duration cpu_time() noexcept override { return used; }
  os::ThreadState state() noexcept override {
    ++states_read;
    return now;
  }
  Duration used{};
  os::ThreadState now = os::ThreadState::blocked;
  int states_read = 0;
};

class PoolWatchTest : public testing::Test {
 protected:
  void make(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      threads_.push_back(std::make_unique<FakeThread>());
      watched_.push_back(std::make_unique<WatchedThread>());
      watched_.back()->thread = threads_.back().get();
      watched_.back()->in_work = true;
    }
  }
  PoolWatch::Seen look() {
    std::vector<WatchedThread*> threads;
    for (const auto& each : watched_) threads.push_back(each.get());
    return watch_.look(threads);
  }
  int states_read() const {
    int count = 0;
    for (const auto& thread : threads_) count += thread->states_read;
    return count;
  }

  std::vector<std::unique_ptr<FakeThread>> threads_;
  std::vector<std::unique_ptr<WatchedThread>> watched_;
  PoolWatch watch_;
};

TEST_F(PoolWatchTest, CountsThoseOnACpuAndThoseThatWaitForOne) {
  make(10);
  threads_[0]->used = 5ms;  // runs
  threads_[0]->now = os::ThreadState::running;
  threads_[1]->now = os::ThreadState::running;  // has waited for a CPU since the last look
  threads_[2]->used = 1ms;                      // has run, and sleeps again
  const auto seen = look();
  EXPECT_EQ(seen.running, 2);
  EXPECT_EQ(seen.evidence, SizeEvidence::thread_states);
}

TEST_F(PoolWatchTest, OfManyItReadsThirtyTwoStates) {
  make(1000);
  for (std::size_t i = 0; i < 1000; i += 2) {
    threads_[i]->used = 1ms;
    threads_[i]->now = os::ThreadState::running;
  }
  EXPECT_EQ(look().running, 500);
  EXPECT_EQ(states_read(), 32);
}

TEST_F(PoolWatchTest, FewThatRunAmongManyThatSleepAreNotMultiplied) {
  make(1000);
  for (int round = 1; round <= 70; ++round) {
    for (const std::size_t i : {100U, 500U, 501U}) {
      threads_[i]->used = round * 5ms;
      threads_[i]->now = os::ThreadState::running;
    }
    EXPECT_EQ(look().running, 3);
  }
  for (const auto& thread : threads_) EXPECT_GT(thread->states_read, 0) << "each has its turn";
}

TEST_F(PoolWatchTest, WithoutStatesAClockThatStandsStillLongMeansBlocked) {
  make(4);
  for (const auto& thread : threads_) thread->now = os::ThreadState::unknown;
  for (int round = 1; round < 8; ++round) {
    threads_[0]->used = round * 1ms;
    EXPECT_EQ(look().running, 4) << "others may use all CPUs";
  }
  threads_[0]->used = 1s;
  const auto seen = look();
  EXPECT_EQ(seen.running, 1);
  EXPECT_EQ(seen.evidence, SizeEvidence::cpu_clocks);
}

TEST_F(PoolWatchTest, WaitingForThePoolsOwnLockIsNotBeingBlocked) {
  make(10);
  for (const std::size_t i : {3U, 4U}) watched_[i]->in_work = false;
  EXPECT_EQ(look().running, 2);
}

TEST_F(PoolWatchTest, NothingIsSeenOfNobody) {
  EXPECT_EQ(look().running, 0);
  EXPECT_EQ(look().evidence, SizeEvidence::none);
}

}  // namespace
}  // namespace weir
