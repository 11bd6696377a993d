// A fixture that repeats one scenario and cancels one of its tasks a step later each time. Only
// tests include it, so it may use weir/testing.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <utility>

#include "weir/task/test/sweep_budget.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir {

/// A CancelInjector cancels one target among the tasks of a scenario, at one point of one run.
class CancelInjector {
 public:
  CancelInjector(std::size_t targets, std::size_t target, std::size_t at)
      : sources_(targets), target_(target), at_(at) {}

  /// Runs `task` as this target, under its own cancellation source.
  template <class T>
  Task<T> as_target(std::size_t target, Task<T> task) {
    Context context = co_await this_context();
    context.cancel = &sources_[target];
    auto running = in_context(context, std::move(task));
    co_return co_await std::move(running);
  }
  /// Marks a point of the scenario. A task calls it directly after each resumption and before its
  /// next step. The cancellation then also happens between a grant and the resumption that
  /// follows.
  void checkpoint() {
    if (points_++ == at_) sources_[target_].cancel();
  }
  /// Returns true if the run has reached the point of the cancellation.
  bool injected() const noexcept { return points_ > at_; }
  std::size_t points() const noexcept { return points_; }
  void cancel_all() {
    for (CancelSource& source : sources_) source.cancel();
  }

 private:
  std::deque<CancelSource> sources_;
  std::size_t target_;
  std::size_t at_;
  std::size_t points_ = 0;
};

/// A CancelSweepTest is a LoopTest that runs a scenario with every possible cancellation.
class CancelSweepTest : public LoopTest {
 protected:
  using LoopTest::LoopTest;

  /// Calls `scenario(injector)`, which returns a Task<>, once for each target and each point that
  /// the SweepBudget allows. The points are those that the tasks mark, and one more between any two
  /// turns of the loop. Each run must end and leave no frame and no timer; the scenario itself
  /// checks everything else. The last run of each target has no cancellation.
  /// Returns: the number of points of all targets.
  template <class Scenario>
  std::size_t sweep(std::size_t targets, Scenario scenario) {
    std::size_t points = 0;
    SweepBudget budget;
    for (std::size_t target = 0; target < targets; ++target) {
      for (std::size_t at = 0;; at = budget.after(at)) {
        CancelInjector injector(targets, target, at);
        SCOPED_TRACE(testing::Message() << "target " << target << " at point " << at);
        run_once(injector, scenario);
        if (HasFatalFailure() || HasFailure() || !injector.injected()) {
          points += injector.points();
          break;
        }
      }
    }
    return points;
  }

 private:
  template <class Scenario>
  void run_once(CancelInjector& injector, Scenario& scenario) {
    Root root(*loop_, scenario(injector));
    const auto over = [&] {
      if (!root.finished) injector.checkpoint();
      return root.finished;
    };
    loop_->ready(root);
    if (!platform_.run_until(*loop_, over)) {
      ADD_FAILURE() << "scenario: stuck: a task waits and nothing can resume it";
      injector.cancel_all();
      ASSERT_TRUE(platform_.run_until(*loop_, over));
    }
    root.task.handle().promise().take();
    platform_.run_until_idle(*loop_);
    EXPECT_EQ(loop_->timers().armed(), 0U);
  }

  struct Root : loop::Runnable, Continuation {
    Root(Loop& on, Task<> scenario)
        : loop::Runnable(&start),
          Continuation(root_kind<&ended>),
          loop(on),
          task(std::move(scenario)) {}
    static void start(loop::Runnable& self) {
      auto& root = static_cast<Root&>(self);
      root.task.start(Context{&root.loop, nullptr}, root);
    }
    static std::coroutine_handle<> ended(Continuation& self, std::coroutine_handle<>) {
      static_cast<Root&>(self).finished = true;
      return std::noop_coroutine();
    }
    Loop& loop;
    Task<> task;
    bool finished = false;
  };
};

}  // namespace weir
