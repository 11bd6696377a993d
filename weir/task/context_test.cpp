// Tests of Context, this_context() and yield().
#include "weir/task/context.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "weir/loop/contract/detail/trace_context.hpp"
#include "weir/task/task.hpp"
#include "weir/testing/test/loop_fixture.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir::context_test {
namespace {

struct Stranger {};
struct Promising : ContextHolder {};
struct alignas(16) Aligned : ContextHolder {};
struct alignas(32) OverAligned : ContextHolder {};
static_assert(HasContext<Promising> && HasContext<Aligned>);
static_assert(!HasContext<Stranger> && !HasContext<OverAligned>);

struct Job final : TraceContext {
  std::string_view kind() const noexcept override { return "job"; }
  std::string_view id(IdBuffer) const noexcept override { return "7"; }
};

using ContextTest = LoopTest;

TEST_F(ContextTest, FollowsItsCancelSource) {
  const Job job;
  CancelSource source;
  source.set_trace(&job);
  const Context context{loop_.get(), &source};
  EXPECT_FALSE(context.cancelled());
  EXPECT_EQ(context.trace(), &job);
  source.cancel();
  EXPECT_TRUE(context.cancelled());
  EXPECT_EQ(context.trace(), &job);
}

TEST_F(ContextTest, AShieldIsNeverCancelledAndHasNoTrace) {
  const Context shield{loop_.get(), nullptr};
  EXPECT_FALSE(shield.cancelled());
  EXPECT_EQ(shield.trace(), nullptr);
  EXPECT_EQ(Context().loop, nullptr);
  EXPECT_EQ(Context().cancel, nullptr);
}

TEST_F(ContextTest, ThisContextDoesNotSuspend) {
  CancelSource cancel;
  cancel.cancel();
  bool others_ran = false;
  CallProbe other([&] { others_ran = true; });
  const auto body = [&]() -> Task<> {
    loop_->ready(other);
    const Context own = co_await this_context();
    EXPECT_EQ(own.loop, loop_.get());
    EXPECT_EQ(own.cancel, &cancel);
    EXPECT_FALSE(others_ran);
  };
  run(body(), &cancel);
}

TEST_F(ContextTest, YieldLetsEverythingRunThatIsReadyAndNothingMore) {
  std::vector<int> order;
  CallProbe behind([&] { order.push_back(5); });
  CallProbe first([&] {
    order.push_back(1);
    loop_->ready(behind);
  });
  CallProbe second([&] { order.push_back(2); });
  CallProbe third([&] { order.push_back(3); });
  const auto body = [&]() -> Task<> {
    for (CallProbe* each : {&first, &second, &third}) loop_->ready(*each);
    co_await yield();
    order.push_back(4);
    co_await yield();
    order.push_back(6);
  };
  run(body());
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4, 5, 6}));
}

}  // namespace
}  // namespace weir::context_test
