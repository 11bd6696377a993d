// Step-by-step tests of a pool whose threads block, end, or cannot be created.
#include "weir/runtime/pool/detail/pool_threads.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "weir/runtime/test/pool_fixture.hpp"

namespace weir {
namespace {

constexpr auto nothing = [] {};

// No work waits for a thread here, so the controller has no other reason to step.
TEST_F(ManualPoolTest, EndedThreadsAreFreed) {
  make({.idle_timeout = 1s});
  for (int round = 0; round < 10; ++round) {
    run_jobs(*pool_, cpus, nothing);
    EXPECT_EQ(pool_->report().threads, cpus);
    pass(2s);
    while (take_steps()) {
    }
    EXPECT_EQ(pool_->report().threads, 1U);
    EXPECT_EQ(platform_.threads.size(), 2U) << "one that is kept, and the controller";
  }
}

TEST_F(ManualPoolTest, ThreadsDroppedByAFixedSizeAreFreed) {
  make({.fixed = 1});
  for (int round = 0; round < 10; ++round) {
    pool_->resize({.fixed = 16});
    run_jobs(*pool_, 50, nothing);
    EXPECT_EQ(pool_->report().threads, 16U);
    pool_->resize({.fixed = 1});
    while (take_steps()) {
    }
    EXPECT_EQ(pool_->report().threads, 1U);
    EXPECT_EQ(platform_.threads.size(), 2U) << "one that is kept, and the controller";
  }
}

TEST_F(ManualPoolTest, ALaneLimitDoesNotMakeThePoolGrow) {
  make({});
  const PoolLane few = pool_->add_lane({.name = "few", .concurrency_max = 1});
  int calls = 0;
  const auto block = [&] {
    if (calls++ != 0) return;
    for (int look = 0; look < 20; ++look) {
      pass(5ms);
      controller().step();
    }
    EXPECT_EQ(pool_->report().size, cpus);
    EXPECT_EQ(pool_->report().queued, 9U);
  };
  run_jobs(few, 10, block);
  EXPECT_EQ(calls, 10);
}

TEST_F(ManualPoolTest, AQueueLimitedByItsLaneLetsTheSizeFall) {
  make({});
  const PoolLane few = pool_->add_lane({.name = "few", .priority = 1, .concurrency_max = 1});
  int few_calls = 0;
  int calls = 0;
  const auto sleep = [&] {
    if (calls++ != 0) return;
    for (int look = 0; look < 3; ++look) {
      pass(5ms);
      controller().step();
    }
    EXPECT_GT(pool_->report().size, cpus);
  };
  const auto look_up = [&] {
    if (few_calls++ != 0) return;
    while (take_steps()) {
    }
    EXPECT_EQ(calls, 40) << "all other jobs have run";
    EXPECT_EQ(pool_->report().queued, 9U);
    EXPECT_EQ(pool_->report().size, cpus);
    EXPECT_EQ(pool_->report().last_change.reason, SizeReason::little_work);
  };
  const auto body = [&](Scope& scope) -> Task<> {
    for (int i = 0; i < 10; ++i) scope.spawn(few.run(look_up));
    for (int i = 0; i < 40; ++i) scope.spawn(pool_->run(sleep));
    co_await finish(scope);
  };
  EXPECT_TRUE(run(*loop_, with_scope(OnFailure::isolate, body)));
}

TEST_F(ManualPoolTest, AnAutomaticSizeSetLaterGrowsWithoutMoreWork) {
  make({.fixed = 1});
  int calls = 0;
  const auto block = [&] {
    switch (calls++) {
      case 0:
        pool_->resize({.max = 100});
        ASSERT_TRUE(controller().started);
        controller().step();
        EXPECT_EQ(pool_->report().threads, cpus);
        worker(1).step();
        worker(1).step();
        break;
      case 1:
        for (int look = 0; look < 3; ++look) {
          pass(5ms);
          controller().step();
        }
        EXPECT_GT(pool_->report().size, cpus);
        EXPECT_EQ(pool_->report().last_change.reason, SizeReason::all_blocked);
        EXPECT_EQ(pool_->report().blocked_now, 1.0);
        break;
      default:
        break;
    }
  };
  run_jobs(*pool_, 10, block);
  EXPECT_EQ(calls, 10);
  pass(5ms);
  while (take_steps()) {
  }
  EXPECT_EQ(pool_->report().blocked_now, std::nullopt) << "no work waits, so no samples are taken";
}

TEST_F(ManualPoolTest, StartingTheControllerIsRetried) {
  make({});
  controller().refuses = true;
  const auto queued = [&] {
    EXPECT_FALSE(controller().started);
    controller().refuses = false;
    worker(0).step();
    EXPECT_FALSE(controller().started) << "not before the retry delay";
    pass(100ms);
    worker(1).step();
    EXPECT_TRUE(controller().started);
  };
  run_jobs(*pool_, 10, nothing, queued);
}

TEST_F(ManualPoolTest, WithoutAControllerResizeStartsTheThreads) {
  make({.fixed = 1});
  controller().refuses = true;
  const auto queued = [&] {
    EXPECT_EQ(pool_->report().threads, 1U);
    pool_->resize({.fixed = 5});
    EXPECT_EQ(pool_->report().threads, 5U);
  };
  run_jobs(*pool_, 10, nothing, queued);
}

TEST_F(ManualPoolTest, WaitingForACpuDoesNotCountAsSamplingCost) {
  make({});
  const auto queued = [&] {
    ASSERT_TRUE(controller().started);
    for (const std::size_t index : {0U, 1U}) worker(index).step();
    platform_.clock_read_time = 10ms;  // as if other programs used the CPU
    controller().step();
    EXPECT_LE(controller().until - platform_.now(), 5ms);
    platform_.clock_read_time = {};
    controller().clock_read_cost = 1ms;
    controller().step();
    EXPECT_EQ(controller().until - platform_.now(), 20ms) << "a twentieth of a CPU";
  };
  run_jobs(*pool_, 10, nothing, queued);
}

TEST_F(ManualPoolTest, EachJobsCpuTimeGivesItsBlockedShare) {
  make({.fixed = 1});
  const auto compute_and_sleep = [&] {
    worker(0).used += 3ms;
    pass(10ms);
  };
  for (int round = 0; round < 2; ++round) {
    run_jobs(*pool_, 2, compute_and_sleep);
    worker(0).used += 1s;  // between jobs: not counted
  }
  const PoolReport report = pool_->report();
  EXPECT_EQ(report.lanes.at(0).run_time.total, 40ms);
  EXPECT_EQ(report.lanes.at(0).cpu_time, 12ms);
  EXPECT_DOUBLE_EQ(report.lanes.at(0).blocked_share(), 0.7);
  EXPECT_DOUBLE_EQ(report.blocked_share, 0.7);
  EXPECT_EQ(report.evidence, SizeEvidence::none);
}

TEST_F(ManualPoolTest, TheCpuClockIsReadRarelyForBriefJobs) {
  make({.fixed = 1});
  int calls = 0;
  const auto work = [&] {
    if (calls++ == 0) worker(0).clock_read_cost = 1ns;  // counts the readings from here on
    pass(calls < 100 ? Duration(1us) : Duration(1ms));
  };
  run_jobs(*pool_, 98, work);
  EXPECT_LT(worker(0).used, 40ns) << "sixteen jobs, then one in sixteen, mostly two readings each";
  run_jobs(*pool_, 10, work);
  const PoolReport report = pool_->report();
  EXPECT_LE(report.lanes.at(0).unmeasured_time, 1ms) << "at most the first long job";
  EXPECT_GT(report.blocked_share, 0.9);
}

TEST_F(ManualPoolTest, AFailedFirstThreadRejectsTheWork) {
  make({});
  platform_.failures = 1;
  const auto body = [](BlockingPool& pool) -> Task<> {
    EXPECT_EQ((co_await pool.run(nothing)).error(), system_error(ENOMEM));
  };
  run(*loop_, body(*pool_));
  EXPECT_EQ(pool_->report().threads + pool_->report().queued, 0U);
  run_jobs(*pool_, 3, nothing);
  EXPECT_EQ(pool_->report().lanes.at(0).finished, 3U);
}

TEST_F(ManualPoolTest, WorksWithFewerThreadsThanItsSize) {
  make({.fixed = 4});
  platform_.failures = 3;
  run_jobs(*pool_, 10, nothing);
  EXPECT_EQ(pool_->report().lanes.at(0).finished, 10U);
  EXPECT_EQ(pool_->report().size, 2U);
  EXPECT_EQ(pool_->report().last_change.reason, SizeReason::no_threads_left);
}

TEST_F(ManualPoolTest, GrowsForSleepingWorkButNotForWorkThatWaitsForACpu) {
  for (const bool told : {true, false}) {
    make({});
    int calls = 0;
    const auto look = [&](int times) {
      for (int i = 0; i < times; ++i) {
        pass(5ms);
        controller().step();
      }
    };
    const auto work = [&] {
      switch (calls++) {
        case 0:
          for (int step = 0; step < 2; ++step) worker(1).step();
          break;
        case 1:
          // Other programs use the CPUs. With states, that may last for any time; without states,
          // as long as either clock moves sometimes.
          for (const std::size_t index : {0U, 1U}) {
            worker(index).now = told ? os::ThreadState::running : os::ThreadState::unknown;
          }
          for (int i = 0; i < 20; ++i) {
            look(7);
            if (!told) {
              for (const std::size_t index : {0U, 1U}) worker(index).used += 1us;
            }
          }
          EXPECT_EQ(pool_->report().size, cpus);
          if (told) {
            for (const std::size_t index : {0U, 1U}) worker(index).now = os::ThreadState::blocked;
          }
          look(20);
          EXPECT_GT(pool_->report().size, cpus);
          EXPECT_EQ(pool_->report().evidence,
                    told ? SizeEvidence::thread_states : SizeEvidence::cpu_clocks);
          break;
        default:
          break;
      }
    };
    run_jobs(*pool_, 10, work);
    EXPECT_EQ(calls, 10);
    pool_.reset();
  }
}

}  // namespace

namespace {

TEST(InFlightCalls, AreCountedUntilTheyEnd) {
  std::mutex mutex;
  InFlightCalls calls(mutex);
  EXPECT_TRUE(calls.none());
  calls.begin();
  calls.begin();
  calls.end();
  EXPECT_FALSE(calls.none());
  calls.end();
  EXPECT_TRUE(calls.none());
  calls.wait_until_none();
}

// For the sanitizers: a call's objects exist until it has ended, and end() does not touch a
// destroyed object.
TEST(InFlightCalls, NothingIsFreedBeforeTheLastCallHasEnded) {
  constexpr int callers = 3;
  for (int round = 0; round < 200; ++round) {
    std::mutex mutex;
    auto calls = std::make_optional<InFlightCalls>(mutex);
    auto used = std::make_unique<std::atomic<int>>(0);
    for (int i = 0; i < callers; ++i) calls->begin();
    std::vector<std::thread> threads;
    for (int i = 0; i < callers; ++i) {
      threads.emplace_back([&calls, counter = used.get(), pause = round % 3] {
        for (int turn = 0; turn < pause; ++turn) std::this_thread::yield();
        ++*counter;
        calls->end();
      });
    }
    calls->wait_until_none();
    EXPECT_EQ(*used, callers);
    used.reset();
    calls.reset();
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace weir
