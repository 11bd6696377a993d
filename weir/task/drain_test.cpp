// Tests of DrainAwaiter and CancelOnDrain.
#include "weir/task/drain.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/task.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::drain_test {
namespace {

class DrainTest : public LoopTest {
 protected:
  void drain_after(Duration length) {
    platform_.at(platform_.now() + length, [this] { loop_->drain(); });
  }
  /// Awaits the drain, and lets the loop run once more.
  static Task<> wait_for_drain() {
    co_await inject::DrainAwaiter();
    co_await yield();
  }
  /// Sleeps for an hour under a CancelOnDrain.
  static Task<Result<>> nap_until_drain() {
    const Context outside = co_await this_context();
    inject::CancelOnDrain until(outside);
    EXPECT_EQ(until.context().loop, outside.loop);
    auto napping = in_context(until.context(), as_task(sleep(1h)));
    const auto slept = co_await std::move(napping);
    EXPECT_EQ(until.context().cancelled(), !slept);
    co_return slept;
  }
};

TEST_F(DrainTest, AwaiterReturnsWhenTheLoopDrains) {
  for (const Duration length : {1s, 0s}) {  // the loop drains the second time already
    CancelSource cancel;
    drain_after(length);
    run(wait_for_drain(), &cancel);
    EXPECT_EQ(elapsed(), 1s);
    EXPECT_FALSE(cancel.cancelled());
    cancel.cancel();  // it has left the source
  }
}

TEST_F(DrainTest, ChildThatADrainClosesHasNotFailed) {
  const auto close_later = [](Errc error) -> Task<Result<>> {
    static_cast<void>(co_await sleep(2s));
    co_return fail(error);
  };
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(close_later(Errc::closed));
    co_return;
  };
  EXPECT_TRUE(run(with_scope(OnFailure::isolate, body)));
  EXPECT_EQ(platform_.logged(), std::vector<std::string>{"weir: a task failed: closed"});
  drain_after(1s);
  const auto during_drain = [&](Scope& scope) -> Task<> {
    scope.spawn(close_later(Errc::closed));
    scope.spawn(close_later(Errc::conflict));
    static_cast<void>(co_await sleep(3s));
    EXPECT_EQ(scope.failures(), 1U) << "any other failure counts";
  };
  EXPECT_TRUE(run(with_scope(OnFailure::isolate, during_drain)));
  EXPECT_EQ(platform_.logged().size(), 2U);
  EXPECT_NE(platform_.logged().back(), "weir: a task failed: closed");
}

TEST_F(DrainTest, AwaiterNeedsNoCancelSource) {
  drain_after(1s);
  run(wait_for_drain());
  EXPECT_EQ(elapsed(), 1s);
  run(wait_for_drain());
  EXPECT_EQ(elapsed(), 1s);
}

TEST_F(DrainTest, AwaiterReturnsWhenTheTaskIsCancelled) {
  CancelSource cancel;
  platform_.at(platform_.now() + 1s, [&] { cancel.cancel(); });
  run(wait_for_drain(), &cancel);
  EXPECT_EQ(elapsed(), 1s);
  run(wait_for_drain(), &cancel);
  EXPECT_EQ(elapsed(), 1s);
  EXPECT_FALSE(loop_->draining());
  loop_->drain();  // the task has left the loop
}

TEST_F(DrainTest, AwaiterResumesOnceIfBothHappenTogether) {
  for (const bool drains_first : {false, true}) {
    loop_ = Loop::make(platform_, {}).value();
    CancelSource cancel;
    platform_.at(platform_.now() + 1s, [&] {
      if (drains_first) loop_->drain();
      cancel.cancel();
      loop_->drain();
    });
    const Instant begun = platform_.now();
    run(wait_for_drain(), &cancel);
    EXPECT_EQ(platform_.now(), begun + 1s);
  }
}

TEST_F(DrainTest, CancelOnDrainCancelsTheWorkBelowIt) {
  CancelSource outside;
  drain_after(1s);
  EXPECT_EQ(run(nap_until_drain(), &outside).error(), Errc::cancelled);
  EXPECT_EQ(elapsed(), 1s);
  EXPECT_FALSE(outside.cancelled());
}

TEST_F(DrainTest, CancelOnDrainIsCancelledFromTheStartOnADrainingLoop) {
  CancelSource outside;
  loop_->drain();
  EXPECT_EQ(run(nap_until_drain(), &outside).error(), Errc::cancelled);
  EXPECT_EQ(elapsed(), 0s);
  EXPECT_FALSE(outside.cancelled());
}

TEST_F(DrainTest, CancelOnDrainPassesTheCancellationOfItsParentOn) {
  CancelSource outside;
  platform_.at(platform_.now() + 1s, [&] { outside.cancel(); });
  EXPECT_EQ(run(nap_until_drain(), &outside).error(), Errc::cancelled);
  EXPECT_EQ(elapsed(), 1s);
  EXPECT_FALSE(loop_->draining());
}

TEST_F(DrainTest, CancelOnDrainDisturbsNoWorkThatEndsBefore) {
  EXPECT_TRUE(run(nap_until_drain()));
  EXPECT_EQ(elapsed(), 1h);
  loop_->drain();  // the object has left the loop
}

}  // namespace
}  // namespace weir::drain_test
