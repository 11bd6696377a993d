// Tests of simulated threads.
#include "weir/testing/memory/detail/memory_thread.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <vector>

#include "weir/testing/memory/memory_platform.hpp"

namespace weir {
namespace {

struct Work final : ThreadWork {
  explicit Work(std::function<std::optional<Instant>(int)> each) : each_step(std::move(each)) {}
  std::optional<Instant> step() noexcept override { return each_step(steps++); }
  std::function<std::optional<Instant>(int)> each_step;
  int steps = 0;
};

TEST(MemoryThread, StepsWhenWokenAndAtItsTime) {
  MemoryPlatform platform;
  const Instant began = platform.now();
  std::vector<Duration> at;
  std::unique_ptr<PlatformThread> thread;
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

}  // namespace
}  // namespace weir
