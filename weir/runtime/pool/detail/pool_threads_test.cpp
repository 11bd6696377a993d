// What a pool does about threads that block, end, or cannot be had: step by step.
#include "weir/runtime/pool_crew.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "weir/runtime/test/pool_fixture.hpp"

namespace weir {
namespace {

constexpr auto nothing = [] {};

// Nothing ever waits for a thread here, so the keeper has no other reason to come.
TEST_F(PoolByHand, ThreadsThatEndAreFreed) {
  make({.idle_timeout = 1s});
  for (int round = 0; round < 10; ++round) {
    run_jobs(*pool_, cpus, nothing);
    EXPECT_EQ(pool_->report().threads, cpus);
    pass(2s);
    while (take_steps()) {
    }
    EXPECT_EQ(pool_->report().threads, 1U);
    EXPECT_EQ(host_.threads.size(), 2U) << "one that is kept, and the keeper";
  }
}

TEST_F(PoolByHand, ThreadsThatAFixedSizeDropsAreFreed) {
  make({.fixed = 1});
  for (int round = 0; round < 10; ++round) {
    pool_->resize({.fixed = 16});
    run_jobs(*pool_, 50, nothing);
    EXPECT_EQ(pool_->report().threads, 16U);
    pool_->resize({.fixed = 1});
    while (take_steps()) {
    }
    EXPECT_EQ(pool_->report().threads, 1U);
    EXPECT_EQ(host_.threads.size(), 2U) << "one that is kept, and the keeper";
  }
}

TEST_F(PoolByHand, ALanesOwnLimitDoesNotMakeThePoolGrow) {
  make({});
  const PoolLane few = pool_->add_lane({.name = "few", .running_max = 1});
  int calls = 0;
  const auto block = [&] {
    if (calls++ != 0) return;
    for (int look = 0; look < 20; ++look) {
      pass(5ms);
      keeper().step();
    }
    EXPECT_EQ(pool_->report().size, cpus);
    EXPECT_EQ(pool_->report().queued, 9U);
  };
  run_jobs(few, 10, block);
  EXPECT_EQ(calls, 10);
}

TEST_F(PoolByHand, AQueueThatOnlyALaneLimitsLetsTheSizeFall) {
  make({});
  const PoolLane few = pool_->add_lane({.name = "few", .priority = 1, .running_max = 1});
  int few_calls = 0;
  int calls = 0;
  const auto sleep = [&] {
    if (calls++ != 0) return;
    for (int look = 0; look < 3; ++look) {
      pass(5ms);
      keeper().step();
    }
    EXPECT_GT(pool_->report().size, cpus);
  };
  const auto look_up = [&] {
    if (few_calls++ != 0) return;
    while (take_steps()) {
    }
    EXPECT_EQ(calls, 40) << "all others have been served";
    EXPECT_EQ(pool_->report().queued, 9U);
    EXPECT_EQ(pool_->report().size, cpus);
    EXPECT_EQ(pool_->report().last_change.reason, SizeReason::little_work);
  };
  const auto body = [&](Scope& scope) -> Task<> {
    for (int i = 0; i < 10; ++i) scope.spawn(few.run(look_up));
    for (int i = 0; i < 40; ++i) scope.spawn(pool_->run(sleep));
    co_await finish(scope);
  };
  EXPECT_TRUE(run(*loop_, with_scope(OnFailure::supervise, body)));
}

TEST_F(PoolByHand, ASizeThatBecomesAutomaticGrowsWithoutMoreWork) {
  make({.fixed = 1});
  int calls = 0;
  const auto block = [&] {
    switch (calls++) {
      case 0:
        pool_->resize({.max = 100});
        ASSERT_TRUE(keeper().started);
        keeper().step();
        EXPECT_EQ(pool_->report().threads, cpus);
        worker(1).step();
        worker(1).step();
        break;
      case 1:
        for (int look = 0; look < 3; ++look) {
          pass(5ms);
          keeper().step();
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
  EXPECT_EQ(pool_->report().blocked_now, std::nullopt) << "nothing waits, nobody looks";
}

TEST_F(PoolByHand, AKeeperThatCouldNotBeStartedIsTriedAgain) {
  make({});
  keeper().refuses = true;
  const auto queued = [&] {
    EXPECT_FALSE(keeper().started);
    keeper().refuses = false;
    worker(0).step();
    EXPECT_FALSE(keeper().started) << "not at once";
    pass(100ms);
    worker(1).step();
    EXPECT_TRUE(keeper().started);
  };
  run_jobs(*pool_, 10, nothing, queued);
}

TEST_F(PoolByHand, WithoutAKeeperANewSizeIsStartedByWhoeverSetsIt) {
  make({.fixed = 1});
  keeper().refuses = true;
  const auto queued = [&] {
    EXPECT_EQ(pool_->report().threads, 1U);
    pool_->resize({.fixed = 5});
    EXPECT_EQ(pool_->report().threads, 5U);
  };
  run_jobs(*pool_, 10, nothing, queued);
}

TEST_F(PoolByHand, WaitingForACpuDoesNotCountAsTheCostOfLooking) {
  make({});
  const auto queued = [&] {
    ASSERT_TRUE(keeper().started);
    for (const std::size_t index : {0U, 1U}) worker(index).step();
    host_.look_time = 10ms;  // as where others have the CPU all the time
    keeper().step();
    EXPECT_LE(keeper().until - host_.now(), 5ms);
    host_.look_time = {};
    keeper().look_cost = 1ms;
    keeper().step();
    EXPECT_EQ(keeper().until - host_.now(), 20ms) << "a twentieth of a CPU";
  };
  run_jobs(*pool_, 10, nothing, queued);
}

TEST_F(PoolByHand, EachJobsCpuTimeTellsWhatItWasBlocked) {
  make({.fixed = 1});
  const auto compute_and_sleep = [&] {
    worker(0).used += 3ms;
    pass(10ms);
  };
  for (int round = 0; round < 2; ++round) {
    run_jobs(*pool_, 2, compute_and_sleep);
    worker(0).used += 1s;  // between work: not counted
  }
  const PoolReport report = pool_->report();
  EXPECT_EQ(report.lanes.at(0).run_time.total, 40ms);
  EXPECT_EQ(report.lanes.at(0).cpu_time, 12ms);
  EXPECT_DOUBLE_EQ(report.lanes.at(0).blocked_share(), 0.7);
  EXPECT_DOUBLE_EQ(report.blocked_share, 0.7);
  EXPECT_EQ(report.evidence, SizeEvidence::none);
}

TEST_F(PoolByHand, TheClockIsReadSeldomWhileWorkIsBrief) {
  make({.fixed = 1});
  int calls = 0;
  const auto work = [&] {
    if (calls++ == 0) worker(0).look_cost = 1ns;  // counts the looks from here on
    pass(calls < 100 ? Duration(1us) : Duration(1ms));
  };
  run_jobs(*pool_, 98, work);
  EXPECT_LT(worker(0).used, 40ns) << "sixteen, and then one in sixteen, with two looks for most";
  run_jobs(*pool_, 10, work);
  const PoolReport report = pool_->report();
  EXPECT_LE(report.lanes.at(0).unseen_time, 1ms) << "the first long one, at most";
  EXPECT_GT(report.blocked_share, 0.9);
}

TEST_F(PoolByHand, AThreadThatCannotBeMadeIsARefusal) {
  make({});
  host_.failures = 1;
  const auto body = [](BlockingPool& pool) -> Task<> {
    EXPECT_EQ((co_await pool.run(nothing)).error(), system_error(ENOMEM));
  };
  run(*loop_, body(*pool_));
  EXPECT_EQ(pool_->report().threads + pool_->report().queued, 0U);
  run_jobs(*pool_, 3, nothing);
  EXPECT_EQ(pool_->report().lanes.at(0).finished, 3U);
}

TEST_F(PoolByHand, WithFewerThreadsThanItCanMakeItWorksOn) {
  make({.fixed = 4});
  host_.failures = 3;
  run_jobs(*pool_, 10, nothing);
  EXPECT_EQ(pool_->report().lanes.at(0).finished, 10U);
  EXPECT_EQ(pool_->report().size, 2U);
  EXPECT_EQ(pool_->report().last_change.reason, SizeReason::no_threads_left);
}

TEST_F(PoolByHand, WorkThatWaitsForACpuIsNoReasonToGrowAndWorkThatSleepsIs) {
  for (const bool told : {true, false}) {
    make({});
    int calls = 0;
    const auto look = [&](int times) {
      for (int i = 0; i < times; ++i) {
        pass(5ms);
        keeper().step();
      }
    };
    const auto work = [&] {
      switch (calls++) {
        case 0:
          for (int step = 0; step < 2; ++step) worker(1).step();
          break;
        case 1:
          // Others have the CPUs: with states, that may last; without, as long as either clock
          // moves now and then.
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
}  // namespace weir
