// Tests of simulated threads.
#include "weir/testing/memory/detail/memory_thread.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <vector>

#include "weir/testing/memory/memory_platform.hpp"
#include "weir/testing/test/scripted_platform.hpp"

namespace weir::memory_thread_test {
namespace {

struct Work final : loop::ThreadWork {
  explicit Work(std::function<std::optional<Instant>(int)> each) : each_step(std::move(each)) {}
  std::optional<Instant> step() noexcept override { return each_step(steps++); }
  std::function<std::optional<Instant>(int)> each_step;
  int steps = 0;
};

TEST(MemoryThread, StepsWhenWokenAndAtItsTime) {
  MemoryPlatform platform;
  const Instant began = platform.now();
  std::vector<Duration> at;
  std::unique_ptr<loop::PlatformThread> thread;
  Work work([&](int step) -> std::optional<Instant> {
    at.push_back(platform.now() - began);
    if (step == 0) return Instant::min();
    if (step == 1) return after(platform.now(), 5s);
    if (step == 2) thread->wake();
    if (step == 4) return std::nullopt;
    return never;
  });
  thread = platform.make_thread({.name = "test"}, work);
  thread->wake();
  platform.clock().move_to(began + 1s);
  EXPECT_TRUE(at.empty()) << "not started";
  ASSERT_TRUE(thread->start());
  platform.clock().move_to(began + 3s);
  EXPECT_EQ(at, (std::vector<Duration>{1s, 1s}));
  platform.clock().move_to(began + 9s);
  EXPECT_EQ(at, (std::vector<Duration>{1s, 1s, 6s, 6s}));
  thread->wake();
  thread->wake();
  platform.clock().move_to(began + 10s);
  EXPECT_EQ(at.back(), 9s);
  EXPECT_EQ(at.size(), 5U);
  thread->wake();
  platform.clock().move_to(began + 20s);
  EXPECT_EQ(at.size(), 5U) << "the thread has ended";
}

TEST(MemoryThread, TakesNoStepAfterItsDestruction) {
  MemoryPlatform platform;
  Work work([](int) -> std::optional<Instant> { return Instant::min(); });
  {
    const auto thread = platform.make_thread({.name = "test"}, work);
    ASSERT_TRUE(thread->start());
  }
  platform.clock().move_to(platform.now() + 1s);
  EXPECT_EQ(work.steps, 0);
}

TEST(MemoryThread, StartFailsAtTheThreadLimit) {
  MemoryPlatform platform;
  platform.set_threads_max(1);
  Work work([](int) -> std::optional<Instant> { return std::nullopt; });
  const auto first = platform.make_thread({.name = "test"}, work);
  const auto second = platform.make_thread({.name = "test"}, work);
  ASSERT_TRUE(first->start());
  EXPECT_EQ(second->start().error(), system_error(EAGAIN));
  platform.clock().move_to(platform.now() + 1s);
  EXPECT_TRUE(second->start()) << "the first thread has ended";
}

TEST(MemoryThread, EachStepStartsLate) {
  ScriptedPlatform platform;
  platform.script.step_time = 3ms;
  const Instant began = platform.now();
  std::vector<Duration> at;
  Work work([&](int step) -> std::optional<Instant> {
    EXPECT_EQ(platform.script.steps.back(), '(') << "reported before the step";
    at.push_back(platform.now() - began);
    if (step == 0) return after(began, 10ms);
    return step == 3 ? std::nullopt : std::optional(never);
  });
  const auto thread = platform.make_thread({.name = "test"}, work);
  ASSERT_TRUE(thread->start());
  EXPECT_EQ(platform.threads_running(), 1U);
  platform.clock().move_to(began + 20ms);
  EXPECT_EQ(at, (std::vector<Duration>{3ms, 13ms}));
  thread->wake();
  platform.clock().move_to(began + 21ms);
  thread->wake();  // the earlier wake is still the first
  platform.clock().move_to(began + 30ms);
  EXPECT_EQ(at, (std::vector<Duration>{3ms, 13ms, 23ms}));
  thread->wake();
  platform.script.step_time = 1ms;
  thread->wake();  // this one is earlier
  platform.clock().move_to(began + 40ms);
  EXPECT_EQ(at, (std::vector<Duration>{3ms, 13ms, 23ms, 31ms}));
  EXPECT_EQ(platform.script.steps, "()()()()");
  EXPECT_EQ(platform.threads_running(), 0U) << "the last step has ended the thread";
  EXPECT_EQ(platform.clock().next(), never);
}

TEST(MemoryThread, AWakeDuringAStepCausesOneMore) {
  ScriptedPlatform platform;
  const Instant began = platform.now();
  std::unique_ptr<loop::PlatformThread> thread;
  Work work([&](int step) -> std::optional<Instant> {
    if (step < 2) thread->wake();
    return step < 3 ? after(platform.now(), 1s) : never;
  });
  thread = platform.make_thread({.name = "test"}, work);
  ASSERT_TRUE(thread->start());
  platform.clock().move_to(began);
  EXPECT_EQ(work.steps, 3);
  platform.clock().move_to(began + 1s - 1ns);
  EXPECT_EQ(work.steps, 3);
  platform.clock().move_to(began + 1s);
  EXPECT_EQ(work.steps, 4);
  EXPECT_EQ(thread->cpu_time(), Duration());
  EXPECT_EQ(thread->state(), os::ThreadState::unknown);
}

TEST(MemoryThread, AWakeDuringTheLastStepHasNoEffect) {
  ScriptedPlatform platform;
  std::unique_ptr<loop::PlatformThread> thread;
  Work work([&](int) -> std::optional<Instant> {
    thread->wake();
    return std::nullopt;
  });
  thread = platform.make_thread({.name = "test"}, work);
  ASSERT_TRUE(thread->start());
  platform.clock().move_to(platform.now());
  EXPECT_EQ(work.steps, 1);
  EXPECT_EQ(platform.threads_running(), 0U);
  EXPECT_EQ(platform.clock().next(), never);
  thread->wake();
  platform.clock().move_to(platform.now() + 1s);
  EXPECT_EQ(work.steps, 1);
}

TEST(MemoryThread, ADestroyedThreadDoesNotRun) {
  ScriptedPlatform platform;
  Work work([](int) -> std::optional<Instant> { return never; });
  auto waiting = platform.make_thread({.name = "test"}, work);
  ASSERT_TRUE(waiting->start());
  platform.clock().move_to(platform.now());
  EXPECT_EQ(platform.threads_running(), 1U);
  waiting->wake();
  EXPECT_NE(platform.clock().next(), never);
  waiting.reset();
  EXPECT_EQ(platform.threads_running(), 0U);
  EXPECT_EQ(platform.clock().next(), never);
  EXPECT_EQ(work.steps, 1);
  {
    const auto never_started = platform.make_thread({.name = "test"}, work);
  }
  EXPECT_EQ(platform.threads_running(), 0U);
}

}  // namespace
}  // namespace weir::memory_thread_test
