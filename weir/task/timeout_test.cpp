// Tests of timeout().
#include "weir/task/timeout.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::timeout_test {
namespace {

using TimeoutTest = LoopTest;

Task<Result<int>> slow(Duration length, int value) {
  WEIR_CO_TRY(co_await sleep(length));
  co_return value;
}

TEST_F(TimeoutTest, ReturnsTheValueOfATaskInTime) {
  EXPECT_EQ(run(timeout(2s, slow(1s, 5))).value(), 5);
  EXPECT_EQ(elapsed(), 1s);
  EXPECT_EQ(loop_->timers().armed(), 0U);
}

TEST_F(TimeoutTest, CancelsATaskThatIsTooSlow) {
  EXPECT_EQ(run(timeout(2s, slow(3s, 5))).error(), Errc::timed_out);
  EXPECT_EQ(elapsed(), 2s);
}

TEST_F(TimeoutTest, ATaskMayFinishImmediately) {
  EXPECT_EQ(run(timeout(0s, slow(0s, 5))).error(), Errc::timed_out);
  const auto immediate = []() -> Task<Result<int>> { co_return 4; };
  EXPECT_EQ(run(timeout(0s, immediate())).value(), 4);
  EXPECT_EQ(run(timeout(-5s, immediate())).value(), 4);
  EXPECT_EQ(run(timeout(Duration::max(), immediate())).value(), 4);
  EXPECT_EQ(elapsed(), 0s);
}

TEST_F(TimeoutTest, OwnErrorsPassThrough) {
  const auto fails = [](Duration length) -> Task<Result<int>> {
    std::ignore = co_await sleep(length);
    co_return fail(Errc::bad_input);
  };
  EXPECT_EQ(run(timeout(2s, fails(1s))).error(), Errc::bad_input);
  EXPECT_EQ(run(timeout(1s, fails(2s))).error(), Errc::bad_input) << "even if late";
}

TEST_F(TimeoutTest, OwnExceptionsPassThrough) {
  const auto throws = []() -> Task<Result<int>> {
    std::ignore = co_await sleep(5s);
    throw std::runtime_error("own");
  };
  EXPECT_THROW(static_cast<void>(run(timeout(1s, throws()))), std::runtime_error);
  EXPECT_EQ(elapsed(), 1s);
}

TEST_F(TimeoutTest, AValueBeatsTheDeadline) {
  const auto stubborn = []() -> Task<Result<int>> {
    EXPECT_EQ((co_await sleep(5s)).error(), Errc::cancelled);
    co_return 8;
  };
  EXPECT_EQ(run(timeout(1s, stubborn())).value(), 8);
}

// The work's own timer fires in the same turn as the timeout, so the work has succeeded.
TEST_F(TimeoutTest, FinishingAtTheDeadlineIsInTime) {
  const auto exact = [](Instant moment) -> Task<Result<int>> {
    WEIR_CO_TRY(co_await sleep_until(moment));
    co_return 6;
  };
  const Instant moment = platform_.now() + 1s;
  const auto work_first = [&](Scope& scope) -> Task<Result<int>> {
    // The timer of a sleep that begins before the timeout fires before it.
    Result<int> value = fail(Errc::closed);
    scope.spawn([](Task<Result<int>> task, Result<int>& to) -> Task<> {
      to = co_await std::move(task);
    }(exact(moment), value));
    std::ignore = co_await timeout(1s, exact(moment + 1s));
    co_return value;
  };
  EXPECT_EQ(run(with_scope(work_first)).value(), 6);
}

TEST_F(TimeoutTest, WorksForPlainTasks) {
  const auto plain = [](Duration length) -> Task<std::string> {
    const auto slept = co_await sleep(length);
    co_return slept ? "slept" : "woken";
  };
  EXPECT_EQ(run(timeout(2s, plain(1s))).value(), "slept");
  EXPECT_EQ(run(timeout(1s, plain(2s))).value(), "woken");
  const auto nothing = [](Duration length) -> Task<> { std::ignore = co_await sleep(length); };
  EXPECT_TRUE(run(timeout(2s, nothing(1s))));
  EXPECT_EQ(run(timeout(1s, nothing(2s))).error(), Errc::timed_out);
  const auto pointer = []() -> Task<std::unique_ptr<int>> { co_return std::make_unique<int>(2); };
  EXPECT_EQ(**run(timeout(1s, pointer())), 2);
}

TEST_F(TimeoutTest, WorksForAwaitables) {
  EXPECT_TRUE(run(timeout(2s, sleep(1s))));
  EXPECT_EQ(run(timeout(1s, sleep(2s))).error(), Errc::timed_out);
  EXPECT_EQ(elapsed(), 2s);
}

TEST_F(TimeoutTest, TheLengthCountsFromTheAwait) {
  const auto late = [this]() -> Task<> {
    auto timed = timeout(1s, slow(1h, 5));
    platform_.clock().move_to(platform_.now() + 3s);  // in the middle of this turn
    EXPECT_EQ((co_await std::move(timed)).error(), Errc::timed_out);
  };
  run(late());
  EXPECT_EQ(elapsed(), 4s);
}

TEST_F(TimeoutTest, ALengthOfZeroOrLessStillLetsTheTaskRunUntilItWaits) {
  for (const Duration length : {Duration(0), Duration(-5s), Duration::min()}) {
    bool ran = false;
    const auto notes = [&]() -> Task<Result<>> {
      ran = true;
      co_return co_await sleep(1h);
    };
    EXPECT_EQ(run(timeout(length, notes())).error(), Errc::timed_out);
    EXPECT_TRUE(ran);
  }
  EXPECT_EQ(elapsed(), 0s);
}

TEST_F(TimeoutTest, CancelledFromOutsideIsCancelled) {
  CancelSource cancel;
  platform_.at(platform_.now() + 1s, [&] { cancel.cancel(); });
  EXPECT_EQ(run(timeout(2s, slow(3s, 5)), &cancel).error(), Errc::cancelled);
  EXPECT_EQ(elapsed(), 1s);
  EXPECT_EQ(run(timeout(0s, slow(3s, 5)), &cancel).error(), Errc::cancelled);
  EXPECT_EQ(elapsed(), 1s);
}

TEST_F(TimeoutTest, ACancellationFromOutsideBeatsATimeoutThatFollows) {
  const auto ends_late = []() -> Task<Result<>> {
    const Context own = co_await this_context();
    const auto slept = co_await sleep(1h);
    auto tidy = in_context(Context{own.loop, nullptr}, as_task(sleep(5s)));
    EXPECT_TRUE(co_await std::move(tidy));
    co_return slept;
  };
  CancelSource cancel;
  platform_.at(platform_.now() + 1s, [&] { cancel.cancel(); });
  EXPECT_EQ(run(timeout(3s, ends_late()), &cancel).error(), Errc::cancelled);
  EXPECT_EQ(elapsed(), 6s);
  const auto plain = [&]() -> Task<> { std::ignore = co_await ends_late(); };
  CancelSource again;
  platform_.at(platform_.now() + 1s, [&] { again.cancel(); });
  EXPECT_TRUE(run(timeout(3s, plain()), &again)) << "the timeout did not cut it short";
  EXPECT_EQ(elapsed(), 12s);
}

TEST_F(TimeoutTest, TheInnerOfTwoMayExpire) {
  EXPECT_EQ(run(timeout(3s, timeout(1s, slow(5s, 5)))).error(), Errc::timed_out);
  EXPECT_EQ(elapsed(), 1s);
}

TEST_F(TimeoutTest, TheOuterOfTwoMayExpire) {
  const auto inner = []() -> Task<Result<int>> {
    const auto value = co_await timeout(3s, slow(5s, 5));
    EXPECT_EQ(value.error(), Errc::cancelled) << "the inner timeout did not expire";
    co_return value;
  };
  EXPECT_EQ(run(timeout(1s, inner())).error(), Errc::timed_out);
  EXPECT_EQ(elapsed(), 1s);
}

TEST_F(TimeoutTest, BothMayExpireAtTheSameTime) {
  EXPECT_EQ(run(timeout(1s, timeout(1s, slow(5s, 5)))).error(), Errc::timed_out);
  EXPECT_EQ(elapsed(), 1s);
}

TEST_F(TimeoutTest, WaitsForTheTaskThatItCancelled) {
  const auto slow_to_end = []() -> Task<Result<>> {
    const Context own = co_await this_context();
    const auto slept = co_await sleep(1h);
    const auto tidy = []() -> Task<> { std::ignore = co_await sleep(2s); };
    co_await in_context(Context{own.loop, nullptr}, tidy());
    co_return slept;
  };
  EXPECT_EQ(run(timeout(1s, slow_to_end())).error(), Errc::timed_out);
  EXPECT_EQ(elapsed(), 3s);
}

TEST_F(TimeoutTest, WorksManyTimesInALoop) {
  const auto loop = []() -> Task<int> {
    int in_time = 0;
    for (int i = 0; i < 2000; ++i) {
      const Duration length = i % 2 == 0 ? 5ms : 15ms;
      const auto value = co_await timeout(10ms, slow(length, i));
      in_time += value ? 1 : 0;
    }
    co_return in_time;
  };
  EXPECT_EQ(run(loop()), 1000);
  EXPECT_EQ(elapsed(), 15s);
}

// Every cancellation returns the right error immediately and leaves nothing behind.
TEST_F(TimeoutTest, EndsWhenCancelledAtEveryStep) {
  int in_time = 0, cancelled = 0;
  for (int step = 0; step <= 12; ++step) {
    CancelSource cancel;
    const auto event =
        platform_.at(platform_.now() + step * Duration(1ms), [&] { cancel.cancel(); });
    const auto value = run(timeout(20ms, timeout(9ms, slow(8ms, 1))), &cancel);
    platform_.clock().cancel(event);
    if (value) {
      ++in_time;
    } else {
      EXPECT_EQ(value.error(), Errc::cancelled);
      ++cancelled;
    }
    EXPECT_EQ(loop_->timers().armed(), 0U);
  }
  EXPECT_EQ(in_time, 4);
  EXPECT_EQ(cancelled, 9);
}

}  // namespace
}  // namespace weir::timeout_test
