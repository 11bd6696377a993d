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

TEST(MemoryThread, StepsWhenWokenAndWhenItsMomentComes) {
  MemoryHost host;
  const Instant began = host.now();
  std::vector<Duration> at;
  std::unique_ptr<HostThread> thread;
  Work work([&](int step) -> std::optional<Instant> {
    at.push_back(host.now() - began);
    if (step == 0) return Instant::min();
    if (step == 1) return after(host.now(), 5s);
    if (step == 2) thread->wake();
    if (step == 4) return std::nullopt;
    return never;
  });
  thread = host.make_thread({.name = "test"}, work);
  thread->wake();
  host.clock().move_to(began + 1s);
  EXPECT_TRUE(at.empty()) << "not started";
  ASSERT_TRUE(thread->start());
  host.clock().move_to(began + 3s);
  EXPECT_EQ(at, (std::vector<Duration>{1s, 1s}));
  host.clock().move_to(began + 9s);
  EXPECT_EQ(at, (std::vector<Duration>{1s, 1s, 6s, 6s}));
  thread->wake();
  thread->wake();
  host.clock().move_to(began + 10s);
  EXPECT_EQ(at.back(), 9s);
  EXPECT_EQ(at.size(), 5U);
  thread->wake();
  host.clock().move_to(began + 20s);
  EXPECT_EQ(at.size(), 5U) << "it has ended";
}

TEST(MemoryThread, TakesNoStepOnceItIsGone) {
  MemoryHost host;
  Work work([](int) -> std::optional<Instant> { return Instant::min(); });
  {
    const auto thread = host.make_thread({.name = "test"}, work);
    ASSERT_TRUE(thread->start());
  }
  host.clock().move_to(host.now() + 1s);
  EXPECT_EQ(work.steps, 0);
}

TEST(MemoryThread, CannotBeStartedWhereThereIsNoneLeft) {
  MemoryHost host;
  host.set_threads_max(1);
  Work work([](int) -> std::optional<Instant> { return std::nullopt; });
  const auto first = host.make_thread({.name = "test"}, work);
  const auto second = host.make_thread({.name = "test"}, work);
  ASSERT_TRUE(first->start());
  EXPECT_EQ(second->start().error(), system_error(EAGAIN));
  host.clock().move_to(host.now() + 1s);
  EXPECT_TRUE(second->start()) << "the first has ended";
}

}  // namespace
}  // namespace weir
