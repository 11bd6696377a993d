#include "weir/runtime/pool/detail/pool_size.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace weir::pool_size_test {
namespace {

constexpr Instant start{1h};

class PoolSizeTest : public testing::Test {
 protected:
  /// Passes a sample, 5 ms after the last one.
  void sample(double running, std::uint64_t finished_since = 0) {
    now_ += 5ms;
    finished_ += finished_since;
    size_.sample({.at = now_, .active = size_.now(), .running = running, .finished = finished_});
  }
  SizeReason reason() const { return size_.last_change().reason; }

  Instant now_ = start;
  std::uint64_t finished_ = 0;
  PoolSize size_{PoolSizeOptions{}, {.cpus = 4}, now_};
};

TEST_F(PoolSizeTest, BeginsWithAThreadForEachCpu) {
  EXPECT_EQ(size_.now(), 4U);
  EXPECT_EQ(reason(), SizeReason::started);
  EXPECT_EQ(PoolSize(PoolSizeOptions{.min = 6}, {.cpus = 4}, now_).now(), 6U);
  EXPECT_EQ(PoolSize(PoolSizeOptions{.max = 3}, {.cpus = 4}, now_).now(), 3U);
  EXPECT_EQ(PoolSize(PoolSizeOptions{.fixed = 9}, {.cpus = 4}, now_).now(), 9U);
  EXPECT_EQ(PoolSize(PoolSizeOptions{.min = 9, .max = 3}, {.cpus = 4}, now_).now(), 9U);
  EXPECT_EQ(PoolSize(PoolSizeOptions{}, {.cpus = 0}, now_).now(), 1U);
}

TEST_F(PoolSizeTest, DoublesWhileNoThreadRuns) {
  for (const std::size_t expected : {8U, 16U, 32U, 64U, 128U, 256U, 512U, 1024U, 1024U}) {
    sample(0);
    EXPECT_EQ(size_.now(), expected);
  }
  EXPECT_EQ(reason(), SizeReason::all_blocked);
  EXPECT_EQ(size_.last_change().from, 512U);
  EXPECT_EQ(size_.last_change().to, 1024U);
  EXPECT_EQ(size_.last_change().at, start + 40ms);
}

TEST_F(PoolSizeTest, ThePlatformLimitsItUnlessTheOptionsDo) {
  PoolSize small({}, {.cpus = 4, .threads_max = 30}, now_);
  PoolSize larger({.max = 50}, {.cpus = 4, .threads_max = 30}, now_);
  for (int i = 0; i < 10; ++i) {
    now_ += 5ms;
    for (PoolSize* const each : {&small, &larger}) {
      each->sample({.at = now_, .active = each->now(), .running = 0, .finished = 0});
    }
  }
  EXPECT_EQ(small.now(), 30U);
  EXPECT_EQ(larger.now(), 50U);
}

TEST_F(PoolSizeTest, GrowsInProportionWhenTooFewThreadsRun) {
  sample(3);
  sample(3);
  EXPECT_EQ(size_.now(), 4U) << "a quarter of the CPUs idle in two samples is too little";
  sample(3);
  EXPECT_EQ(size_.now(), 6U);
  EXPECT_EQ(reason(), SizeReason::some_blocked);
  sample(1);
  EXPECT_EQ(size_.now(), 12U) << "three quarters idle suffice, and growth is at most double";
}

TEST_F(PoolSizeTest, IgnoresFluctuations) {
  for (int i = 0; i < 100; ++i) sample(i % 10 == 0 ? 3 : 4);
  EXPECT_EQ(size_.now(), 4U);
  for (int i = 0; i < 100; ++i) sample(i % 3 == 0 ? 3 : 4);
  EXPECT_GT(size_.now(), 4U) << "a twelfth of the CPUs idle for half a second suffices";
}

TEST_F(PoolSizeTest, StaysWhenOneThreadPerCpuRuns) {
  for (int i = 0; i < 100; ++i) sample(4);
  EXPECT_EQ(size_.now(), 4U);
}

TEST_F(PoolSizeTest, DoesNotGrowUnderForeignLoad) {
  // All threads wait for a CPU, and no work completes.
  for (int i = 0; i < 100; ++i) sample(4, 0);
  EXPECT_EQ(size_.now(), 4U);
  EXPECT_EQ(reason(), SizeReason::started);
}

TEST_F(PoolSizeTest, ShrinksWhenTooManyThreadsRun) {
  for (int i = 0; i < 5; ++i) sample(0);
  ASSERT_EQ(size_.now(), 128U);
  sample(20);
  sample(20);
  EXPECT_EQ(size_.now(), 128U);
  sample(20);
  EXPECT_EQ(size_.now(), 112U);
  EXPECT_EQ(reason(), SizeReason::too_many_running);
  for (int i = 0; i < 100; ++i) sample(12);
  EXPECT_EQ(size_.now(), 112U) << "three for each CPU are harmless";
  sample(110);
  EXPECT_EQ(size_.now(), 56U) << "it shrinks at most to half";
  for (int i = 0; i < 100; ++i) sample(50);
  EXPECT_EQ(size_.now(), 4U) << "one for each CPU is left";
}

TEST_F(PoolSizeTest, RevertsGrowthWithoutBenefit) {
  // One thread holds a lock, the others wait for it: one job per millisecond at any size.
  std::size_t largest = 0;
  for (int i = 0; i < 2000; ++i) {
    sample(1, 5);
    largest = std::max(largest, size_.now());
  }
  EXPECT_LE(largest, 16U);
  EXPECT_EQ(reason() == SizeReason::no_gain ? size_.now() : 4U, 4U);
  EXPECT_LT(now_ - size_.last_change().at, 10s) << "it tries again from time to time";
}

TEST_F(PoolSizeTest, KeepsGrowingWhileItHelps) {
  // Jobs of 4 ms with 1 ms of computing, so 16 threads keep 4 CPUs busy.
  for (int i = 0; i < 100; ++i) {
    const auto threads = static_cast<double>(size_.now());
    sample(std::min(threads / 4, 4.0), static_cast<std::uint64_t>(std::min(threads, 16.0) * 5 / 4));
  }
  EXPECT_EQ(size_.now(), 16U);
}

TEST_F(PoolSizeTest, ShrinksWhenThereIsLittleWork) {
  for (int i = 0; i < 8; ++i) sample(0);
  ASSERT_EQ(size_.now(), 1024U);
  size_.on_idle(700, now_);
  EXPECT_EQ(size_.now(), 1024U);
  size_.on_idle(30, now_);
  EXPECT_EQ(size_.now(), 60U);
  EXPECT_EQ(reason(), SizeReason::little_work);
  size_.on_idle(0, now_);
  EXPECT_EQ(size_.now(), 4U);
}

TEST_F(PoolSizeTest, AThreadLimitHoldsForASecond) {
  for (int i = 0; i < 6; ++i) sample(0);
  ASSERT_EQ(size_.now(), 256U);
  size_.on_thread_limit(100, now_);
  EXPECT_EQ(size_.now(), 100U);
  EXPECT_EQ(reason(), SizeReason::no_threads_left);
  for (int i = 0; i < 100; ++i) sample(0);
  EXPECT_EQ(size_.now(), 100U);
  now_ += 600ms;
  sample(0);
  EXPECT_EQ(size_.now(), 200U);
}

TEST_F(PoolSizeTest, AFixedSizeIsRestoredAfterThatSecond) {
  size_.set({.fixed = 20}, now_);
  size_.on_thread_limit(3, now_);
  EXPECT_EQ(size_.now(), 3U);
  size_.retry(now_ + 999ms);
  EXPECT_EQ(size_.now(), 3U);
  size_.retry(now_ + 1s);
  EXPECT_EQ(size_.now(), 20U);
  EXPECT_EQ(reason(), SizeReason::retry);
  EXPECT_EQ(size_.last_change().from, 3U);
  size_.set({.min = 2, .max = 30}, now_ + 2s);
  size_.on_thread_limit(3, now_ + 2s);
  size_.retry(now_ + 9s);
  EXPECT_EQ(size_.now(), 3U) << "an automatic size grows by samples";
}

TEST_F(PoolSizeTest, CanBeSetAtAnyTime) {
  size_.set({.fixed = 20}, now_);
  EXPECT_EQ(size_.now(), 20U);
  EXPECT_EQ(reason(), SizeReason::set);
  EXPECT_EQ(size_.kept(), 20U);
  for (int i = 0; i < 20; ++i) sample(0);
  size_.on_idle(0, now_);
  EXPECT_EQ(size_.now(), 20U) << "fixed";
  size_.set({.min = 2, .max = 30}, now_);
  EXPECT_EQ(size_.now(), 4U);
  EXPECT_EQ(size_.kept(), 2U);
  for (int i = 0; i < 20; ++i) sample(0);
  EXPECT_EQ(size_.now(), 30U);
}

TEST_F(PoolSizeTest, GrowsFromTheNumberOfActiveThreads) {
  // After shrinking, excess threads continue their present work.
  size_.sample({.at = now_, .active = 50, .running = 0, .finished = 0});
  EXPECT_EQ(size_.now(), 100U);
}

// --- whole runs, in virtual time --------------------------------------------------------------

struct Work {
  double sleep_ms;
  double cpu_ms;
};

/// Returns the time that a pool needs for `jobs`, which all arrive at the same time, on `cpus`
/// CPUs.
double makespan_ms(const std::vector<Work>& jobs, const PoolSizeOptions& options,
                   std::size_t cpus) {
  constexpr double tick_ms = 0.25;
  PoolSize size(options, {.cpus = cpus}, start);
  std::vector<Work> active(jobs.size());
  std::size_t count = 0;  // number of active jobs, which are at the front
  std::size_t running = 0;
  std::size_t next = 0;
  for (int tick = 0;; ++tick) {
    const Instant now = start + tick * 250us;
    if (tick == 0) size.begin(now, 0);
    if (tick > 0 && tick % 20 == 0 && next < jobs.size()) {
      size.sample({.at = now,
                   .active = count,
                   .running = static_cast<double>(running),
                   .finished = next - count});
    }
    const double done_ms = tick_ms * std::min(1.0, static_cast<double>(cpus) /
                                                       std::max(static_cast<double>(running), 1.0));
    // One pass over plain memory, because unoptimised sanitized code must do many runs of this.
    Work* const first = active.data();
    Work* kept = first;
    running = 0;
    for (const Work* work = first; work != first + count; ++work) {
      double sleep_ms = work->sleep_ms;
      double cpu_ms = work->cpu_ms;
      if (sleep_ms <= 0) {
        cpu_ms -= done_ms;
      } else if ((sleep_ms -= tick_ms) <= 0) {
        cpu_ms += sleep_ms;  // the rest of the tick
      }
      if (sleep_ms <= 0) {
        if (cpu_ms <= 0) continue;
        ++running;
      }
      kept->sleep_ms = sleep_ms;
      kept->cpu_ms = cpu_ms;
      ++kept;
    }
    count = static_cast<std::size_t>(kept - first);
    for (; count < size.now() && next < jobs.size(); ++count, ++next) {
      active[count] = jobs[next];
      if (jobs[next].sleep_ms <= 0) ++running;
    }
    if (count == 0) return tick * tick_ms;
  }
}

double best_fixed_ms(const std::vector<Work>& jobs, std::size_t cpus) {
  double best = 1e9;
  for (std::size_t size = 2; size <= 1024; size *= 2) {
    best = std::min(best, makespan_ms(jobs, {.fixed = size}, cpus));
  }
  return best;
}

std::vector<Work> many(std::size_t count, const std::function<Work(std::size_t)>& make) {
  std::vector<Work> jobs;
  for (std::size_t i = 0; i < count; ++i) jobs.push_back(make(i));
  return jobs;
}

TEST(PoolSizeRun, IsCloseToTheBestFixedSize) {
  for (const std::size_t cpus : {2U, 8U, 32U}) {
    for (const std::size_t count : {160U, 768U, 2560U}) {
      // Jobs do not all sleep and wake together.
      const auto about = [](double mean, std::size_t i) {
        return mean * (0.5 + std::fmod(static_cast<double>(i) * 0.618034, 1));
      };
      const auto computing = many(count, [](std::size_t) { return Work{0, 8}; });
      const double best = best_fixed_ms(computing, cpus);
      EXPECT_LE(makespan_ms(computing, {}, cpus), 1.05 * best) << cpus << " CPUs, " << count;
      for (const double sleep_ms : {1.0, 5.0, 20.0, 50.0, 100.0}) {
        const auto sleeping =
            many(count, [&](std::size_t i) { return Work{about(sleep_ms, i), 0.01}; });
        EXPECT_LE(makespan_ms(sleeping, {}, cpus), 1.1 * best_fixed_ms(sleeping, cpus) + 200)
            << cpus << " CPUs, " << count << " of " << sleep_ms << " ms";
        const auto mix = many(count, [&](std::size_t i) {
          return i % 2 == 0 ? Work{about(sleep_ms, i), 0.01} : Work{0, about(8, i)};
        });
        // The last sleeping job may be taken when the last computation is.
        EXPECT_LE(makespan_ms(mix, {}, cpus),
                  1.1 * best_fixed_ms(mix, cpus) + std::max(200.0, 3 * sleep_ms))
            << cpus << " CPUs, a mix of " << count << " of " << sleep_ms << " ms";
      }
    }
  }
}

TEST(PoolSizeRun, AMixOfSleepsAndComputationsKeepsTheCpusBusy) {
  // The same mix as in examples/pool_lab.cpp, case 3.
  const auto mix =
      many(750, [](std::size_t i) { return i % 2 == 0 ? Work{0, 5.3} : Work{50, 0.02}; });
  EXPECT_LE(makespan_ms(mix, {}, 2), 0.95 * best_fixed_ms(mix, 2) + 200);
}

TEST(PoolSizeRun, SlowJobsAmongQuickOnesDoNotDelayGrowth) {
  const auto mix = many(2000, [](std::size_t i) { return Work{i % 2 == 0 ? 100.0 : 1.0, 0.01}; });
  EXPECT_LE(makespan_ms(mix, {}, 2), 1.1 * best_fixed_ms(mix, 2) + 200);
}

}  // namespace
}  // namespace weir::pool_size_test
