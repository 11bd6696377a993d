// Tests of all(), settled(), race() and first_ok().
#include "weir/task/combinators.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::combinators_test {
namespace {

class CombinatorsTest : public LoopTest {
 protected:
  std::uint64_t dropped() const { return detail::DroppedExceptions::of(*loop_).count.value(); }
};

Task<Result<int>> slow(Duration length, int value) {
  WEIR_CO_TRY(co_await sleep(length));
  co_return value;
}

Task<Result<int>> fails(Duration length, Errc error) {
  WEIR_CO_TRY(co_await sleep(length));
  co_return fail(error);
}

Task<Result<int>> throws(Duration length, std::string what) {
  std::ignore = co_await sleep(length);
  throw std::runtime_error(what);
}

/// Ends only `length` after it was cancelled.
Task<Result<int>> ends_slowly(Duration more, bool& ended) {
  EXPECT_EQ((co_await sleep_until(never)).error(), Errc::cancelled);
  const Context own = co_await this_context();
  std::ignore = co_await in_context(Context{own.loop, nullptr}, slow(more, 0));
  ended = true;
  co_return fail(Errc::cancelled);
}

Task<Result<int>> immediate(int value) {
  co_return value;
}

template <class T>
std::string thrown_by(T function) {
  try {
    function();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing";
}

template <class... T>
auto several(T... tasks) {
  std::vector<std::common_type_t<T...>> gathered;
  (gathered.push_back(std::move(tasks)), ...);
  return gathered;
}

// --- all ----------------------------------------------------------------------------------------

TEST_F(CombinatorsTest, AllGivesEveryValueInOrder) {
  const auto text = []() -> Task<std::string> { co_return "text"; };
  const auto truth = []() -> Task<bool> { co_return true; };
  const auto nothing = []() -> Task<> { co_return; };
  const auto empty = []() -> Task<Result<>> { co_return {}; };
  const auto pointer = []() -> Task<std::unique_ptr<int>> { co_return std::make_unique<int>(3); };
  const auto values =
      run(all(slow(3s, 1), slow(1s, 2), text(), truth(), nothing(), empty(), pointer()));
  ASSERT_TRUE(values);
  EXPECT_EQ(std::get<0>(*values), 1);
  EXPECT_EQ(std::get<1>(*values), 2);
  EXPECT_EQ(std::get<2>(*values), "text");
  EXPECT_TRUE(std::get<3>(*values));
  EXPECT_EQ(*std::get<6>(*values), 3);
  static_assert(
      std::is_same_v<std::tuple_element_t<4, std::decay_t<decltype(*values)>>, std::monostate>);
  EXPECT_EQ(elapsed(), 3s) << "the tasks run concurrently";
}

TEST_F(CombinatorsTest, AllMayHaveNoTasks) {
  EXPECT_TRUE(run(all()));
  const auto values = run(all(std::vector<Task<int>>{}));
  ASSERT_TRUE(values);
  EXPECT_TRUE(values->empty());
}

TEST_F(CombinatorsTest, AllOfAVectorGivesValuesInItsOrder) {
  std::vector<Task<Result<int>>> tasks;
  for (int i = 0; i < 100; ++i) tasks.push_back(slow(std::chrono::seconds((i * 37) % 100), i));
  const auto values = run(all(std::move(tasks)));
  ASSERT_TRUE(values);
  for (int i = 0; i < 100; ++i) EXPECT_EQ((*values)[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(elapsed(), 99s);
}

TEST_F(CombinatorsTest, TheFirstFailureOfAllCancelsTheRest) {
  EXPECT_EQ(run(all(slow(1h, 1), fails(2s, Errc::conflict), fails(3s, Errc::closed))).error(),
            Errc::conflict);
  EXPECT_EQ(elapsed(), 2s);
  EXPECT_EQ(
      run(all(several(slow(1h, 1), fails(3s, Errc::closed), fails(2s, Errc::conflict)))).error(),
      Errc::conflict);
  EXPECT_EQ(elapsed(), 4s);
}

TEST_F(CombinatorsTest, AllWaitsForTheOnesThatItCancelled) {
  bool ended = false;
  EXPECT_EQ(run(all(ends_slowly(5s, ended), fails(1s, Errc::conflict))).error(), Errc::conflict);
  EXPECT_TRUE(ended);
  EXPECT_EQ(elapsed(), 6s);
}

TEST_F(CombinatorsTest, AllThrowsTheFirstExceptionAndCountsTheOthers) {
  EXPECT_EQ(thrown_by([&] {
              static_cast<void>(run(all(throws(3s, "a"), throws(1s, "b"), throws(2s, "c"))));
            }),
            "b");
  EXPECT_EQ(elapsed(), 1s);
  EXPECT_EQ(dropped(), 2U);
  EXPECT_EQ(
      thrown_by([&] { static_cast<void>(run(all(several(throws(3s, "a"), throws(1s, "b"))))); }),
      "b");
  EXPECT_EQ(dropped(), 3U);
}

Task<int> throws_plainly(Duration length, std::string what) {
  std::ignore = co_await sleep(length);
  throw std::runtime_error(what);
}

TEST_F(CombinatorsTest, AllThrowsTheExceptionOfATaskWithoutAResult) {
  const auto nothing = [](Duration length) -> Task<> { std::ignore = co_await sleep(length); };
  EXPECT_EQ(thrown_by([&] {
              static_cast<void>(run(all(nothing(2s), throws_plainly(1s, "plain"), slow(1h, 1))));
            }),
            "plain");
  EXPECT_EQ(thrown_by([&] { static_cast<void>(run(all(several(throws_plainly(1s, "plain"))))); }),
            "plain");
  EXPECT_EQ(dropped(), 0U) << "the exception was thrown again, not dropped";
}

TEST_F(CombinatorsTest, ErrorsAfterTheFirstFailureAreNotCountedAsExceptions) {
  EXPECT_EQ(run(all(fails(1s, Errc::conflict), fails(1s, Errc::closed))).error(), Errc::conflict);
  EXPECT_EQ(dropped(), 0U);
  EXPECT_EQ(run(all(fails(1s, Errc::conflict), throws(2s, "late"))).error(), Errc::conflict);
  EXPECT_EQ(dropped(), 1U);
}

TEST_F(CombinatorsTest, AFailureInsideTheStartLeavesTheRestUnstarted) {
  bool started = false;
  const auto notes = [](bool& flag) -> Task<Result<int>> {
    flag = true;
    co_return 1;
  };
  const auto fails_immediately = []() -> Task<Result<int>> { co_return fail(Errc::bad_input); };
  EXPECT_EQ(run(all(fails_immediately(), notes(started))).error(), Errc::bad_input);
  EXPECT_EQ(run(all(several(fails_immediately(), notes(started)))).error(), Errc::bad_input);
  EXPECT_FALSE(started);
}

TEST_F(CombinatorsTest, AllTakesOnlyAvailableValuesUnderACancelledParent) {
  CancelSource cancel;
  cancel.cancel();
  EXPECT_EQ(run(all(slow(1s, 1), slow(2s, 2)), &cancel).error(), Errc::cancelled);
  EXPECT_EQ(std::get<0>(*run(all(immediate(1), immediate(2)), &cancel)), 1) << "it does not wait";
  EXPECT_EQ(elapsed(), 0s);
}

TEST_F(CombinatorsTest, CancellationFromOutsideReachesEach) {
  CancelSource cancel;
  platform_.at(platform_.now() + 1s, [&] { cancel.cancel(); });
  bool one = false, two = false;
  EXPECT_EQ(run(all(ends_slowly(1s, one), ends_slowly(2s, two)), &cancel).error(), Errc::cancelled);
  EXPECT_TRUE(one && two);
  EXPECT_EQ(elapsed(), 3s);
}

// --- settled ------------------------------------------------------------------------------------

TEST_F(CombinatorsTest, SettledGivesEveryOutcomeInOrder) {
  const auto text = []() -> Task<std::string> { co_return "text"; };
  const auto nothing = []() -> Task<> { co_return; };
  const auto empty = []() -> Task<Result<>> { co_return fail(Errc::closed); };
  const auto pointer = []() -> Task<std::unique_ptr<int>> { co_return std::make_unique<int>(3); };
  const auto outcomes =
      run(settled(slow(3s, 1), fails(1s, Errc::bad_input), text(), nothing(), empty(), pointer()));
  EXPECT_EQ(std::get<0>(outcomes).value(), 1) << "the failure of another has not cancelled it";
  EXPECT_EQ(std::get<1>(outcomes).error(), Errc::bad_input);
  EXPECT_EQ(std::get<2>(outcomes).value(), "text");
  EXPECT_TRUE(std::get<3>(outcomes));
  EXPECT_EQ(std::get<4>(outcomes).error(), Errc::closed);
  EXPECT_EQ(**std::get<5>(outcomes), 3);
  EXPECT_EQ(elapsed(), 3s);
  EXPECT_EQ(run(settled()), std::tuple<>());
}

TEST_F(CombinatorsTest, SettledOfAVectorGivesOutcomesInItsOrder) {
  const auto outcomes = run(settled(several(slow(2s, 1), fails(1s, Errc::bad_input), slow(3s, 3))));
  ASSERT_EQ(outcomes.size(), 3U);
  EXPECT_EQ(outcomes[0].value(), 1);
  EXPECT_EQ(outcomes[1].error(), Errc::bad_input);
  EXPECT_EQ(outcomes[2].value(), 3);
  EXPECT_EQ(elapsed(), 3s);
  EXPECT_TRUE(run(settled(std::vector<Task<int>>())).empty());
}

TEST_F(CombinatorsTest, SettledThrowsTheFirstExceptionAfterAllHaveFinished) {
  const auto tuple = [&] { run(settled(throws(2s, "second"), throws(1s, "first"), slow(3s, 1))); };
  EXPECT_EQ(thrown_by(tuple), "first");
  EXPECT_EQ(elapsed(), 3s);
  EXPECT_EQ(dropped(), 1U);
  const auto vector = [&] {
    run(settled(several(throws(2s, "second"), throws(1s, "first"), slow(3s, 1))));
  };
  EXPECT_EQ(thrown_by(vector), "first");
  EXPECT_EQ(elapsed(), 6s);
  EXPECT_EQ(dropped(), 2U);
}

TEST_F(CombinatorsTest, SettledKeepsTheValuesFromBeforeACancellation) {
  CancelSource cancel;
  platform_.at(platform_.now() + 2s, [&] { cancel.cancel(); });
  bool ended = false;
  const auto outcomes = run(settled(slow(1s, 1), slow(3s, 2), ends_slowly(4s, ended)), &cancel);
  EXPECT_EQ(std::get<0>(outcomes).value(), 1);
  EXPECT_EQ(std::get<1>(outcomes).error(), Errc::cancelled);
  EXPECT_EQ(std::get<2>(outcomes).error(), Errc::cancelled);
  EXPECT_TRUE(ended);
  EXPECT_EQ(elapsed(), 6s);
}

TEST_F(CombinatorsTest, SettledStartsEachTaskUnderACancelledParent) {
  CancelSource cancel;
  cancel.cancel();
  const auto outcomes = run(settled(immediate(1), slow(1s, 2)), &cancel);
  EXPECT_EQ(std::get<0>(outcomes).value(), 1);
  EXPECT_EQ(std::get<1>(outcomes).error(), Errc::cancelled);
}

// --- race ---------------------------------------------------------------------------------------

TEST_F(CombinatorsTest, TheFirstToFinishWinsTheRace) {
  EXPECT_EQ(run(race(slow(2s, 1), slow(1s, 2), slow(3s, 3))).value(), 2);
  EXPECT_EQ(elapsed(), 1s);
  EXPECT_EQ(run(race(fails(1s, Errc::closed), slow(2s, 2))).error(), Errc::closed);
  EXPECT_EQ(run(race(several(slow(2s, 1), slow(1s, 2)))).value(), 2);
}

TEST_F(CombinatorsTest, PlainTasksMayRace) {
  const auto nothing = [](Duration length) -> Task<> { std::ignore = co_await sleep(length); };
  run(race(nothing(2s), nothing(1s)));
  EXPECT_EQ(elapsed(), 1s);
  EXPECT_EQ(run(race(immediate(4))).value(), 4);
}

TEST_F(CombinatorsTest, ARacersExceptionIsTheOutcome) {
  EXPECT_EQ(thrown_by([&] { static_cast<void>(run(race(throws(1s, "won"), slow(2s, 1)))); }),
            "won");
  EXPECT_EQ(dropped(), 0U);
}

TEST_F(CombinatorsTest, LosersAreCancelledAwaitedAndTheirExceptionsCounted) {
  bool ended = false;
  EXPECT_EQ(run(race(slow(1s, 7), throws(1h, "lost"), ends_slowly(4s, ended))).value(), 7);
  EXPECT_TRUE(ended);
  EXPECT_EQ(elapsed(), 5s);
  EXPECT_EQ(dropped(), 1U);
}

TEST_F(CombinatorsTest, ATaskThatFinishesDuringItsStartWinsAndTheRestIsNotStarted) {
  bool started = false;
  const auto notes = [](bool& flag) -> Task<Result<int>> {
    flag = true;
    co_return 1;
  };
  EXPECT_EQ(run(race(slow(1s, 5), immediate(6), notes(started))).value(), 6);
  EXPECT_FALSE(started);
  EXPECT_EQ(elapsed(), 0s);
}

TEST_F(CombinatorsTest, ARaceIsCancelledUnderACancelledParent) {
  CancelSource cancel;
  cancel.cancel();
  EXPECT_EQ(run(race(slow(1s, 1), slow(2s, 2)), &cancel).error(), Errc::cancelled);
}

TEST_F(CombinatorsTest, TheFirstOfTwoThatFinishInOneTurnWins) {
  EXPECT_EQ(run(race(slow(1s, 1), slow(1s, 2))).value(), 1);
  EXPECT_EQ(run(race(slow(1s, 2), slow(1s, 1))).value(), 2);
}

// --- first_ok -----------------------------------------------------------------------------------

TEST_F(CombinatorsTest, TheFirstSuccessCounts) {
  EXPECT_EQ(run(first_ok(fails(1s, Errc::closed), slow(2s, 2), slow(3s, 3))).value(), 2);
  EXPECT_EQ(elapsed(), 2s);
  EXPECT_EQ(run(first_ok(several(fails(1s, Errc::closed), slow(2s, 2)))).value(), 2);
}

TEST_F(CombinatorsTest, TheFirstOfTwoThatSucceedInOneTurnCounts) {
  EXPECT_EQ(run(first_ok(slow(1s, 1), slow(1s, 2))).value(), 1);
  EXPECT_EQ(run(first_ok(slow(1s, 2), slow(1s, 1), slow(1s, 3))).value(), 2);
}

TEST_F(CombinatorsTest, FirstOkReturnsTheLastErrorIfAllFail) {
  EXPECT_EQ(run(first_ok(fails(3s, Errc::closed), fails(1s, Errc::conflict))).error(),
            Errc::closed);
  EXPECT_EQ(elapsed(), 3s);
}

TEST_F(CombinatorsTest, AnExceptionIsAFailureToo) {
  EXPECT_EQ(run(first_ok(throws(1s, "early"), slow(2s, 2))).value(), 2);
  EXPECT_EQ(dropped(), 1U);
  EXPECT_EQ(thrown_by([&] {
              static_cast<void>(run(first_ok(fails(1s, Errc::closed), throws(2s, "last"))));
            }),
            "last");
  EXPECT_EQ(dropped(), 1U);
  EXPECT_EQ(run(first_ok(throws(1s, "early"), fails(2s, Errc::closed))).error(), Errc::closed);
  EXPECT_EQ(dropped(), 2U);
}

TEST_F(CombinatorsTest, AWinnersRivalsAreAwaited) {
  bool ended = false;
  EXPECT_EQ(run(first_ok(ends_slowly(3s, ended), slow(1s, 1))).value(), 1);
  EXPECT_TRUE(ended);
  EXPECT_EQ(elapsed(), 4s);
}

TEST_F(CombinatorsTest, FirstOkIsCancelledUnderACancelledParent) {
  CancelSource cancel;
  cancel.cancel();
  EXPECT_EQ(run(first_ok(slow(1s, 1), slow(2s, 2)), &cancel).error(), Errc::cancelled);
}

// --- together -----------------------------------------------------------------------------------

TEST_F(CombinatorsTest, TheyNest) {
  const auto pair = [](Duration one, Duration two) -> Task<Result<int>> {
    WEIR_CO_TRY(const auto both, co_await all(slow(one, 1), slow(two, 2)));
    co_return std::get<0>(both) + std::get<1>(both);
  };
  EXPECT_EQ(run(race(pair(5s, 1s), pair(2s, 3s))).value(), 3);
  EXPECT_EQ(elapsed(), 3s);
  EXPECT_EQ(run(timeout(1s, race(pair(5s, 1s), pair(2s, 3s)))).error(), Errc::timed_out);
  EXPECT_EQ(elapsed(), 4s);
  EXPECT_EQ(run(first_ok(timeout(1s, pair(2s, 2s)), timeout(5s, pair(3s, 3s)))).value(), 3);
  EXPECT_EQ(elapsed(), 7s);
}

TEST_F(CombinatorsTest, AThousandTasksRunAndTheirFramesReturn) {
  const auto loop = []() -> Task<> {
    for (int round = 0; round < 10; ++round) {
      std::vector<Task<Result<int>>> tasks;
      for (int i = 0; i < 1000; ++i) tasks.push_back(slow(std::chrono::milliseconds(i + 1), i));
      EXPECT_EQ((co_await race(std::move(tasks))).value(), 0);
    }
  };
  run_made(loop);
  EXPECT_EQ(elapsed(), 10ms);
}

TEST_F(CombinatorsTest, EndsWhenCancelledAtEveryStep) {
  for (int step = 0; step <= 20; ++step) {
    CancelSource cancel;
    const auto event =
        platform_.at(platform_.now() + step * Duration(500us), [&] { cancel.cancel(); });
    const auto work = []() -> Task<Result<int>> {
      WEIR_CO_TRY(const auto both, co_await all(first_ok(fails(2ms, Errc::closed), slow(4ms, 1)),
                                                race(slow(6ms, 2), slow(7ms, 3))));
      co_return std::get<0>(both) + std::get<1>(both);
    };
    const auto sum = run(work(), &cancel);
    platform_.clock().cancel(event);
    if (step <= 12) {
      EXPECT_EQ(sum.error(), Errc::cancelled) << step;
    } else {
      EXPECT_EQ(sum.value(), 3) << step;
    }
    EXPECT_EQ(loop_->timers().armed(), 0U);
  }
  EXPECT_EQ(dropped(), 0U);
}

#ifndef NDEBUG
TEST_F(CombinatorsTest, AssertsThatTheyHaveATask) {
  EXPECT_DEATH(static_cast<void>(run(race(std::vector<Task<int>>()))), "empty");
  EXPECT_DEATH(static_cast<void>(run(first_ok(std::vector<Task<Result<int>>>()))), "empty");
}
#endif

}  // namespace
}  // namespace weir::combinators_test
