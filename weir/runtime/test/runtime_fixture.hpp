// Test fixture that runs one scenario on several cores in memory many times, cancelling a task
// one step later each time. It may use weir/testing because only tests include it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "weir/loop/detail/loop_group.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/test/sweep_budget.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir {

/// A ByCore is a scenario of at most one task for each core.
struct ByCore {
  explicit ByCore(std::vector<std::function<Task<>()>> of_cores) : bodies(std::move(of_cores)) {}
  Task<> on(unsigned core) { return core < bodies.size() ? bodies[core]() : nothing(); }
  static Task<> nothing() { co_return; }
  std::vector<std::function<Task<>()>> bodies;
};

/// Returns the numbers from `first` to `last`, both included.
inline std::vector<int> numbers(int first, int last) {
  std::vector<int> all(static_cast<std::size_t>(last - first + 1));
  std::iota(all.begin(), all.end(), first);
  return all;
}

/// Fixture with `cores` loops of one group. The loops must be empty at the end.
class MultiCoreTest : public testing::Test {
 protected:
  explicit MultiCoreTest(unsigned cores = 3) : platform_({.cores = cores}) {
    std::vector<Loop*> loops;
    for (unsigned core = 0; core < cores; ++core) {
      owned_.push_back(Loop::make(platform_, {.core = core, .group = &group_}).value());
      loops.push_back(owned_.back().get());
    }
    group_.set_loops(std::move(loops));
  }
  void TearDown() override {
    platform_.run_until_idle(loops());
    for (Loop* const loop : loops()) {
      loop->blocks().collect();
      EXPECT_EQ(loop->blocks().blocks_in_use(), 0U) << "on core " << loop->core();
      EXPECT_EQ(loop->timers().armed(), 0U);
    }
  }

  std::span<Loop* const> loops() const noexcept { return group_.loops(); }
  Loop& loop(std::size_t core) const noexcept { return *loops()[core]; }

  /// A Root is a task that starts on a loop in its next turn.
  class Root : loop::Runnable, Continuation {
   public:
    Root(Loop& on, Task<> task)
        : loop::Runnable(&start),
          Continuation(root_kind<&ended>),
          loop_(on),
          task_(std::move(task)) {
      loop_.ready(*this);
    }
    bool finished() const noexcept { return finished_; }
    /// Rethrows what the task threw.
    void take() { task_.handle().promise().take(); }

   private:
    static void start(loop::Runnable& self) {
      auto& root = static_cast<Root&>(self);
      root.task_.start(Context{&root.loop_, nullptr}, root);
    }
    static std::coroutine_handle<> ended(Continuation& self, std::coroutine_handle<>) {
      static_cast<Root&>(self).finished_ = true;
      return std::noop_coroutine();
    }
    Loop& loop_;
    Task<> task_;
    bool finished_ = false;
  };

  /// Runs `scenario.on(core)`, a Task<>, on each core until all tasks have finished. Virtual time
  /// advances as far as needed.
  template <class Scenario>
  void run(Scenario& scenario) {
    std::deque<Root> roots;
    for (Loop* const each : loops()) roots.emplace_back(*each, scenario.on(each->core()));
    const auto over = [&] { return std::ranges::all_of(roots, &Root::finished); };
    ASSERT_TRUE(platform_.run_until(loops(), over)) << "a task never finished";
    for (Root& root : roots) root.take();
  }

  void run_on_cores(std::vector<std::function<Task<>()>> bodies) {
    ByCore scenario(std::move(bodies));
    run(scenario);
  }

  /// Runs `receiving` on core 0 and expects other tasks of that core to get turns meanwhile.
  /// `receiving` appends `count` values, which are available from the start, to `received`.
  void run_beside_others(Task<> receiving, const std::vector<int>& received, std::size_t count) {
    const auto both = [&](Scope& scope) -> Task<> {
      scope.spawn(std::move(receiving));
      EXPECT_LT(received.size(), count / 10) << "it has not taken all of them in one go";
      const std::uint64_t turns = loop(0).counters().turns.value();
      while (received.size() != count) co_await yield();
      EXPECT_GT(loop(0).counters().turns.value() - turns, 10U);
    };
    const auto body = [&]() -> Task<> { std::ignore = co_await with_scope(both); };
    run_on_cores({body});
  }

  /// Runs a new Scenario for each of `targets` tasks and for each point at which that task can be
  /// cancelled and which the SweepBudget allows. The tasks name such points; each boundary between
  /// two turns of any two loops is one more. Both orders of the loops are run. `scenario.outside()`
  /// is called at these boundaries. It does what threads outside the loops do, and returns true if
  /// it did anything. Each run must finish, and `scenario.check()` checks the remaining
  /// expectations. The last run of each target is not disturbed.
  /// Returns: the number of points of all targets and orders.
  template <class Scenario>
  std::size_t sweep(std::size_t targets) {
    std::size_t points = 0;
    SweepBudget budget;
    for (const bool backwards : {false, true}) {
      std::vector<Loop*> order(loops().begin(), loops().end());
      if (backwards) std::ranges::reverse(order);
      for (std::size_t target = 0; target < targets; ++target) {
        for (std::size_t at = 0;; at = budget.after(at)) {
          CancelInjector injector(targets, target, at);
          SCOPED_TRACE(testing::Message() << "target " << target << " at point " << at
                                          << (backwards ? ", backwards" : ""));
          run_once<Scenario>(injector, order);
          if (HasFailure() || !injector.injected()) {
            points += injector.points();
            break;
          }
        }
      }
    }
    return points;
  }

  loop::LoopGroup group_;
  MemoryPlatform platform_;
  std::vector<std::unique_ptr<Loop>> owned_;

 private:
  template <class Scenario>
  void run_once(CancelInjector& injector, const std::vector<Loop*>& order) {
    Scenario scenario(injector);
    std::deque<Root> roots;
    for (Loop* const each : order) roots.emplace_back(*each, scenario.on(each->core()));
    const auto over = [&] { return std::ranges::all_of(roots, &Root::finished); };
    bool did = true;
    while (!over() && did) {
      did = false;
      for (Loop* const each : order) {
        did = each->turn(platform_.now()) || did;
        if (!over()) injector.checkpoint();
        did = scenario.outside() || did;
      }
      for (Loop* const each : order) did = did || each->has_work();
    }
    if (!over()) {
      ADD_FAILURE() << "a task never finished: nothing more will happen";
      injector.cancel_all();
      platform_.run_until_idle(loops());
      ASSERT_TRUE(over());
    }
    for (Root& root : roots) root.take();
    platform_.run_until_idle(loops());
    scenario.check();
  }
};

}  // namespace weir
