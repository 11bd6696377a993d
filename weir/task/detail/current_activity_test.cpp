// What is known of a coroutine that runs: its name, when it made a turn slow; for whom it works.
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/loop/work_unit.hpp"
#include "weir/task/sync/channel.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/generator.hpp"
#include "weir/task/mutex.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir {
namespace {

class NamedCoroutine : public LoopTest {
 public:
  /// What computing for so long is in virtual time.
  void compute(Duration length) { host_.clock().move_to(host_.now() + length); }

 protected:
  std::vector<SlowPlace> places() { return loop_->group().slow_turns().places(); }
  /// The only one.
  std::string place() {
    const auto all = places();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? std::string() : all.front().name;
  }
};

Task<> culprit(NamedCoroutine& test, int times) {
  for (; times > 0; --times) {
    static_cast<void>(co_await sleep(1ms));
    test.compute(80ms);
  }
}

Task<> innocent(NamedCoroutine& test, int times) {
  for (; times > 0; --times) {
    static_cast<void>(co_await sleep(1ms));
    test.compute(2ms);
  }
}

TEST_F(NamedCoroutine, IsTheOneThatComputesForLong) {
  const auto all = [](Scope& scope, NamedCoroutine& test) -> Task<> {
    scope.spawn(innocent(test, 10));
    scope.spawn(culprit(test, 10));
    scope.spawn(innocent(test, 10));
    co_return;
  };
  static_cast<void>(run(with_scope(all, std::ref<NamedCoroutine>(*this))));
  EXPECT_NE(place().find("::culprit"), std::string::npos) << place();
  EXPECT_EQ(place().find("innocent"), std::string::npos) << place();
  EXPECT_EQ(places().front().turns, 10U);
  EXPECT_EQ(loop_->counters().slow_turns.value(), 10U);
  EXPECT_EQ(host_.logged().size(), 1U) << "it is told once";
}

Task<> computes_behind_a_timeout(NamedCoroutine& test) {
  static_cast<void>(co_await timeout(1s, sleep(5ms)));
  test.compute(80ms);
}

TEST_F(NamedCoroutine, IsTheOneThatGoesOnAndNotWhatItAwaited) {
  run(computes_behind_a_timeout(*this));
  EXPECT_NE(place().find("::computes_behind_a_timeout"), std::string::npos) << place();
}

Task<> awaits_a_culprit(NamedCoroutine& test) {
  co_await culprit(test, 1);
}

TEST_F(NamedCoroutine, IsTheAwaitedOneThatComputesAndNotWhoGoesOn) {
  run(awaits_a_culprit(*this));
  EXPECT_NE(place().find("::culprit"), std::string::npos) << place();
}

// --- for whom it works ---------------------------------------------------------------------------

struct Job final : WorkUnit {
  std::string_view kind() const noexcept override { return "job"; }
  std::string_view id(IdRoom) const noexcept override { return "7"; }
};

class WorkingFor : public LoopTest {
 protected:
  /// Runs a task that works for job_.
  void work(Task<> task) {
    CancelSource source;
    source.set_unit(&job_);
    run(std::move(task), &source);
    EXPECT_EQ(Running::unit(), nullptr) << "it is over";
  }
  /// At each point it works for that one.
  static Task<> works_for(const WorkUnit* unit) {
    EXPECT_EQ(Running::unit(), unit);
    co_await yield();
    EXPECT_EQ(Running::unit(), unit);
    static_cast<void>(co_await sleep(1s));
    EXPECT_EQ(Running::unit(), unit);
  }
  Job job_;
};

TEST_F(WorkingFor, GoesOnInWhatIsAwaited) {
  const auto task = [this]() -> Task<> {
    co_await works_for(&job_);
    EXPECT_EQ(Running::unit(), &job_);
    const auto passes = [this]() -> Task<Result<>> {
      co_await works_for(&job_);
      co_return co_await sleep(1s);
    };
    EXPECT_FALSE(co_await timeout(1ms, passes()));
    EXPECT_EQ(Running::unit(), &job_);
    EXPECT_TRUE(co_await timeout(1h, passes()));
    EXPECT_EQ(Running::unit(), &job_);
  };
  work(task());
}

TEST_F(WorkingFor, IsEachTasksOwn) {
  const auto both = [this](Scope& outer) -> Task<> {
    const auto mine = [this, &outer](Scope& inner) -> Task<> {
      inner.spawn(works_for(&job_));
      EXPECT_EQ(Running::unit(), &job_);
      outer.spawn(works_for(nullptr));  // that scope is nobody's
      EXPECT_EQ(Running::unit(), &job_);
      co_await works_for(&job_);
    };
    CancelSource source(outer.context().cancel);
    source.set_unit(&job_);
    auto working = in_context({&outer.loop(), &source}, as_task(with_scope(mine)));
    outer.spawn(works_for(nullptr));
    EXPECT_TRUE(co_await std::move(working));
    EXPECT_EQ(Running::unit(), nullptr) << "and who has awaited it goes on with its own";
    co_await works_for(nullptr);
  };
  EXPECT_TRUE(run(with_scope(both)));
}

TEST_F(WorkingFor, EndsAtAShield) {
  const auto task = [this]() -> Task<> {
    const Context shield{(co_await this_context()).loop, nullptr};
    auto shielded = in_context(shield, works_for(nullptr));
    co_await std::move(shielded);
    EXPECT_EQ(Running::unit(), &job_);
    auto at_once = in_context(shield, as_task(sleep(Duration())));
    EXPECT_TRUE(co_await std::move(at_once));
    EXPECT_EQ(Running::unit(), &job_);
  };
  work(task());
}

TEST_F(WorkingFor, WhoLetsAnotherGoOnIsNotWhomThatWorksFor) {
  Job other;
  CoreManualResetEvent event;
  CoreMutex mutex;
  CoreChannel<int> channel(1);
  const auto waits = [&](const WorkUnit* unit) -> Task<> {
    EXPECT_TRUE(co_await event.wait());
    EXPECT_EQ(Running::unit(), unit);
    {
      const auto alone = co_await mutex.lock();
      EXPECT_EQ(Running::unit(), unit);
    }
    EXPECT_EQ((co_await channel.receive()).value(), 7);
    EXPECT_EQ(Running::unit(), unit);
  };
  const auto opens = [&](const WorkUnit* unit) -> Task<> {
    {
      const auto alone = co_await mutex.lock();
      event.set();
      EXPECT_EQ(Running::unit(), unit);
      co_await yield();
    }
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(co_await channel.send(7));
      EXPECT_EQ(Running::unit(), unit);
    }
  };
  const auto all = [&](Scope& scope) -> Task<> {
    const CancelSource& own = *scope.context().cancel;
    EXPECT_EQ(own.unit(), nullptr);
    CancelSource for_job(scope.context().cancel);
    for_job.set_unit(&job_);
    CancelSource for_other(scope.context().cancel);
    for_other.set_unit(&other);
    Scope first({&scope.loop(), &for_job}, OnFailure::supervise);
    Scope second({&scope.loop(), &for_other}, OnFailure::supervise);
    first.spawn(waits(&job_));
    second.spawn(waits(&other));
    second.spawn(opens(&other));
    EXPECT_EQ(Running::unit(), nullptr);
    co_await first.children_finished();
    EXPECT_EQ(Running::unit(), nullptr) << "it is not the last child that goes on";
    co_await second.children_finished();
    EXPECT_EQ(Running::unit(), nullptr);
  };
  EXPECT_TRUE(run(with_scope(all)));
}

TEST_F(WorkingFor, GoesOnInAGeneratorAndBehindAnException) {
  const auto values = [this](int count) -> Generator<int> {
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(Running::unit(), &job_);
      co_await yield();
      EXPECT_EQ(Running::unit(), &job_);
      co_yield i;
    }
  };
  const auto throws = []() -> Task<> {
    co_await yield();
    throw std::runtime_error("out of ink");
  };
  const auto task = [&]() -> Task<> {
    auto each = values(2);
    while (const auto value = (co_await each.next()).value()) {
      EXPECT_EQ(Running::unit(), &job_);
    }
    const Context shield{(co_await this_context()).loop, nullptr};
    bool thrown = false;
    try {
      auto shielded = in_context(shield, throws());
      co_await std::move(shielded);
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    EXPECT_TRUE(thrown);
    EXPECT_EQ(Running::unit(), &job_);
  };
  work(task());
}

/// Is run by the loop, and no coroutine.
struct Look : Runnable {
  Look() : Runnable([](Runnable& self) { static_cast<Look&>(self).look(); }) {}
  void look() {
    EXPECT_EQ(Running::unit(), nullptr);
    ++looks;
  }
  int looks = 0;
};

TEST_F(WorkingFor, IsNotWhatRunsNext) {
  Look look;
  const auto task = [&]() -> Task<> {
    loop_->ready(look);
    host_.at(host_.now() + 500ms, [&] { look.look(); });
    co_await works_for(&job_);
  };
  work(task());
  EXPECT_EQ(look.looks, 2);
}

}  // namespace
}  // namespace weir
