// One scenario on several cores in memory, again and again, each time with one of its tasks
// cancelled a step later. Included by tests only, so it may use weir/testing.
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

#include "weir/loop/loop_group.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir {

/// Tasks that a test names, one for each core that has one.
struct ByCore {
  explicit ByCore(std::vector<std::function<Task<>()>> of_cores) : bodies(std::move(of_cores)) {}
  Task<> on(unsigned core) { return core < bodies.size() ? bodies[core]() : nothing(); }
  static Task<> nothing() { co_return; }
  std::vector<std::function<Task<>()>> bodies;
};

/// From `first` to `last`, both included.
inline std::vector<int> numbers(int first, int last) {
  std::vector<int> all(static_cast<std::size_t>(last - first + 1));
  std::iota(all.begin(), all.end(), first);
  return all;
}

/// `cores` loops of one group. Nothing may be left on them at the end.
class CoresTest : public testing::Test {
 protected:
  explicit CoresTest(unsigned cores = 3) : host_({.cores = cores}) {
    std::vector<Loop*> loops;
    for (unsigned core = 0; core < cores; ++core) {
      owned_.push_back(Loop::make(host_, {.core = core, .group = &group_}).value());
      loops.push_back(owned_.back().get());
    }
    group_.set_loops(std::move(loops));
  }
  void TearDown() override {
    host_.run_until_idle(loops());
    for (Loop* const loop : loops()) {
      loop->blocks().collect();
      EXPECT_EQ(loop->blocks().blocks_in_use(), 0U) << "on core " << loop->core();
      EXPECT_EQ(loop->timers().armed(), 0U);
    }
  }

  std::span<Loop* const> loops() const noexcept { return group_.loops(); }
  Loop& loop(std::size_t core) const noexcept { return *loops()[core]; }

  /// A task on a loop, from the next round on.
  class Root : Runnable, Completion {
   public:
    Root(Loop& on, Task<> task)
        : Runnable(&start), Completion(&ended), loop_(on), task_(std::move(task)) {
      loop_.ready(*this);
    }
    bool finished() const noexcept { return finished_; }
    /// Throws what the task threw.
    void take() { task_.handle().promise().take(); }

   private:
    static void start(Runnable& self) {
      auto& root = static_cast<Root&>(self);
      root.task_.start(Context{&root.loop_, nullptr}, root);
    }
    static std::coroutine_handle<> ended(Completion& self, std::coroutine_handle<>) {
      static_cast<Root&>(self).finished_ = true;
      return std::noop_coroutine();
    }
    Loop& loop_;
    Task<> task_;
    bool finished_ = false;
  };

  /// Runs `scenario.on(core)`, a Task<>, on each core until all have finished, however long that
  /// takes in virtual time.
  template <class Scenario>
  void run(Scenario& scenario) {
    std::deque<Root> roots;
    for (Loop* const each : loops()) roots.emplace_back(*each, scenario.on(each->core()));
    const auto over = [&] { return std::ranges::all_of(roots, &Root::finished); };
    ASSERT_TRUE(host_.run_until(loops(), over)) << "somebody was forgotten";
    for (Root& root : roots) root.take();
  }

  void run_on_cores(std::vector<std::function<Task<>()>> bodies) {
    ByCore scenario(std::move(bodies));
    run(scenario);
  }

  /// Runs `receiving` on core 0, which appends `count` values to `received` that are there from the
  /// beginning: others of that core must have their turns meanwhile.
  void run_beside_others(Task<> receiving, const std::vector<int>& received, std::size_t count) {
    const auto both = [&](Scope& scope) -> Task<> {
      scope.spawn(std::move(receiving));
      EXPECT_LT(received.size(), count / 10) << "it has not taken all of them in one go";
      const std::uint64_t turns = loop(0).counters().turns.value();
      while (received.size() != count) co_await yield();
      EXPECT_GT(loop(0).counters().turns.value() - turns, 10U);
    };
    const auto body = [&]() -> Task<> { static_cast<void>(co_await with_scope(both)); };
    run_on_cores({body});
  }

  /// The same as run(), with a Scenario of its own for each of `victims` and each point at which
  /// one can be cancelled: those that the tasks name, and one more between any two turns of any two
  /// loops, in both orders of the loops. There `scenario.outside()` is called too, which does what
  /// threads do that are no loop's; it returns whether it did anything. Each run must come to its
  /// end, and `scenario.check()` expects what else must hold. The last run of each victim is
  /// undisturbed. Returns the number of runs.
  template <class Scenario>
  std::size_t sweep(std::size_t victims) {
    std::size_t runs = 0;
    for (const bool backwards : {false, true}) {
      std::vector<Loop*> order(loops().begin(), loops().end());
      if (backwards) std::ranges::reverse(order);
      for (std::size_t victim = 0; victim < victims; ++victim) {
        for (std::size_t at = 0;; ++at, ++runs) {
          Strike strike(victims, victim, at);
          SCOPED_TRACE(testing::Message() << "victim " << victim << " at point " << at
                                          << (backwards ? ", backwards" : ""));
          run_struck<Scenario>(strike, order);
          if (HasFailure() || !strike.struck()) break;
        }
      }
    }
    return runs;
  }

  LoopGroup group_;
  MemoryHost host_;
  std::vector<std::unique_ptr<Loop>> owned_;

 private:
  template <class Scenario>
  void run_struck(Strike& strike, const std::vector<Loop*>& order) {
    Scenario scenario(strike);
    std::deque<Root> roots;
    for (Loop* const each : order) roots.emplace_back(*each, scenario.on(each->core()));
    const auto over = [&] { return std::ranges::all_of(roots, &Root::finished); };
    bool did = true;
    while (!over() && did) {
      did = false;
      for (Loop* const each : order) {
        did = each->turn(host_.now()) || did;
        if (!over()) strike.point();
        did = scenario.outside() || did;
      }
      for (Loop* const each : order) did = did || each->has_work();
    }
    if (!over()) {
      ADD_FAILURE() << "somebody was forgotten: nothing will ever happen any more";
      strike.cancel_all();
      host_.run_until_idle(loops());
      ASSERT_TRUE(over());
    }
    for (Root& root : roots) root.take();
    host_.run_until_idle(loops());
    scenario.check();
  }
};

}  // namespace weir
