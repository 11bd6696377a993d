// Step-by-step tests of a pool whose threads block, end, or cannot be created.
#include "weir/runtime/pool/detail/pool_threads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "weir/runtime/test/lock_probe.hpp"
#include "weir/runtime/test/pool_fixture.hpp"

namespace weir::pool_threads_test {
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

TEST_F(ManualPoolTest, AnEndedThreadIsAwaitedWithoutTheLock) {
  make({.idle_timeout = 1s});
  run_jobs(*pool_, cpus, nothing);
  pass(1s);
  worker(0).step();
  ASSERT_TRUE(worker(0).ended);
  EXPECT_EQ(pool_->report().threads, cpus - 1) << "an ended thread does not count";
  std::size_t left = 0;
  worker(0).before_end = [&] { left = pool_->report().threads; };
  controller().step();
  EXPECT_EQ(left, 1U);
  EXPECT_EQ(platform_.threads.size(), 2U);
}

TEST_F(ManualPoolTest, NoThreadIsFreedWhileAnotherThreadIsWoken) {
  make({.idle_timeout = 1s});
  run_jobs(*pool_, cpus, nothing);
  pass(1s);
  worker(0).step();
  ASSERT_TRUE(worker(0).ended);
  bool freed = false;
  worker(0).before_end = [&freed] { freed = true; };
  worker(1).on_wake = [&] {
    controller().step();
    EXPECT_FALSE(freed) << "the woken thread could be the freed one";
    EXPECT_EQ(controller().until - platform_.now(), 1ms);
  };
  run_jobs(*pool_, 1, nothing);
  pass(1ms);
  while (take_steps()) {
  }
  EXPECT_TRUE(freed);
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
  platform_.refuses = true;
  make({});
  platform_.refuses = false;
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
  platform_.refuses = true;
  make({.fixed = 1});
  platform_.refuses = false;
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

TEST_F(ManualPoolTest, AMeasurementCoversOneJobOnly) {
  make({.fixed = 1});
  int calls = 0;
  const auto work = [&] {
    const int index = calls++;
    if (index < 32) {
      pass(1us);
      if (index > 16) worker(0).used += 1s;  // these are not measured
    } else {
      pass(1ms);
    }
  };
  run_jobs(*pool_, 33, work);
  const PoolLaneReport lane = pool_->report().lanes.at(0);
  EXPECT_EQ(lane.run_time.total, 1032us);
  EXPECT_EQ(lane.cpu_time, 15us) << "of the brief jobs without a measurement";
  EXPECT_EQ(lane.unmeasured_time, Duration(0));
}

TEST_F(ManualPoolTest, AFailedFirstThreadRejectsTheWork) {
  make({});
  platform_.failures = 1;
  const auto ask = [](BlockingPool& pool) -> Task<> {
    EXPECT_EQ((co_await pool.run(nothing)).error(), system_error(ENOMEM));
  };
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(ask(*pool_));
    co_await finish(scope);
  };
  EXPECT_TRUE(run(*loop_, with_scope(body)));
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

TEST_F(ManualPoolTest, AFailedThreadLimitsTheSizeToTheLivingThreads) {
  make({.idle_timeout = 1s});
  run_jobs(*pool_, cpus, nothing);
  pass(1s);
  worker(0).step();
  ASSERT_TRUE(worker(0).ended);
  platform_.failures = 1;
  run_jobs(*pool_, 2, nothing, [&] {
    EXPECT_EQ(pool_->report().size, 1U);
    EXPECT_EQ(pool_->report().last_change.reason, SizeReason::no_threads_left);
  });
  EXPECT_EQ(pool_->report().lanes.at(0).finished, cpus + 2) << "the one thread does all work";
}

TEST_F(ManualPoolTest, ExcessThreadsEndAfterTheirPresentWork) {
  make({.fixed = 4});
  const auto body = [&](Scope& scope) -> Task<> {
    for (int i = 0; i < 12; ++i) scope.spawn(pool_->run(nothing));
    start_threads();
    for (std::size_t index = 0; index < 4; ++index) worker(index).step();
    EXPECT_EQ(pool_->report().running, 4U);
    pool_->resize({.fixed = 1});
    EXPECT_EQ(pool_->report().running, 4U);
    for (std::size_t index = 0; index < 4; ++index) worker(index).step();
    EXPECT_EQ(pool_->report().running, 1U);
    EXPECT_EQ(pool_->report().queued, 7U);
    co_await finish(scope);
  };
  EXPECT_TRUE(run(*loop_, with_scope(OnFailure::isolate, body)));
  EXPECT_EQ(pool_->report().threads, 1U);
  EXPECT_EQ(pool_->report().lanes.at(0).finished, 12U);
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

// Samples decide about the size, so a fixed size needs none.
TEST_F(ManualPoolTest, QueuedWorkDoesNotWakeTheControllerOfAFixedSize) {
  make({.fixed = 1});
  run_jobs(*pool_, 1, nothing);
  controller().on_wake = [] { ADD_FAILURE() << "woken"; };
  run_jobs(*pool_, 3, nothing);
}

// --- threads that are started, and jobs that end early -----------------------------------------

TEST_F(ManualPoolTest, NoThreadStartsForWorkThatItsLaneHoldsBack) {
  make({.fixed = 4});
  const PoolLane one = pool_->add_lane({.name = "one", .concurrency_max = 1});
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(one.run(nothing));
    start_threads();
    worker(0).step();
    for (int i = 0; i < 4; ++i) scope.spawn(one.run(nothing));
    co_await finish(scope);
  };
  EXPECT_TRUE(run(*loop_, with_scope(OnFailure::isolate, body)));
  EXPECT_EQ(pool_->report().threads, 1U);
  EXPECT_EQ(pool_->report().lanes.at(1).finished, 5U);
}

TEST_F(ManualPoolTest, AnIdleThreadIsUsedAgain) {
  make({.fixed = 4});
  for (int round = 0; round < 3; ++round) run_jobs(*pool_, 1, nothing);
  EXPECT_EQ(pool_->report().threads, 1U);
}

TEST_F(ManualPoolTest, AllThreadsGetWorkAfterAResizeThatWakesAnIdleThread) {
  make({.fixed = 2});
  run_jobs(*pool_, 2, nothing);
  ASSERT_EQ(pool_->report().threads, 2U);
  int calls = 0;
  std::size_t most_running = 0;
  const auto body = [&](Scope& scope) -> Task<> {
    // While a call blocks, the next one is queued and the other threads run.
    const std::function<void()> work = [&] {
      if (++calls < 3) scope.spawn(pool_->run(work));
      most_running = std::max(most_running, pool_->report().running);
      while (take_steps()) {
      }
    };
    scope.spawn(pool_->run(work));
    ManualThread& woken = worker(0).called ? worker(0) : worker(1);
    ManualThread& idle = worker(0).called ? worker(1) : worker(0);
    pool_->resize({.fixed = 3});
    EXPECT_TRUE(idle.called) << "though the work is for the other thread";
    idle.step();
    woken.step();
    EXPECT_EQ(pool_->report().running, 1U);
    co_await finish(scope);
  };
  EXPECT_TRUE(run(*loop_, with_scope(OnFailure::isolate, body)));
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(most_running, 3U) << "no call waits for another one's thread";
}

TEST_F(ManualPoolTest, ReservedThreadsAreStartedAndKeptBeyondAFixedSize) {
  make({.fixed = 1});
  const PoolLane files = pool_->add_lane({.name = "files", .reserved_threads = 1});
  const auto body = [&](Scope& scope) -> Task<> {
    for (int i = 0; i < 3; ++i) scope.spawn(pool_->run(nothing));
    start_threads();
    EXPECT_EQ(pool_->report().threads, 1U);
    for (int i = 0; i < 3; ++i) scope.spawn(files.run(nothing));
    start_threads();
    EXPECT_EQ(pool_->report().threads, 2U);
    EXPECT_EQ(pool_->report().size, 1U) << "they are not included";
    worker(0).step();
    worker(1).step();
    EXPECT_EQ(pool_->report().running, 2U);
    co_await finish(scope);
  };
  EXPECT_TRUE(run(*loop_, with_scope(OnFailure::isolate, body)));
  pass(1h);
  while (take_steps()) {
  }
  EXPECT_EQ(pool_->report().threads, 2U);
}

TEST_F(ManualPoolTest, AReservedThreadIsAvailableWhileExcessThreadsWork) {
  make({.fixed = 4});
  const PoolLane files = pool_->add_lane({.name = "files", .reserved_threads = 1});
  const auto body = [&](Scope& scope) -> Task<> {
    for (int i = 0; i < 4; ++i) scope.spawn(pool_->run(nothing));
    start_threads();
    for (std::size_t index = 0; index < 4; ++index) worker(index).step();
    pool_->resize({.fixed = 1});
    scope.spawn(files.run(nothing));
    start_threads();
    EXPECT_EQ(pool_->report().threads, 5U);
    platform_.threads.back()->step();
    EXPECT_EQ(pool_->report().running, 5U);
    co_await finish(scope);
  };
  EXPECT_TRUE(run(*loop_, with_scope(OnFailure::isolate, body)));
}

TEST_F(ManualPoolTest, ReservedThreadsOfAnAutomaticSizeEndWithoutWork) {
  make({.idle_timeout = 1s});
  const PoolLane files = pool_->add_lane({.name = "files", .reserved_threads = 2});
  run_jobs(files, 4, nothing);
  EXPECT_GT(pool_->report().threads, 1U);
  pass(999ms);
  while (take_steps()) {
  }
  EXPECT_GT(pool_->report().threads, 1U);
  pass(1ms);
  while (take_steps()) {
  }
  EXPECT_EQ(pool_->report().threads, 1U);
}

TEST_F(ManualPoolTest, ResizeWithoutWorkStartsNoThread) {
  make({});
  pool_->resize({.fixed = 5});
  pool_->resize({});
  EXPECT_FALSE(controller().called);
  EXPECT_EQ(pool_->report().threads, 0U);
}

TEST_F(ManualPoolTest, TakenWorkIsCancelledWithItsPool) {
  make({.fixed = 1});
  bool called = false;
  Result<> outcome;
  const auto work = [&called] { called = true; };
  const auto ask = [&]() -> Task<> { outcome = co_await pool_->run(work); };
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(ask());
    start_threads();
    worker(0).step();
    EXPECT_EQ(pool_->report().running, 1U);
    pool_.reset();
    co_return;
  };
  EXPECT_TRUE(run(*loop_, with_scope(body)));
  EXPECT_EQ(outcome.error(), Errc::cancelled);
  EXPECT_FALSE(called);
}

TEST_F(ManualPoolTest, TheDestructorAwaitsACallThatHasBegun) {
  make({.fixed = 1});
  int called = 0;
  Result<> outcome = fail(Errc::conflict);
  const auto work = [&called] { ++called; };
  const auto ask = [&]() -> Task<> { outcome = co_await pool_->run(work); };
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(ask());
    start_threads();
    ManualThread& thread = worker(0);
    thread.step();
    thread.before_end = [&thread] { thread.step(); };
    pool_.reset();
    co_return;
  };
  EXPECT_TRUE(run(*loop_, with_scope(body)));
  EXPECT_TRUE(outcome);
  EXPECT_EQ(called, 1);
}

/// Calls of a pool that record if they were asked to stop.
class ManualPoolStopTest : public ManualPoolTest {
 protected:
  static constexpr std::size_t calls = 3;
  /// Runs three calls, of which the second takes no token. `meanwhile(scope)` runs when each has
  /// a thread and none has been called.
  template <class Meanwhile>
  void run_calls(Meanwhile meanwhile) {
    make({.fixed = calls});
    const auto body = [&](Scope& scope) -> Task<> {
      for (std::size_t i = 0; i < calls; ++i) scope.spawn(ask(i));
      start_threads();
      for (std::size_t i = 0; i < calls; ++i) worker(i).step();
      EXPECT_EQ(pool_->report().running, calls);
      meanwhile(scope);
      co_await finish(scope);
    };
    EXPECT_TRUE(run(*loop_, with_scope(OnFailure::isolate, body)));
    EXPECT_EQ(called_, static_cast<int>(calls)) << "running calls are awaited";
  }
  Task<> ask(std::size_t index) {
    const auto look = [this](std::stop_token stop, std::size_t at) {
      ++called_;
      stopped_[at] = stop.stop_requested();
    };
    const auto blind = [this] { ++called_; };
    Context context = co_await this_context();
    context.cancel = &sources_[index];
    Result<> done;
    if (index == 1) {
      auto call = in_context(context, pool_->run(blind));
      done = co_await std::move(call);
    } else {
      auto call = in_context(context, pool_->run(look, index));
      done = co_await std::move(call);
    }
    EXPECT_TRUE(done);
  }
  using Stopped = std::array<bool, calls>;
  std::array<CancelSource, calls> sources_;
  Stopped stopped_{};
  int called_ = 0;
};

TEST_F(ManualPoolStopTest, CloseAsksEachRunningCallToStop) {
  run_calls([this](Scope&) {
    pool_->close();
    pool_->close();
  });
  EXPECT_EQ(stopped_, (Stopped{true, false, true}));
}

TEST_F(ManualPoolStopTest, ACancellationAsksOneCallToStop) {
  run_calls([this](Scope&) {
    sources_[1].cancel();
    sources_[2].cancel();
  });
  EXPECT_EQ(stopped_, (Stopped{false, false, true}));
}

TEST_F(ManualPoolStopTest, WithoutACancellationNoCallIsAskedToStop) {
  run_calls([](Scope&) {});
  EXPECT_EQ(stopped_, Stopped{});
}

// --- locks -------------------------------------------------------------------------------------

/// Expects that no report is made while `action` changes the pool, which reads the clock then.
class ManualPoolLockTest : public ManualPoolTest {
 protected:
  template <class Action>
  void expect_no_report_during(Action action) {
    LockProbe probe([this] { static_cast<void>(pool_->report()); });
    platform_.on_now = [&] { probe.probe(); };
    action();
    platform_.on_now = nullptr;
    EXPECT_TRUE(probe.was_blocked());
  }
};

TEST_F(ManualPoolLockTest, ChangesOfThePoolAreAtomic) {
  make({});
  expect_no_report_during([&] { pool_->resize({.fixed = 1}); });
  expect_no_report_during([&] { static_cast<void>(pool_->add_lane({.share_max = 0.5})); });
}

TEST_F(ManualPoolLockTest, StepsOfThreadsAreAtomic) {
  make({.fixed = 1});
  const auto body = [&](Scope& scope) -> Task<> {
    expect_no_report_during([&] { scope.spawn(pool_->run(nothing)); });
    start_threads();
    scope.spawn(pool_->run(nothing));
    expect_no_report_during([&] { worker(0).step(); });
    pool_->resize({.fixed = 2});
    expect_no_report_during([&] { controller().step(); });
    co_await finish(scope);
  };
  EXPECT_TRUE(run(*loop_, with_scope(OnFailure::isolate, body)));
}

// --- sampling ------------------------------------------------------------------------------

TEST_F(ManualPoolTest, TheControllerSamplesOnlyWhileWorkWaits) {
  make({});
  for (int round = 0; round < 3; ++round) {
    run_jobs(*pool_, 10, nothing, [&] {
      EXPECT_TRUE(controller().due(platform_.now()) || controller().until != never);
    });
    pass(1s);
    while (take_steps()) {
    }
    EXPECT_EQ(controller().until, never);
    EXPECT_FALSE(pool_->report().blocked_now);
  }
}

TEST_F(ManualPoolTest, AFixedSizeIsNotSampled) {
  make({.fixed = 1});
  const auto queued = [&] {
    pool_->resize({.fixed = 2});
    EXPECT_TRUE(controller().due(platform_.now()));
    controller().step();
    EXPECT_EQ(controller().until, never);
    EXPECT_EQ(pool_->report().threads, 2U);
    EXPECT_EQ(pool_->report().evidence, SizeEvidence::none);
  };
  run_jobs(*pool_, 10, nothing, queued);
}

TEST_F(ManualPoolTest, SamplesWithoutAChangeBecomeRarer) {
  make({.sample_period = 4ms});
  int calls = 0;
  std::vector<Duration> periods;
  const auto look = [&](int times) {
    periods.clear();
    for (int i = 0; i < times; ++i) {
      controller().step();
      periods.push_back(controller().until - platform_.now());
      pass(periods.back());
    }
  };
  const auto work = [&] {
    if (calls++ != 0) return;
    // The controller has begun to sample. The other thread has a job, and waits for a CPU.
    worker(0).now = os::ThreadState::running;
    look(11);
    std::vector<Duration> expected(8, 4ms);
    expected.insert(expected.end(), 3, 8ms);
    EXPECT_EQ(periods, expected) << "after eight samples without a change";
    EXPECT_EQ(pool_->report().size, cpus);
    worker(0).now = os::ThreadState::blocked;
    look(3);
    EXPECT_GT(pool_->report().size, cpus);
    EXPECT_EQ(periods, (std::vector<Duration>{8ms, 8ms, 4ms}));
  };
  run_jobs(*pool_, 10, work);
  EXPECT_EQ(calls, 10);
}

TEST_F(ManualPoolTest, ANewBacklogIsSampledInEachPeriod) {
  make({.sample_period = 4ms});
  int calls = 0;
  const auto work = [&] {
    if (calls++ % 10 != 0) return;
    worker(0).now = os::ThreadState::running;
    for (int sample = 0; sample < 11; ++sample) {
      controller().step();
      EXPECT_EQ(controller().until - platform_.now(), sample < 8 ? 4ms : 8ms) << sample;
      pass(controller().until - platform_.now());
    }
  };
  for (int round = 0; round < 2; ++round) {
    run_jobs(*pool_, 10, work);
    pass(1s);
    while (take_steps()) {
    }
  }
  EXPECT_EQ(calls, 20);
}

TEST_F(ManualPoolTest, NewThreadsCountAsRunningUntilTheyLookForWork) {
  make({});
  int calls = 0;
  const auto work = [&] {
    if (calls++ != 0) return;
    const auto look = [&](int times) {
      for (int i = 0; i < times; ++i) {
        pass(5ms);
        controller().step();
      }
    };
    look(3);
    EXPECT_EQ(pool_->report().size, 4U) << "one of two threads is blocked";
    EXPECT_EQ(platform_.now() - pool_->report().last_change.at, 5ms) << "in the second sample";
    EXPECT_EQ(pool_->report().threads, 4U);
    look(20);
    EXPECT_EQ(pool_->report().size, 4U) << "two threads are about to take work";
  };
  run_jobs(*pool_, 20, work);
  EXPECT_EQ(calls, 20);
}

TEST_F(ManualPoolTest, ReportsARecentShareOfBlockedThreads) {
  make({});
  int calls = 0;
  const auto work = [&] {
    if (calls++ == 0) {
      worker(1).step();  // calls the second job
      return;
    }
    if (calls != 2) return;
    controller().step();
    EXPECT_DOUBLE_EQ(pool_->report().blocked_now.value_or(-1), 1.0);
    EXPECT_EQ(pool_->report().evidence, SizeEvidence::thread_states);
    worker(0).now = os::ThreadState::running;
    controller().step();
    EXPECT_DOUBLE_EQ(pool_->report().blocked_now.value_or(-1), 0.9) << "a fifth of the way";
    controller().step();
    EXPECT_DOUBLE_EQ(pool_->report().blocked_now.value_or(-1), 0.82);
    for (const std::size_t index : {0U, 1U}) worker(index).now = os::ThreadState::running;
    controller().step();
    EXPECT_DOUBLE_EQ(pool_->report().blocked_now.value_or(-1), 0.656);
  };
  run_jobs(*pool_, 10, work);
}

TEST_F(ManualPoolTest, AThreadBetweenTwoCallsIsNotBlocked) {
  make({});
  int calls = 0;
  const auto work = [&] {
    if (calls++ != 0) return;
    worker(1).step();  // calls a job, takes another one, and waits for a CPU
    EXPECT_EQ(calls, 2);
    worker(0).now = os::ThreadState::running;
    controller().step();
    EXPECT_DOUBLE_EQ(pool_->report().blocked_now.value_or(-1), 0.0);
  };
  run_jobs(*pool_, 10, work);
}

}  // namespace
}  // namespace weir::pool_threads_test
