#include "weir/runtime/task_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weir/loop/os/os_platform.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/detail/task_walk.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::task_report_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// The text: a tree in which equal branches are one.

TaskEntry entry(std::string function, std::string awaits, std::size_t parent = TaskEntry::none) {
  return {.function = std::move(function), .awaits = std::move(awaits), .parent = parent};
}

TEST(TaskReportText, IndentsATaskBehindTheTaskThatWaitsForIt) {
  TaskReport report;
  report.cores = {{.core = 0, .answered = true, .complete = true, .waits = 2}};
  report.entries = {entry("main_task", ""), entry("serve", "", 0), entry("read_all", "read", 1),
                    entry("tick", "sleep", 0)};
  report.entries[1].run_by = "scope";
  report.entries[1].age = 90s;
  report.entries[2].age = 25ms;
  report.entries[3].age = 3h;
  EXPECT_EQ(report.to_text(),
            "core 0: 2 waits\n"
            "  main_task\n"
            "    serve [scope], 90.0 s\n"
            "      read_all awaits read, 25 ms\n"
            "    tick awaits sleep, 3.0 h\n");
}

TEST(TaskReportText, JoinsEqualBranchesAndKeepsADifferentOne) {
  TaskReport report;
  report.cores = {{.core = 3, .answered = true, .complete = true, .waits = 10'001}};
  report.entries = {entry("main_task", "")};
  for (int i = 0; i < 10'001; ++i) {
    const std::size_t parent = report.entries.size();
    report.entries.push_back(entry("serve", "", 0));
    report.entries.push_back(entry(i == 7000 ? "stuck_handler" : "idle", "read", parent));
    for (TaskEntry& each : {std::ref(report.entries[parent]), std::ref(report.entries.back())}) {
      each.age = std::chrono::seconds(i == 500 ? 200 : 5);
      each.trace_kind = "request";
      each.trace_id = "id-" + std::to_string(i);
      each.trace_name = "GET /";
    }
  }
  for (TaskEntry& each : report.entries) each.core = 3;
  EXPECT_EQ(report.to_text(),
            "core 3: 10,001 waits\n"
            "  main_task\n"
            "    10,000 x serve, oldest 3.3 min, for request id-500 (GET /) and others\n"
            "      idle awaits read, 3.3 min\n"
            "    serve, 5.0 s, for request id-7000 (GET /)\n"
            "      stuck_handler awaits read, 5.0 s\n");
}

TEST(TaskReportText, SaysThatJoinedBranchesAreForSeveralRequests) {
  TaskReport report;
  report.cores = {{.core = 0, .answered = true, .complete = true, .waits = 2}};
  report.entries = {entry("serve", ""), entry("handler", "sleep", 0), entry("serve", ""),
                    entry("handler", "sleep", 2)};
  for (const std::size_t handler : {1U, 3U}) {
    report.entries[handler].trace_kind = "request";
    report.entries[handler].trace_id = "id-" + std::to_string(handler);
  }
  EXPECT_EQ(report.to_text(),
            "core 0: 2 waits\n"
            "  2 x serve\n"
            "    handler awaits sleep, for request id-1 and others\n");
}

TEST(TaskReportText, AddsTheCountsOfEqualTasks) {
  TaskReport report;
  report.cores = {{.core = 0, .answered = true, .complete = true, .waits = 1008, .left_out = 3}};
  report.entries = {entry("main_task", ""), entry("idle", "read", 0), entry("idle", "read", 0),
                    entry("busy", "sleep")};
  report.entries[1].count = 1000;
  report.entries[2].count = 2;
  report.entries[3].count = 3;
  report.entries[3].collected = true;
  EXPECT_EQ(report.to_text(),
            "core 0: 1,008 waits, 3 left out\n"
            "  main_task\n"
            "    1,002 x idle awaits read\n"
            "  3 x busy awaits sleep (collected: too many tasks)\n");
}

TEST(TaskReportText, NamesACoreThatDoesNotAnswer) {
  TaskReport report;
  report.cores = {
      {.core = 0, .runs = "spin"}, {.core = 1}, {.core = 2, .answered = true, .waits = 1}};
  EXPECT_EQ(report.to_text(),
            "core 0: no answer in time: it runs spin\n"
            "core 1: no answer in time\n"
            "core 2: 1 wait (incomplete)\n");
}

// A text whose work grows with cores times entries takes a minute for this.
TEST(TaskReportText, TakesTimeInProportionToItsEntries) {
  constexpr unsigned cores = 40'000;
  TaskReport report;
  for (unsigned core = 0; core < cores; ++core) {
    report.cores.push_back({.core = core, .answered = true, .complete = true, .waits = 1});
    report.entries.push_back(entry("serve", "read"));
    report.entries.back().core = core;
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::string text = report.to_text();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_EQ(std::ranges::count(text, '\n'), 2 * cores) << "no branches of two cores are joined";
  EXPECT_TRUE(text.ends_with("core 39999: 1 wait\n  serve awaits read\n"));
}

// Reports of a runtime in memory.

RuntimeOptions quiet() {
  RuntimeOptions options;
  options.announce = false;
  return options;
}

Task<> stuck_task(Duration length) {
  std::ignore = co_await sleep(length);
}
Task<> caller_of_stuck_task(Duration length) {
  co_await stuck_task(length);
}
Task<> remote_task(Duration length) {
  co_await stuck_task(length);
}
Task<> caller_of_core(unsigned core, Duration length) {
  co_await on_core(core, remote_task, length);
}

class TaskReportInMemory : public testing::Test {
 protected:
  /// Returns lines like "1: caller > stuck: sleep" of a report.
  static std::vector<std::string> lines_of(const TaskReport& report) {
    const auto short_name = [](const TaskEntry& of) {
      std::string name = of.function.substr(0, of.function.find('<'));
      name = name.substr(name.rfind("::") == name.npos ? 0 : name.rfind("::") + 2);
      return of.run_by.empty() ? name : name + " [" + of.run_by + "]";
    };
    std::vector<std::string> lines;
    for (const TaskEntry& each : report.entries) {
      if (each.awaits.empty()) continue;
      std::string line = short_name(each) + ": " + each.awaits;
      for (auto up = each.parent; up != TaskEntry::none; up = report.entries[up].parent)
        line = short_name(report.entries[up]) + " > " + line;
      lines.push_back(std::to_string(each.core) + ": " + line);
    }
    return lines;
  }
  MemoryPlatform platform_{{.cores = 2}};
};

TEST_F(TaskReportInMemory, NamesTheTasksOfAllCores) {
  TaskReport report;
  const auto body = [&](Scope& scope) -> Task<> {
    if (scope.loop().core() == 1) {
      std::ignore = co_await sleep(5s);
      co_return;
    }
    scope.spawn(caller_of_stuck_task(5s));
    scope.spawn(caller_of_core(1, 5s));
    std::ignore = co_await sleep(1s);
    auto made = co_await report_tasks();
    EXPECT_TRUE(made);
    if (made) report = *std::move(made);
  };
  Runtime runtime(platform_, quiet());
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
  ASSERT_EQ(report.cores.size(), 2U);
  for (const TaskCore& each : report.cores) EXPECT_TRUE(each.answered && each.complete);
  const auto lines = lines_of(report);
  EXPECT_THAT(lines, Contains(HasSubstr("caller_of_stuck_task [scope] > stuck_task: sleep")));
  EXPECT_THAT(lines, Contains(HasSubstr("caller_of_core [scope] > on_core: on_core")));
  EXPECT_THAT(lines, Contains("1: remote_task [on_core] > stuck_task: sleep"));
  EXPECT_THAT(lines, Contains(HasSubstr("0: with_scope [core] > ")));
  std::size_t ages = 0;  // not those of frames that the compiler has put into others
  for (const TaskEntry& each : report.entries) {
    if (!each.function.contains("stuck_task") || each.age < Duration(0)) continue;
    ++ages;
    EXPECT_NEAR(std::chrono::duration<double>(each.age).count(), 1, 0.05) << each.core;
  }
  EXPECT_GT(ages, 0U);
}

TEST_F(TaskReportInMemory, ASignalLogsTheTasks) {
  platform_.at(platform_.now() + 3s, [&] { platform_.raise(loop::Signal::quit); });
  platform_.at(platform_.now() + 6s, [&] { platform_.raise(loop::Signal::quit); });
  const auto body = [](Scope& scope) -> Task<> {
    scope.spawn(caller_of_stuck_task(5s));
    std::ignore = co_await sleep(10s);
  };
  Runtime runtime(platform_, quiet());
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
  const auto lines = platform_.logged();
  EXPECT_EQ(std::ranges::count(lines, "weir: SIGQUIT: tasks of this process:"), 2);
  EXPECT_EQ(std::ranges::count(lines, "weir: SIGQUIT: end of the tasks"), 2);
  const auto named = std::ranges::count_if(lines, [](const std::string& line) {
    return line.find("stuck_task awaits sleep") != line.npos;
  });
  EXPECT_EQ(named, 2) << "once for each core, in the first dump only";
  EXPECT_THAT(lines, Not(Contains(HasSubstr("SIGTERM"))));
}

TEST_F(TaskReportInMemory, ACancelledReportEndsSoon) {
  const auto body = [](Scope& scope) -> Task<> {
    if (scope.loop().core() != 0) co_return;
    CancelSource source;
    auto task = report_tasks();
    auto running = in_context({&scope.loop(), &source}, std::move(task));
    source.cancel();
    const auto report = co_await std::move(running);
    EXPECT_EQ(report ? std::error_code() : report.error(), Errc::cancelled);
  };
  Runtime runtime(platform_, quiet());
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
}

TEST_F(TaskReportInMemory, DoesOneStepOfItsWalkInEachTurn) {
  constexpr std::size_t tasks = 10'000;
  std::uint64_t turns = 0;
  const auto body = [&](Scope& scope) -> Task<> {
    if (scope.loop().core() != 0) co_return;
    for (std::size_t i = 0; i < tasks; ++i) scope.spawn(stuck_task(1h));
    std::ignore = co_await sleep(1s);
    const std::uint64_t before = scope.loop().counters().turns.value();
    EXPECT_TRUE(co_await report_tasks());
    turns = scope.loop().counters().turns.value() - before;
    scope.cancel();
  };
  Runtime runtime(platform_, quiet());
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
  EXPECT_GE(turns, tasks / TaskWalk::visits_per_step);
}

TEST_F(TaskReportInMemory, ManyReportsAtTheSameTime) {
  const auto body = [](Scope& scope) -> Task<> {
    for (int i = 0; i < 1000; ++i) scope.spawn(stuck_task(1s));
    for (int i = 0; i < 10; ++i) {
      scope.spawn([]() -> Task<> {
        const auto report = co_await report_tasks();
        EXPECT_TRUE(report);
        EXPECT_GE(report ? report->cores[1].waits : 0, 1000U);
      }());
    }
    co_return;
  };
  Runtime runtime(platform_, quiet());
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
}

// A core that runs one function for long, on the real machine.

[[gnu::noinline]] void block_the_core(std::atomic<bool>& go_on) {
  while (go_on.load()) std::this_thread::yield();
}
Task<> blocking_task(std::atomic<bool>& go_on) {
  co_await yield();
  block_the_core(go_on);
}

Task<> many_tasks(std::size_t count) {
  const auto body = [count](Scope& scope) -> Task<> {
    for (std::size_t i = 0; i < count; ++i) scope.spawn(stuck_task(1h));
    co_return;
  };
  std::ignore = co_await with_scope(OnFailure::isolate, body);
}
Task<> call_for(Duration length, std::size_t count) {
  auto call = on_core(1, many_tasks, count);
  std::ignore = co_await timeout(length, as_task(std::move(call)));
}

/// The owner destroys the source of each call on another thread than that of the walk.
TEST(TaskReport, CallsOnAnotherCoreEndDuringTheWalk) {
  RuntimeOptions options = quiet();
  options.cores = 2;
  options.pin = false;
  const auto body = [](Scope& scope) -> Task<> {
    if (scope.loop().core() != 0) co_return;
    for (int round = 0; round < 30; ++round) {
      for (int call = 1; call <= 8; ++call) scope.spawn(call_for(call * 100us, 400));
      for (int report = 0; report < 3; ++report) {
        EXPECT_TRUE(co_await report_tasks());
      }
    }
  };
  OsPlatform platform;
  Runtime runtime(platform, options);
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
}

TEST(TaskReport, NamesWhatACoreRunsThatDoesNotAnswer) {
  RuntimeOptions options = quiet();
  options.cores = 2;
  options.pin = false;
  std::atomic<bool> go_on{true};
  TaskReport report;
  const auto body = [&](Scope& scope) -> Task<> {
    if (scope.loop().core() == 1) {
      co_await blocking_task(go_on);
      co_return;
    }
    scope.spawn(stuck_task(50ms));
    const TaskReportOptions impatient{.timeout = 200ms};
    auto made = co_await report_tasks(impatient);
    if (made) report = *std::move(made);
    go_on = false;
  };
  OsPlatform platform;
  Runtime runtime(platform, options);
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
  ASSERT_EQ(report.cores.size(), 2U);
  EXPECT_TRUE(report.cores[0].answered);
  EXPECT_FALSE(report.cores[1].answered);
  EXPECT_THAT(report.cores[1].runs, HasSubstr("blocking_task"));
  EXPECT_THAT(report.to_text(), HasSubstr("core 1: no answer in time: it runs "));
}

/// A platform with a log that takes its time for each line of a report.
class SlowLog final : public OsPlatform {
 public:
  void write_line(std::string_view line) noexcept override {
    const auto end = std::chrono::steady_clock::now() + (line.starts_with("  ") ? 20ms : 0ms);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
    const std::lock_guard lock(mutex_);
    lines_.emplace_back(line);
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

Task<> nested_task(unsigned depth) {
  if (depth > 0) co_return co_await nested_task(depth - 1);
  co_await stuck_task(1h);
}

TEST(TaskReport, ADumpEndsSoonWhenTheProcessEnds) {
  constexpr unsigned depth_max = 40;  // 860 lines, which take 17 s
  SlowLog platform;
  RuntimeOptions one_core = quiet();
  one_core.cores = 1;
  Runtime runtime(platform, one_core);
  std::chrono::steady_clock::time_point ending;
  const auto body = [&](Scope& scope) -> Task<> {
    for (unsigned depth = 0; depth < depth_max; ++depth) scope.spawn(nested_task(depth));
    ::kill(::getpid(), SIGQUIT);
    while (platform.lines().size() < 5) {
      std::ignore = co_await sleep(5ms);
    }
    ending = std::chrono::steady_clock::now();
    runtime.stop();
  };
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - ending, 5s);
  const auto lines = platform.lines();
  EXPECT_THAT(lines, Contains("weir: SIGQUIT: tasks of this process:"));
  EXPECT_THAT(lines, Contains("... (more lines are left out: the process ends)"));
}

}  // namespace
}  // namespace weir::task_report_test
