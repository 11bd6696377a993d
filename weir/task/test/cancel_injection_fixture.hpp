// One scenario again and again, each time with one of its tasks cancelled a step later. Included by
// tests only, so it may use weir/testing.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <utility>

#include "weir/testing/test/loop_fixture.hpp"

namespace weir {

/// The blow of one run: one victim among the tasks of a scenario, at one point of it.
class Strike {
 public:
  Strike(std::size_t victims, std::size_t victim, std::size_t at)
      : sources_(victims), victim_(victim), at_(at) {}

  /// Runs `task` as that victim: under a cancellation of its own.
  template <class T>
  Task<T> as_victim(std::size_t victim, Task<T> task) {
    Context context = co_await this_context();
    context.cancel = &sources_[victim];
    auto running = in_context(context, std::move(task));
    co_return co_await std::move(running);
  }
  /// Tasks call it wherever they have just been resumed and before they do the next thing, so that
  /// the blow also falls between a grant and the resumption that it leads to.
  void point() {
    if (points_++ == at_) sources_[victim_].cancel();
  }
  /// Whether the blow has fallen, or is still to come.
  bool struck() const noexcept { return points_ > at_; }
  std::size_t points() const noexcept { return points_; }
  void cancel_all() {
    for (CancelSource& source : sources_) source.cancel();
  }

 private:
  std::deque<CancelSource> sources_;
  std::size_t victim_;
  std::size_t at_;
  std::size_t points_ = 0;
};

/// A LoopTest with sweeps over all cancellations that a scenario can suffer.
class StrikeTest : public LoopTest {
 protected:
  using LoopTest::LoopTest;

  /// Calls `scenario(strike)`, which returns a Task<>, once for each victim and each point: the
  /// points that the tasks name and, between any two turns of the loop, one more. Each run must
  /// come to its end and leave no frame and no timer; what else must hold, the scenario itself
  /// expects. The last run of each victim is undisturbed. Returns the number of runs.
  template <class Scenario>
  std::size_t sweep(std::size_t victims, Scenario scenario) {
    std::size_t runs = 0;
    for (std::size_t victim = 0; victim < victims; ++victim) {
      for (std::size_t at = 0;; ++at, ++runs) {
        Strike strike(victims, victim, at);
        SCOPED_TRACE(testing::Message() << "victim " << victim << " at point " << at);
        run_struck(strike, scenario);
        if (HasFatalFailure() || HasFailure() || !strike.struck()) break;
      }
    }
    return runs;
  }

 private:
  template <class Scenario>
  void run_struck(Strike& strike, Scenario& scenario) {
    Root root(*loop_, scenario(strike));
    const auto over = [&] {
      if (!root.finished) strike.point();
      return root.finished;
    };
    loop_->ready(root);
    if (!host_.run_until(*loop_, over)) {
      ADD_FAILURE() << "somebody was forgotten: nothing will ever happen any more";
      strike.cancel_all();
      ASSERT_TRUE(host_.run_until(*loop_, over));
    }
    root.task.handle().promise().take();
    host_.run_until_idle(*loop_);
    EXPECT_EQ(loop_->timers().armed(), 0U);
  }

  struct Root : Runnable, Completion {
    Root(Loop& on, Task<> scenario)
        : Runnable(&start), Completion(&ended), loop(on), task(std::move(scenario)) {}
    static void start(Runnable& self) {
      auto& root = static_cast<Root&>(self);
      root.task.start(Context{&root.loop, nullptr}, root);
    }
    static std::coroutine_handle<> ended(Completion& self, std::coroutine_handle<>) {
      static_cast<Root&>(self).finished = true;
      return std::noop_coroutine();
    }
    Loop& loop;
    Task<> task;
    bool finished = false;
  };
};

}  // namespace weir
