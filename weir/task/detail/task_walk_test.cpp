#include "weir/task/detail/task_walk.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/detail/type_name.hpp"
#include "weir/loop/contract/detail/trace_context.hpp"
#include "weir/os/detail/process/symbol.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/generator.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/select.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/sync/mutex.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The coroutines whose names the tests look for.
Task<> sleeper(Duration length) {
  std::ignore = co_await sleep(length);
}
Task<> waiter(ManualResetEvent& event) {
  std::ignore = co_await event.wait();
}
Task<> outer(ManualResetEvent& event) {
  co_await waiter(event);
}
Generator<int> numbers(ManualResetEvent& event) {
  std::ignore = co_await event.wait();
  co_yield 1;
}
Task<> reader_of_numbers(ManualResetEvent& event) {
  auto all = numbers(event);
  while (true) {
    const auto next = co_await all.next();
    if (!next || !*next) break;
  }
}
Task<> both(ManualResetEvent& event) {
  std::ignore = co_await all(waiter(event), outer(event));
}

/// Runs a walk to its end while nothing else runs.
TaskSnapshot snapshot_of(Loop& loop, std::size_t entries_max = 1000) {
  TaskWalk walk(loop, entries_max);
  while (!walk.step()) {
  }
  return std::move(walk.snapshot());
}

/// Returns lines like "main > outer > waiter: awaits EventWait x 2", one for each wait.
std::vector<std::string> lines_of(const TaskSnapshot& snapshot) {
  const auto name_of = [&](const TaskSnapshot::Entry& entry) {
    std::string name = os::function_name_at(entry.function);
    // The names of templates depend on the compiler.
    if (name.find("with_scope<") != name.npos) name = "with_scope";
    for (const char* part : {"weir::", "(anonymous namespace)::"}) {
      for (auto at = name.find(part); at != name.npos; at = name.find(part))
        name.erase(at, std::string(part).size());
    }
    return name;
  };
  std::vector<std::string> lines;
  for (const auto& each : snapshot.entries) {
    if (each.awaits.empty()) continue;
    std::string line = name_of(each) + ": " + std::string(each.awaits);
    for (auto up = each.parent; up != TaskSnapshot::none; up = snapshot.entries[up].parent)
      line = name_of(snapshot.entries[up]) + " > " + line;
    if (each.count != 1) line += " x " + std::to_string(each.count);
    lines.push_back(line);
  }
  return lines;
}

class TaskWalkTest : public LoopTest {
 protected:
  TaskWalkTest() { root_.list_in(loop_->roots()); }
  void TearDown() override {
    root_.unlist();
    LoopTest::TearDown();
  }

  /// Runs `spawn(scope)`, then `check()` when its tasks wait, and then sets the event.
  template <class Spawn, class Check>
  void check_in_scope(Spawn spawn, Check check) {
    const auto result = run(with_scope([&](Scope& scope) -> Task<> {
                              spawn(scope);
                              co_await yield();
                              check();
                              event_.set();
                            }),
                            &root_);
    EXPECT_TRUE(result);
  }

  CancelSource root_;
  ManualResetEvent event_;
};

TEST_F(TaskWalkTest, FindsNothingOnAnIdleLoop) {
  const TaskSnapshot found = snapshot_of(*loop_);
  EXPECT_TRUE(found.complete);
  EXPECT_TRUE(found.entries.empty());
  EXPECT_EQ(found.waits, 0U);
}

TEST_F(TaskWalkTest, NamesATaskThatWaitsAndThoseAboveIt) {
  check_in_scope(
      [&](Scope& scope) { scope.spawn(outer(event_)); },
      [&] {
        EXPECT_THAT(
            lines_of(snapshot_of(*loop_)),
            ElementsAre("with_scope > outer > waiter: weir::EventWait<weir::ManualResetEvent>"));
      });
}

TEST_F(TaskWalkTest, FindsTheTasksOfAScopeThatNoSourceCancels) {
  const auto owner = [&]() -> Task<> {
    Scope scope({loop_.get(), nullptr}, OnFailure::isolate);  // like that of a service
    scope.spawn(waiter(event_));
    EXPECT_THAT(lines_of(snapshot_of(*loop_)),
                ElementsAre("waiter: weir::EventWait<weir::ManualResetEvent>"));
    event_.set();
    co_await scope.children_finished();
    EXPECT_TRUE(snapshot_of(*loop_).entries.empty());
  };
  run(owner(), &root_);
}

TEST_F(TaskWalkTest, FollowsGeneratorsAndCombinators) {
  check_in_scope(
      [&](Scope& scope) {
        scope.spawn(reader_of_numbers(event_));
        scope.spawn(both(event_));
      },
      [&] {
        const auto lines = lines_of(snapshot_of(*loop_));
        ASSERT_EQ(lines.size(), 3U);
        EXPECT_EQ(
            lines[0],
            "with_scope > reader_of_numbers > numbers: weir::EventWait<weir::ManualResetEvent>");
        EXPECT_THAT(lines[1], HasSubstr("with_scope > both > "));
        EXPECT_THAT(lines[1], HasSubstr(" > waiter: weir::EventWait<weir::ManualResetEvent>"));
        EXPECT_THAT(lines[2],
                    HasSubstr(" > outer > waiter: weir::EventWait<weir::ManualResetEvent>"));
      });
}

TEST_F(TaskWalkTest, FindsTasksUnderTimeoutsAndNestedScopes) {
  check_in_scope(
      [&](Scope& scope) {
        scope.spawn(timeout(1h, outer(event_)));
        scope.spawn(with_scope([this](Scope& inner) -> Task<> {
          inner.spawn(waiter(event_));
          co_return;
        }));
      },
      [&] {
        const auto lines = lines_of(snapshot_of(*loop_));
        ASSERT_EQ(lines.size(), 2U);
        EXPECT_THAT(lines[0], HasSubstr("with_scope > "));
        EXPECT_THAT(lines[0], HasSubstr("timeout"));
        EXPECT_THAT(lines[0],
                    HasSubstr(" > outer > waiter: weir::EventWait<weir::ManualResetEvent>"));
        EXPECT_EQ(lines[1],
                  "with_scope > with_scope > waiter: weir::EventWait<weir::ManualResetEvent>");
      });
}

TEST_F(TaskWalkTest, NamesTheKindOfWait) {
  Mutex mutex;
  check_in_scope(
      [&](Scope& scope) {
        scope.spawn(sleeper(1ms));
        scope.spawn([](Mutex& locked, ManualResetEvent& event) -> Task<> {
          const auto lock = co_await locked.lock();
          std::ignore = co_await select(event.wait(), sleep(1h));
        }(mutex, event_));
        scope.spawn([](Mutex& locked) -> Task<> { std::ignore = co_await locked.lock(); }(mutex));
      },
      [&] {
        const auto found = snapshot_of(*loop_);
        std::vector<std::string> awaits;
        for (const auto& each : found.entries)
          if (!each.awaits.empty()) awaits.emplace_back(each.awaits);
        EXPECT_THAT(awaits, ElementsAre("sleep", "select", HasSubstr("Lock")));
        EXPECT_EQ(found.waits, 3U);
        EXPECT_EQ(found.entries.back().run_by, "scope");
      });
}

TEST_F(TaskWalkTest, CountsEqualTasks) {
  check_in_scope(
      [&](Scope& scope) {
        for (int i = 0; i < 3000; ++i) scope.spawn(waiter(event_));
        scope.spawn(sleeper(1ms));
      },
      [&] {
        const auto found = snapshot_of(*loop_);
        EXPECT_THAT(
            lines_of(found),
            ElementsAre("with_scope > waiter: weir::EventWait<weir::ManualResetEvent> x 3000",
                        "with_scope > sleeper: sleep"));
        EXPECT_EQ(found.waits, 3001U);
        EXPECT_EQ(found.left_out, 0U);
      });
}

TEST_F(TaskWalkTest, KnowsTheAgeOfTheOldestTask) {
  const auto result = run(with_scope([&](Scope& scope) -> Task<> {
                            scope.spawn(waiter(event_));
                            std::ignore = co_await sleep(30s);
                            scope.spawn(waiter(event_));
                            std::ignore = co_await sleep(10s);
                            const auto found = snapshot_of(*loop_);
                            const auto& group = found.entries.back();
                            EXPECT_EQ(group.count, 2U);
                            EXPECT_TRUE(group.has_age);
                            EXPECT_NEAR(std::chrono::duration<double>(group.age).count(), 40, 0.02);
                            event_.set();
                          }),
                          &root_);
  EXPECT_TRUE(result);
}

/// The trace of a test, with an id.
struct NumberedTrace final : TraceContext {
  explicit NumberedTrace(std::string is) : text(std::move(is)) {}
  std::string_view kind() const noexcept override { return "request"; }
  std::string_view id(IdBuffer) const noexcept override { return text; }
  std::string_view name(IdBuffer) const noexcept override { return "GET /slow"; }
  std::string text;
};

TEST_F(TaskWalkTest, NamesTheTraceOfEachTask) {
  NumberedTrace first("a-1"), second("a-2");
  CancelSource below_first(&root_), below_second(&root_);
  below_first.set_trace(&first);
  below_second.set_trace(&second);
  const auto under = [&](CancelSource& source) -> Task<> {
    auto task = outer(event_);
    auto running = in_context({loop_.get(), &source}, std::move(task));
    co_await std::move(running);
  };
  check_in_scope(
      [&](Scope& scope) {
        scope.spawn(under(below_first));
        scope.spawn(under(below_second));
        scope.spawn(under(below_second));
      },
      [&] {
        const auto found = snapshot_of(*loop_);
        ASSERT_EQ(found.traces.size(), 2U);
        EXPECT_EQ(found.traces[0].kind, "request");
        EXPECT_EQ(found.traces[0].id, "a-1");
        EXPECT_EQ(found.traces[0].name, "GET /slow");
        EXPECT_EQ(found.traces[1].id, "a-2");
        std::vector<std::uint32_t> traces;
        for (const auto& each : found.entries)
          if (!each.awaits.empty()) traces.push_back(each.trace);
        std::ranges::sort(traces);
        EXPECT_THAT(traces, ElementsAre(0U, 1U, 1U));
      });
}

TEST_F(TaskWalkTest, CollectsTheWaitsOfOneKindBeyondAQuarterOfTheLimit) {
  check_in_scope(
      [&](Scope& scope) {
        for (int i = 0; i < 200; ++i) scope.spawn(outer(event_));
        scope.spawn(sleeper(1ms));
      },
      [&] {
        const auto found = snapshot_of(*loop_, 100);
        EXPECT_EQ(found.waits, 201U);
        EXPECT_LE(found.entries.size(), 101U);
        const auto lines = lines_of(found);
        EXPECT_EQ(
            std::ranges::count(
                lines, "with_scope > outer > waiter: weir::EventWait<weir::ManualResetEvent>"),
            25);
        EXPECT_EQ(
            std::ranges::count(lines, "waiter: weir::EventWait<weir::ManualResetEvent> x 175"), 1);
        EXPECT_EQ(std::ranges::count(lines, "with_scope > sleeper: sleep"), 1) << "is not hidden";
        const auto collected = std::ranges::find_if(
            found.entries, [](const TaskSnapshot::Entry& each) { return each.collected; });
        ASSERT_NE(collected, found.entries.end());
        EXPECT_EQ(collected->count, 175U);
      });
}

TEST_F(TaskWalkTest, LooksAtABoundedNumberOfTasksPerStep) {
  check_in_scope(
      [&](Scope& scope) {
        for (int i = 0; i < 3000; ++i) scope.spawn(waiter(event_));
      },
      [&] {
        TaskWalk walk(*loop_, 1000);
        std::uint64_t seen = 0;
        unsigned steps = 0;
        for (bool ended = false; !ended; ++steps) {
          ended = walk.step();
          EXPECT_LE(walk.snapshot().waits - seen, TaskWalk::visits_per_step);
          seen = walk.snapshot().waits;
        }
        EXPECT_EQ(seen, 3000U);
        EXPECT_GE(steps, 3000U / TaskWalk::visits_per_step);
      });
}

// The walk survives every change between two of its steps.

TEST_F(TaskWalkTest, ContinuesWhenTasksEndAndBeginBetweenSteps) {
  constexpr std::size_t tasks = 1000;
  std::vector<std::unique_ptr<ManualResetEvent>> events;
  for (std::size_t i = 0; i < tasks; ++i) events.push_back(std::make_unique<ManualResetEvent>());
  const auto result = run(with_scope([&](Scope& scope) -> Task<> {
                            for (auto& each : events) scope.spawn(waiter(*each));
                            std::optional<TaskWalk> walk(std::in_place, *loop_, 1000);
                            std::size_t next = 0;
                            while (!walk->step()) {
                              for (int i = 0; i < 150 && next < tasks; ++i) events[next++]->set();
                              scope.spawn(waiter(event_));
                              co_await yield();
                            }
                            EXPECT_TRUE(walk->snapshot().complete);
                            EXPECT_GE(walk->snapshot().waits, 256U);
                            for (; next < tasks; ++next) events[next]->set();
                            event_.set();
                          }),
                          &root_);
  EXPECT_TRUE(result);
}

TEST_F(TaskWalkTest, ContinuesAboveASourceThatEndsOrIsCancelledBetweenSteps) {
  for (const bool cancelled : {false, true}) {
    event_.reset();
    ManualResetEvent inner_event;
    CancelSource inner(&root_);
    const auto result =
        run(with_scope([&](Scope& scope) -> Task<> {
              auto group = with_scope([&](Scope& tasks) -> Task<> {
                for (int i = 0; i < 1000; ++i) tasks.spawn(waiter(inner_event));
                co_return;
              });
              scope.spawn([](Loop& loop, CancelSource& source, Task<Result<>> task) -> Task<> {
                auto running = in_context({&loop, &source}, std::move(task));
                std::ignore = co_await std::move(running);
              }(*loop_, inner, std::move(group)));
              scope.spawn(sleeper(1h));
              co_await yield();
              TaskWalk walk(*loop_, 1000);
              EXPECT_FALSE(walk.step());
              cancelled ? inner.cancel() : inner_event.set();
              co_await yield();
              co_await yield();
              while (!walk.step()) {
              }
              EXPECT_TRUE(walk.snapshot().complete);
              const auto lines = lines_of(walk.snapshot());
              EXPECT_EQ(std::ranges::count(lines, "with_scope > sleeper: sleep"), 1);
              scope.cancel();
            }),
            &root_);
    EXPECT_TRUE(result) << cancelled;
  }
}

TEST_F(TaskWalkTest, TwoWalksDoNotDisturbEachOther) {
  check_in_scope(
      [&](Scope& scope) {
        for (int i = 0; i < 1000; ++i) scope.spawn(waiter(event_));
      },
      [&] {
        TaskWalk first(*loop_, 1000), second(*loop_, 1000);
        bool first_ended = false, second_ended = false;
        while (!first_ended || !second_ended) {
          if (!first_ended) first_ended = first.step();
          if (!second_ended) second_ended = second.step();
        }
        EXPECT_EQ(first.snapshot().waits, 1000U);
        EXPECT_EQ(second.snapshot().waits, 1000U);
      });
}

TEST_F(TaskWalkTest, MayBeDroppedBetweenSteps) {
  check_in_scope(
      [&](Scope& scope) {
        for (int i = 0; i < 1000; ++i) scope.spawn(waiter(event_));
      },
      [&] {
        {
          TaskWalk dropped(*loop_, 1000);
          EXPECT_FALSE(dropped.step());
        }
        EXPECT_EQ(snapshot_of(*loop_).waits, 1000U);
      });
}

TEST_F(TaskWalkTest, ATraceAtTheAddressOfAnEarlierOneIsANewTrace) {
  NumberedTrace trace("first");
  CancelSource traced(&root_);
  traced.set_trace(&trace);
  check_in_scope(
      [&](Scope& scope) {
        scope.spawn([](Loop& loop, CancelSource& source, ManualResetEvent& event) -> Task<> {
          auto task = with_scope([&](Scope& tasks) -> Task<> {
            for (int i = 0; i < 1000; ++i) tasks.spawn(waiter(event));
            co_return;
          });
          auto running = in_context({&loop, &source}, std::move(task));
          std::ignore = co_await std::move(running);
        }(*loop_, traced, event_));
      },
      [&] {
        TaskWalk walk(*loop_, 1000);
        EXPECT_FALSE(walk.step());
        trace.text = "second";
        while (!walk.step()) {
        }
        ASSERT_EQ(walk.snapshot().traces.size(), 2U);
        EXPECT_EQ(walk.snapshot().traces[0].id, "first");
        EXPECT_EQ(walk.snapshot().traces[1].id, "second");
      });
}

}  // namespace
}  // namespace weir
