#include "weir/runtime/pool/detail/pool_control.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace weir::pool_control_test {
namespace {

struct FakeThread final : loop::PlatformThread {
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

class PoolSamplerTest : public testing::Test {
 protected:
  void make(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      threads_.push_back(std::make_unique<FakeThread>());
      sampled_.push_back(std::make_unique<SampledThread>());
      sampled_.back()->thread = threads_.back().get();
      sampled_.back()->in_work = true;
    }
  }
  PoolSampler::Estimate sample() {
    std::vector<SampledThread*> threads;
    for (const auto& each : sampled_) threads.push_back(each.get());
    return sampler_.sample(threads);
  }
  int states_read() const {
    int count = 0;
    for (const auto& thread : threads_) count += thread->states_read;
    return count;
  }

  std::vector<std::unique_ptr<FakeThread>> threads_;
  std::vector<std::unique_ptr<SampledThread>> sampled_;
  PoolSampler sampler_;
};

TEST_F(PoolSamplerTest, CountsThreadsThatRunOrWaitForACpu) {
  make(10);
  threads_[0]->used = 5ms;  // runs
  threads_[0]->now = os::ThreadState::running;
  threads_[1]->now = os::ThreadState::running;  // has waited for a CPU since the last sample
  threads_[2]->used = 1ms;                      // has run, and sleeps again
  const auto seen = sample();
  EXPECT_EQ(seen.running, 2);
  EXPECT_EQ(seen.evidence, SizeEvidence::thread_states);
}

TEST_F(PoolSamplerTest, ReadsEachStateOnceOfAtMostSixteenThreads) {
  for (std::size_t count = 1; count <= 16; ++count) {
    threads_.clear();
    sampled_.clear();
    make(count);
    for (int round = 1; round <= 5; ++round) {
      sample();
      for (const auto& thread : threads_) EXPECT_EQ(thread->states_read, round) << count;
    }
  }
}

TEST_F(PoolSamplerTest, ReadsAtMostThirtyTwoStates) {
  make(1000);
  for (std::size_t i = 0; i < 1000; i += 2) {
    threads_[i]->used = 1ms;
    threads_[i]->now = os::ThreadState::running;
  }
  EXPECT_EQ(sample().running, 500);
  EXPECT_EQ(states_read(), 32);
}

TEST_F(PoolSamplerTest, FewRunningAmongManySleepingAreNotMultiplied) {
  make(1000);
  for (int round = 1; round <= 70; ++round) {
    for (const std::size_t i : {100U, 500U, 501U}) {
      threads_[i]->used = round * 5ms;
      threads_[i]->now = os::ThreadState::running;
    }
    EXPECT_EQ(sample().running, 3);
  }
  for (const auto& thread : threads_) EXPECT_GT(thread->states_read, 0) << "each gets a turn";
}

TEST_F(PoolSamplerTest, WithoutStatesALongIdleClockMeansBlocked) {
  make(4);
  for (const auto& thread : threads_) thread->now = os::ThreadState::unknown;
  for (int round = 1; round < 8; ++round) {
    threads_[0]->used = round * 1ms;
    EXPECT_EQ(sample().running, 4) << "other programs may use all CPUs";
  }
  threads_[0]->used = 1s;
  const auto seen = sample();
  EXPECT_EQ(seen.running, 1);
  EXPECT_EQ(seen.evidence, SizeEvidence::cpu_clocks);
}

TEST_F(PoolSamplerTest, OneKnownStateIsEvidence) {
  for (const std::size_t known : {0U, 1U, 3U}) {
    threads_.clear();
    sampled_.clear();
    make(4);
    for (const auto& thread : threads_) thread->now = os::ThreadState::unknown;
    threads_[1]->used = threads_[2]->used = 1ms;
    threads_[known]->now = os::ThreadState::blocked;
    const auto seen = sample();
    EXPECT_EQ(seen.evidence, SizeEvidence::thread_states) << known;
    EXPECT_EQ(seen.running, 3) << known;
  }
}

TEST_F(PoolSamplerTest, UseOfACpuBeginsANewRowOfIdleSamples) {
  make(1);
  threads_[0]->now = os::ThreadState::unknown;
  for (int round = 1; round <= 3; ++round) {
    threads_[0]->used = round * 1ms;
    for (int idle = 0; idle < 8; ++idle) EXPECT_EQ(sample().running, 1) << idle;
    EXPECT_EQ(sample().running, 0) << "eight samples without use";
    EXPECT_EQ(sample().running, 0);
  }
}

TEST_F(PoolSamplerTest, WaitingForThePoolsLockDoesNotCountAsBlocked) {
  make(10);
  for (const std::size_t i : {3U, 4U}) sampled_[i]->in_work = false;
  EXPECT_EQ(sample().running, 2);
}

TEST_F(PoolSamplerTest, AnEmptySampleHasNoEvidence) {
  EXPECT_EQ(sample().running, 0);
  EXPECT_EQ(sample().evidence, SizeEvidence::none);
}

}  // namespace
}  // namespace weir::pool_control_test
