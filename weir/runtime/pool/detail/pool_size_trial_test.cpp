// Tests of how the size of a pool judges its growth, and of its limits. There is one sample in
// every 5 ms, and there are four CPUs.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/runtime/pool/detail/pool_size.hpp"

namespace weir::pool_size_trial_test {
namespace {

constexpr Instant start{1h};
using Sizes = std::vector<std::size_t>;

class PoolSizeTrial : public testing::Test {
 protected:
  /// Passes `count` samples, in each of which `finished` more jobs have ended.
  /// Returns: the size after each sample.
  Sizes samples(int count, double running, std::uint64_t finished) {
    Sizes sizes;
    for (int i = 0; i < count; ++i) {
      now_ += 5ms;
      sample_now(running, finished);
      sizes.push_back(size_.now());
    }
    return sizes;
  }
  void sample_now(double running, std::uint64_t finished) {
    finished_ += finished;
    size_.sample({.at = now_, .active = size_.now(), .running = running, .finished = finished_});
  }
  SizeReason reason() const { return size_.last_change().reason; }

  Instant now_ = start;
  std::uint64_t finished_ = 0;
  PoolSize size_{PoolSizeOptions{}, {.cpus = 4}, now_};
};

// --- growth and its verdict --------------------------------------------------------------------

TEST_F(PoolSizeTrial, WaitsForTheVerdictAfterThreeJobsForEachThread) {
  EXPECT_EQ(samples(5, 1, 3), (Sizes{8, 8, 8, 8, 4})) << "after twelve jobs of four threads";
  EXPECT_EQ(reason(), SizeReason::no_gain);
  EXPECT_EQ(size_.last_change().from, 8U);
  EXPECT_EQ(size_.last_change().at, start + 25ms);
}

TEST_F(PoolSizeTrial, ContinuesAfterTenPeriodsIfWorkIsTooSlowForAVerdict) {
  EXPECT_EQ(samples(11, 1, 1), (Sizes{8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 16}));
}

TEST_F(PoolSizeTrial, ContinuesAfterFourPeriodsIfNoThreadRuns) {
  EXPECT_EQ(samples(9, 0, 1), (Sizes{8, 8, 8, 8, 16, 16, 16, 16, 32}));
}

TEST_F(PoolSizeTrial, ContinuesImmediatelyIfNoWorkCompletes) {
  EXPECT_EQ(samples(4, 1, 0), (Sizes{8, 16, 32, 64}));
}

TEST_F(PoolSizeTrial, ABeginningForgetsTheTrialAndTheLack) {
  EXPECT_EQ(samples(2, 0, 1), (Sizes{8, 8}));
  size_.begin(now_, finished_);
  EXPECT_EQ(samples(1, 0, 1), Sizes{16}) << "it waits for no verdict";
  size_.set({}, now_);
  EXPECT_EQ(samples(2, 3, 0), (Sizes{4, 4}));
  size_.begin(now_, finished_);
  EXPECT_EQ(samples(3, 3, 0), (Sizes{4, 4, 6}));
}

TEST_F(PoolSizeTrial, AChangeBeginsANewObservation) {
  EXPECT_EQ(samples(1, 0, 0), Sizes{8});
  EXPECT_EQ(samples(20, 3.9, 0).back(), 8U) << "a normal lack";
  EXPECT_EQ(samples(2, 20, 0), (Sizes{8, 8})) << "an excess for too short a time";
}

TEST_F(PoolSizeTrial, EachFailedGrowthDoublesThePause) {
  std::vector<Duration> pauses;
  Instant reverted{};
  std::size_t before = size_.now();
  while (pauses.size() < 9) {
    samples(1, 1, 5);
    if (size_.now() < before) reverted = now_;
    if (size_.now() > before && reverted != Instant{}) pauses.push_back(now_ - reverted);
    before = size_.now();
  }
  EXPECT_EQ(pauses,
            (std::vector<Duration>{100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 5s, 5s, 5s}));
}

TEST_F(PoolSizeTrial, AThreadThatIsBlockedEndsThePause) {
  EXPECT_EQ(samples(5, 1, 3).back(), 4U);
  EXPECT_EQ(samples(3, 1, 3), (Sizes{4, 4, 4})) << "a pause of 100 ms";
  EXPECT_EQ(samples(1, 0, 3), Sizes{8});
  EXPECT_EQ(reason(), SizeReason::all_blocked);
}

TEST_F(PoolSizeTrial, DoesNotGrowForAnOldLackWhileAllCpusAreBusy) {
  EXPECT_EQ(samples(5, 1, 3).back(), 4U);
  EXPECT_EQ(samples(19, 1, 3).back(), 4U) << "a pause of 100 ms";
  EXPECT_EQ(samples(1, 4, 3), Sizes{4}) << "no CPU is idle";
  EXPECT_EQ(samples(1, 3, 3), Sizes{6});
}

TEST_F(PoolSizeTrial, ASuccessEndsTheRowOfPauses) {
  EXPECT_EQ(samples(5, 1, 3).back(), 4U);
  EXPECT_EQ(samples(20, 1, 3).back(), 8U) << "after the first pause of 100 ms";
  EXPECT_EQ(samples(2, 1, 30), (Sizes{16, 8})) << "ten times the work, and then no more";
  const Instant reverted = size_.last_change().at;
  while (size_.now() == 8) samples(1, 1, 30);
  EXPECT_EQ(size_.last_change().at - reverted, 100ms);
}

/// Returns true if the growth from `threads_before` under `running` threads is kept after a
/// verdict: `factor` times the work is done then, and `running_then` threads run.
class PoolSizeVerdict : public PoolSizeTrial {
 protected:
  bool keeps(double running, double factor, double running_then) {
    constexpr double jobs = 100;
    const std::size_t before = size_.now();
    while (size_.now() == before) samples(1, running, static_cast<std::uint64_t>(jobs));
    const std::size_t grown = size_.now();
    samples(1, running_then, static_cast<std::uint64_t>(jobs * factor));
    return size_.now() >= grown;
  }
};

TEST_F(PoolSizeVerdict, KeepsAGrowthThatBringsAFifthMoreWork) {
  EXPECT_TRUE(keeps(1, 1.21, 1));
}

TEST_F(PoolSizeVerdict, KeepsAGrowthThatBringsExactlyAFifthMoreWork) {
  EXPECT_TRUE(keeps(1, 1.2, 1));
}

TEST_F(PoolSizeVerdict, RevertsAGrowthThatBringsLessWork) {
  EXPECT_FALSE(keeps(1, 1.19, 1));
}

TEST_F(PoolSizeVerdict, KeepsAGrowthThatKeepsMoreCpusBusy) {
  EXPECT_TRUE(keeps(1, 1, 1.21));
}

TEST_F(PoolSizeVerdict, RevertsAGrowthThatKeepsAsManyCpusBusy) {
  EXPECT_FALSE(keeps(1, 1, 1.19));
}

TEST_F(PoolSizeVerdict, ExpectsNoMoreThanAllCpus) {
  EXPECT_TRUE(keeps(3, 1, 3.25)) << "a fifth of the CPU that was left";
}

TEST_F(PoolSizeVerdict, RevertsAGrowthThatOnlyRunsAfterNoThreadRan) {
  EXPECT_FALSE(keeps(0.4, 1, 4)) << "only more work shows a benefit";
}

TEST_F(PoolSizeVerdict, RevertsAGrowthThatOnlyRunsAfterHalfAThreadRan) {
  EXPECT_FALSE(keeps(0.5, 1, 4));
}

TEST_F(PoolSizeVerdict, MeasuresNoRateWithoutTime) {
  sample_now(1, 100);  // at the start
  EXPECT_EQ(size_.now(), 8U);
  EXPECT_EQ(samples(1, 1, 50).back(), 16U) << "more than nothing";
}

// --- limits ------------------------------------------------------------------------------------

TEST_F(PoolSizeTrial, RecordsItsFirstSize) {
  EXPECT_EQ(size_.last_change().at, start);
  EXPECT_EQ(size_.last_change().from, 0U);
  EXPECT_EQ(size_.last_change().to, 4U);
  EXPECT_TRUE(size_.automatic());
}

TEST_F(PoolSizeTrial, SettingTheSameSizeIsNoChange) {
  size_.set({.min = 2}, now_ + 1s);
  EXPECT_EQ(reason(), SizeReason::started);
  EXPECT_EQ(size_.last_change().at, start);
}

TEST_F(PoolSizeTrial, KeepsAtLeastOneThread) {
  size_.set({.min = 0}, now_);
  EXPECT_EQ(size_.kept(), 1U);
  EXPECT_EQ(size_.options().min, 1U);
  EXPECT_EQ(size_.options().max, 1024U) << "the limit of the platform";
  EXPECT_EQ(PoolSize({}, {.cpus = 1}, now_).now(), 1U);
}

TEST_F(PoolSizeTrial, ARequiredSizeIsPermanent) {
  size_.require(4, now_);
  EXPECT_EQ(reason(), SizeReason::started) << "it has four threads";
  now_ += 1s;
  size_.require(6, now_);
  EXPECT_EQ(size_.now(), 6U);
  EXPECT_EQ(reason(), SizeReason::set);
  EXPECT_EQ(size_.last_change().at, start + 1s);
  size_.require(2, now_);
  EXPECT_EQ(size_.now(), 6U);
  EXPECT_EQ(samples(1, 0, 0), Sizes{12});
  size_.require(7, now_);
  EXPECT_EQ(size_.now(), 12U);
  size_.on_idle(0, now_);
  EXPECT_EQ(size_.now(), 7U);
  size_.set({.max = 5}, now_);
  EXPECT_EQ(size_.now(), 5U) << "unless `max` forbids it";
}

TEST_F(PoolSizeTrial, WithoutAnyThreadItTriesOne) {
  size_.on_thread_limit(0, now_);
  EXPECT_EQ(size_.now(), 1U);
  EXPECT_EQ(samples(9, 0, 0).back(), 1U);
  now_ = start + 1s;
  sample_now(0, 0);
  EXPECT_EQ(size_.now(), 2U) << "after one second";
}

TEST_F(PoolSizeTrial, AThreadLimitAboveTheSizeLimitsTheGrowth) {
  size_.on_thread_limit(10, now_);
  EXPECT_EQ(reason(), SizeReason::started);
  EXPECT_EQ(samples(3, 0, 0), (Sizes{8, 10, 10}));
}

TEST_F(PoolSizeTrial, AThreadLimitDoesNotReduceARequiredSize) {
  size_.on_thread_limit(2, now_);
  size_.require(6, now_);
  EXPECT_EQ(samples(3, 0, 0), (Sizes{6, 6, 6}));
}

TEST_F(PoolSizeTrial, HalfARunningThreadIsNotNone) {
  EXPECT_EQ(samples(1, 0.5, 0), Sizes{8});
  EXPECT_EQ(reason(), SizeReason::some_blocked);
  EXPECT_EQ(samples(1, 0.4, 0), Sizes{16});
  EXPECT_EQ(reason(), SizeReason::all_blocked);
}

TEST_F(PoolSizeTrial, TooManyRunningThreadsDoNotRaiseTheSize) {
  EXPECT_EQ(samples(1, 0, 0), Sizes{8});
  for (int i = 0; i < 9; ++i) {
    now_ += 5ms;
    size_.sample({.at = now_, .active = 40, .running = 20, .finished = 0});
    EXPECT_EQ(size_.now(), 8U) << "threads of a larger size are still active";
  }
}

TEST_F(PoolSizeTrial, ANewSizeForgetsTheThreadLimit) {
  size_.on_thread_limit(2, now_);
  EXPECT_EQ(size_.now(), 2U);
  size_.set({}, now_);
  EXPECT_EQ(samples(2, 0, 0), (Sizes{8, 16}));
}

TEST_F(PoolSizeTrial, ARetryRestoresOnlyAReducedFixedSize) {
  size_.set({.fixed = 5}, now_);
  size_.retry(now_ + 5s);
  EXPECT_EQ(reason(), SizeReason::set);
  size_.on_thread_limit(2, now_);
  size_.retry(now_ + 5s);
  EXPECT_EQ(size_.now(), 5U);
  EXPECT_EQ(size_.last_change().at, now_ + 5s);
}

TEST_F(PoolSizeTrial, AFixedSizeIgnoresSamplesAndIdleThreads) {
  size_.set({.fixed = 5}, now_);
  EXPECT_EQ(samples(5, 0, 0), (Sizes{5, 5, 5, 5, 5}));
  EXPECT_EQ(samples(5, 100, 0), (Sizes{5, 5, 5, 5, 5}));
  size_.on_idle(0, now_);
  EXPECT_EQ(size_.now(), 5U);
}

}  // namespace
}  // namespace weir::pool_size_trial_test
