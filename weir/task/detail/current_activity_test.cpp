// Tests of CurrentActivity: the name of a coroutine that causes a stall, and the current trace.
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/loop/contract/detail/trace_context.hpp"
#include "weir/task/generator.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/channel.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/sync/mutex.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::current_activity_test {
namespace {

class CoroutineNameTest : public LoopTest {
 public:
  /// Simulates a computation of this length in virtual time.
  void compute(Duration length) { platform_.clock().move_to(platform_.now() + length); }

 protected:
  std::vector<loop::StallSummary> places() { return loop_->group().stall_log().summaries(); }
  /// Returns the name of the only stall.
  std::string place() {
    const auto all = places();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? std::string() : all.front().name;
  }
};

Task<> culprit(CoroutineNameTest& test, int times) {
  for (; times > 0; --times) {
    std::ignore = co_await sleep(1ms);
    test.compute(80ms);
  }
}

Task<> innocent(CoroutineNameTest& test, int times) {
  for (; times > 0; --times) {
    std::ignore = co_await sleep(1ms);
    test.compute(2ms);
  }
}

TEST_F(CoroutineNameTest, NamesTheCoroutineThatComputesForLong) {
  const auto all = [](Scope& scope, CoroutineNameTest& test) -> Task<> {
    scope.spawn(innocent(test, 10));
    scope.spawn(culprit(test, 10));
    scope.spawn(innocent(test, 10));
    co_return;
  };
  static_cast<void>(run(with_scope(all, std::ref<CoroutineNameTest>(*this))));
  EXPECT_NE(place().find("::culprit"), std::string::npos) << place();
  EXPECT_EQ(place().find("innocent"), std::string::npos) << place();
  EXPECT_EQ(places().front().turns, 10U);
  EXPECT_EQ(loop_->counters().slow_turns.value(), 10U);
  EXPECT_EQ(platform_.logged().size(), 1U) << "the stall is logged once";
}

Task<> computes_behind_a_timeout(CoroutineNameTest& test) {
  std::ignore = co_await timeout(1s, sleep(5ms));
  test.compute(80ms);
}

TEST_F(CoroutineNameTest, NamesTheResumedCoroutineAndNotTheAwaitedOne) {
  run(computes_behind_a_timeout(*this));
  EXPECT_NE(place().find("::computes_behind_a_timeout"), std::string::npos) << place();
}

Task<> awaits_a_culprit(CoroutineNameTest& test) {
  co_await culprit(test, 1);
}

TEST_F(CoroutineNameTest, NamesTheAwaitedCoroutineIfItComputes) {
  run(awaits_a_culprit(*this));
  EXPECT_NE(place().find("::culprit"), std::string::npos) << place();
}

// --- current trace -------------------------------------------------------------------------------

struct Job final : TraceContext {
  std::string_view kind() const noexcept override { return "job"; }
  std::string_view id(IdBuffer) const noexcept override { return "7"; }
};

class CurrentTraceTest : public LoopTest {
 protected:
  /// Runs a task under the trace `job_`.
  void work(Task<> task) {
    CancelSource source;
    source.set_trace(&job_);
    run(std::move(task), &source);
    EXPECT_EQ(loop::CurrentActivity::trace(), nullptr) << "the work is over";
  }
  /// Checks the current trace at each point of the task.
  static Task<> works_for(const TraceContext* trace) {
    EXPECT_EQ(loop::CurrentActivity::trace(), trace);
    co_await yield();
    EXPECT_EQ(loop::CurrentActivity::trace(), trace);
    std::ignore = co_await sleep(1s);
    EXPECT_EQ(loop::CurrentActivity::trace(), trace);
  }
  Job job_;
};

TEST_F(CurrentTraceTest, IsInheritedByAwaitedTasks) {
  const auto task = [this]() -> Task<> {
    co_await works_for(&job_);
    EXPECT_EQ(loop::CurrentActivity::trace(), &job_);
    const auto passes = [this]() -> Task<Result<>> {
      co_await works_for(&job_);
      co_return co_await sleep(1s);
    };
    EXPECT_FALSE(co_await timeout(1ms, passes()));
    EXPECT_EQ(loop::CurrentActivity::trace(), &job_);
    EXPECT_TRUE(co_await timeout(1h, passes()));
    EXPECT_EQ(loop::CurrentActivity::trace(), &job_);
  };
  work(task());
}

TEST_F(CurrentTraceTest, IsSeparateForEachTask) {
  const auto both = [this](Scope& outer) -> Task<> {
    const auto mine = [this, &outer](Scope& inner) -> Task<> {
      inner.spawn(works_for(&job_));
      EXPECT_EQ(loop::CurrentActivity::trace(), &job_);
      outer.spawn(works_for(nullptr));  // that scope has no trace
      EXPECT_EQ(loop::CurrentActivity::trace(), &job_);
      co_await works_for(&job_);
    };
    CancelSource source(outer.context().cancel);
    source.set_trace(&job_);
    auto working = in_context({&outer.loop(), &source}, as_task(with_scope(mine)));
    outer.spawn(works_for(nullptr));
    EXPECT_TRUE(co_await std::move(working));
    EXPECT_EQ(loop::CurrentActivity::trace(), nullptr) << "the awaiting task has its own trace";
    co_await works_for(nullptr);
  };
  EXPECT_TRUE(run(with_scope(both)));
}

TEST_F(CurrentTraceTest, EndsAtAShield) {
  const auto task = [this]() -> Task<> {
    const Context shield{(co_await this_context()).loop, nullptr};
    auto shielded = in_context(shield, works_for(nullptr));
    co_await std::move(shielded);
    EXPECT_EQ(loop::CurrentActivity::trace(), &job_);
    auto immediate = in_context(shield, as_task(sleep(Duration())));
    EXPECT_TRUE(co_await std::move(immediate));
    EXPECT_EQ(loop::CurrentActivity::trace(), &job_);
  };
  work(task());
}

TEST_F(CurrentTraceTest, IsNotInheritedFromTheTaskThatGrantsAWait) {
  Job other;
  ManualResetEvent event;
  Mutex mutex;
  Channel<int> channel(1);
  const auto waits = [&](const TraceContext* trace) -> Task<> {
    EXPECT_TRUE(co_await event.wait());
    EXPECT_EQ(loop::CurrentActivity::trace(), trace);
    {
      const auto alone = co_await mutex.lock();
      EXPECT_EQ(loop::CurrentActivity::trace(), trace);
    }
    EXPECT_EQ((co_await channel.receive()).value(), 7);
    EXPECT_EQ(loop::CurrentActivity::trace(), trace);
  };
  const auto opens = [&](const TraceContext* trace) -> Task<> {
    {
      const auto alone = co_await mutex.lock();
      event.set();
      EXPECT_EQ(loop::CurrentActivity::trace(), trace);
      co_await yield();
    }
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(co_await channel.send(7));
      EXPECT_EQ(loop::CurrentActivity::trace(), trace);
    }
  };
  const auto all = [&](Scope& scope) -> Task<> {
    const CancelSource& own = *scope.context().cancel;
    EXPECT_EQ(own.trace(), nullptr);
    CancelSource for_job(scope.context().cancel);
    for_job.set_trace(&job_);
    CancelSource for_other(scope.context().cancel);
    for_other.set_trace(&other);
    Scope first({&scope.loop(), &for_job}, OnFailure::isolate);
    Scope second({&scope.loop(), &for_other}, OnFailure::isolate);
    first.spawn(waits(&job_));
    second.spawn(waits(&other));
    second.spawn(opens(&other));
    EXPECT_EQ(loop::CurrentActivity::trace(), nullptr);
    co_await first.children_finished();
    EXPECT_EQ(loop::CurrentActivity::trace(), nullptr) << "the scope resumes, not the last child";
    co_await second.children_finished();
    EXPECT_EQ(loop::CurrentActivity::trace(), nullptr);
  };
  EXPECT_TRUE(run(with_scope(all)));
}

TEST_F(CurrentTraceTest, ContinuesInAGeneratorAndAfterAnException) {
  const auto values = [this](int count) -> Generator<int> {
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(loop::CurrentActivity::trace(), &job_);
      co_await yield();
      EXPECT_EQ(loop::CurrentActivity::trace(), &job_);
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
      EXPECT_EQ(loop::CurrentActivity::trace(), &job_);
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
    EXPECT_EQ(loop::CurrentActivity::trace(), &job_);
  };
  work(task());
}

/// A Look is a runnable that the loop runs and that is not a coroutine.
struct Look : loop::Runnable {
  Look() : loop::Runnable([](loop::Runnable& self) { static_cast<Look&>(self).look(); }) {}
  void look() {
    EXPECT_EQ(loop::CurrentActivity::trace(), nullptr);
    ++looks;
  }
  int looks = 0;
};

TEST_F(CurrentTraceTest, DoesNotReachTheNextRunnable) {
  Look look;
  const auto task = [&]() -> Task<> {
    loop_->ready(look);
    platform_.at(platform_.now() + 500ms, [&] { look.look(); });
    co_await works_for(&job_);
  };
  work(task());
  EXPECT_EQ(look.looks, 2);
}

}  // namespace
}  // namespace weir::current_activity_test
