// Tests of Interval.
#include "weir/task/interval.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "weir/task/scope.hpp"
#include "weir/task/select.hpp"
#include "weir/task/sync/channel.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::interval_test {
namespace {

using IntervalTest = CancelSweepTest;

TEST_F(IntervalTest, DoesNotDriftHoweverLongTheWorkTakes) {
  const auto body = [this]() -> Task<> {
    Interval ticks(100ms);
    for (std::uint64_t number = 0; number < 50; ++number) {
      const auto tick = co_await ticks.next();
      EXPECT_EQ(tick->number, number);
      EXPECT_EQ(tick->missed, 0U);
      EXPECT_EQ(tick->due, started_ + 100ms * (static_cast<int>(number) + 1));
      EXPECT_EQ(platform_.now(), tick->due);
      EXPECT_TRUE(co_await sleep(Duration(1ms) * (number * 37 % 100)));
    }
  };
  run(body());
}

TEST_F(IntervalTest, TheFirstTickMayBeImmediateOrLater) {
  const auto body = [this]() -> Task<> {
    IntervalOptions options;
    options.initial_delay = 0s;
    Interval immediate(1s, options);
    EXPECT_EQ((co_await immediate.next())->due, started_);
    EXPECT_EQ(elapsed(), 0s);
    EXPECT_EQ((co_await immediate.next())->due, started_ + 1s);
    options.initial_delay = 10s;
    Interval later(1s, options);
    EXPECT_EQ((co_await later.next())->due, started_ + 11s);
    EXPECT_EQ((co_await later.next())->due, started_ + 12s);
  };
  run(body());
}

TEST_F(IntervalTest, MissedTicksAreSkippedAndCounted) {
  const auto body = [this]() -> Task<> {
    Interval ticks(1s);
    EXPECT_EQ((co_await ticks.next())->number, 0U);
    EXPECT_TRUE(co_await sleep(3500ms));
    const auto late = co_await ticks.next();
    EXPECT_EQ(elapsed(), 4500ms) << "immediate, since its time has passed";
    EXPECT_EQ(late->due, started_ + 4s);
    EXPECT_EQ(late->number, 3U);
    EXPECT_EQ(late->missed, 2U);
    const auto next = co_await ticks.next();
    EXPECT_EQ(elapsed(), 5s) << "the grid has not moved";
    EXPECT_EQ(next->number, 4U);
    EXPECT_EQ(next->missed, 0U);
  };
  run(body());
}

TEST_F(IntervalTest, MissedTicksComeInABurst) {
  const auto body = [this]() -> Task<> {
    IntervalOptions options;
    options.missed = MissedTicks::burst;
    Interval ticks(1s, options);
    EXPECT_EQ((co_await ticks.next())->number, 0U);
    EXPECT_TRUE(co_await sleep(3500ms));
    for (std::uint64_t number = 1; number <= 3; ++number) {
      const auto late = co_await ticks.next();
      EXPECT_EQ(late->number, number);
      EXPECT_EQ(late->due, started_ + 1s * (static_cast<int>(number) + 1));
      EXPECT_EQ(elapsed(), 4500ms);
    }
    EXPECT_EQ((co_await ticks.next())->number, 4U);
    EXPECT_EQ(elapsed(), 5s);
  };
  run(body());
}

TEST_F(IntervalTest, ATickThatIsLateByWholePeriodsIsSkipped) {
  const auto body = [this]() -> Task<> {
    Interval ticks(1s);
    EXPECT_EQ((co_await ticks.next())->number, 0U);
    for (std::uint64_t number = 2; number <= 6; number += 2) {
      EXPECT_TRUE(co_await sleep(2s));
      const auto tick = co_await ticks.next();
      EXPECT_EQ(tick->number, number) << "due exactly now";
      EXPECT_EQ(tick->due, platform_.now());
      EXPECT_EQ(tick->missed, 1U);
    }
    EXPECT_EQ(elapsed(), 7s);
  };
  run(body());
}

TEST_F(IntervalTest, ALateTickIsReturnedInTheNextTurn) {
  for (const MissedTicks missed : {MissedTicks::skip, MissedTicks::burst}) {
    const auto body = [&]() -> Task<> {
      IntervalOptions options;
      options.missed = missed;
      Interval ticks(1s, options);
      EXPECT_TRUE(co_await ticks.next());
      EXPECT_TRUE(co_await sleep(3500ms));
      const int late = missed == MissedTicks::burst ? 3 : 1;
      for (int i = 0; i < late; ++i) {
        const std::uint64_t turns = loop_->counters().turns.value();
        const Instant before = platform_.now();
        EXPECT_TRUE(co_await ticks.next());
        EXPECT_EQ(loop_->counters().turns.value(), turns + 1);
        EXPECT_EQ(platform_.now(), before);
      }
    };
    run(body());
  }
}

TEST_F(IntervalTest, AnyNegativeDelayMeansOnePeriod) {
  const auto body = [this]() -> Task<> {
    for (const Duration delay : {Duration(-1), Duration(-10s), Duration::min()}) {
      const Instant begun = platform_.now();
      IntervalOptions options;
      options.initial_delay = delay;
      Interval ticks(1s, options);
      EXPECT_EQ((co_await ticks.next())->due, begun + 1s);
    }
  };
  run(body());
}

TEST_F(IntervalTest, TheGridBeginsAtTheTimeOfTheFirstNext) {
  const auto body = [this]() -> Task<> {
    Interval ticks(1s);
    EXPECT_EQ(ticks.period(), 1s);
    platform_.clock().move_to(started_ + 300ms);  // in the middle of this turn
    EXPECT_EQ((co_await ticks.next())->due, started_ + 1300ms);
    EXPECT_EQ(elapsed(), 1300ms);
  };
  run(body());
}

TEST_F(IntervalTest, TicksThatAreMissedBeforeTheFirstOneCountToo) {
  const auto body = [this]() -> Task<> {
    Interval ticks(1s);
    EXPECT_EQ((co_await timeout(500ms, ticks.next())).error(), Errc::timed_out);
    EXPECT_TRUE(co_await sleep(3s));
    const auto first = co_await ticks.next();
    EXPECT_EQ(first->number, 2U);
    EXPECT_EQ(first->missed, 2U);
    EXPECT_EQ(first->due, started_ + 3s);
    EXPECT_EQ(elapsed(), 3500ms);
  };
  run(body());
}

TEST_F(IntervalTest, ATickAfterTheEndOfTheClockNeverComes) {
  const auto body = []() -> Task<> {
    IntervalOptions options;
    options.initial_delay = 0s;
    Interval ticks(Duration::max(), options);
    EXPECT_EQ((co_await ticks.next())->number, 0U);
    EXPECT_EQ((co_await timeout(1h, ticks.next())).error(), Errc::timed_out);
  };
  run(body());
  EXPECT_EQ(elapsed(), 1h);
}

TEST_F(IntervalTest, RestartBeginsANewGrid) {
  const auto body = [this]() -> Task<> {
    Interval ticks(1s);
    EXPECT_TRUE(co_await sleep(700ms));
    EXPECT_EQ((co_await ticks.next())->due, started_ + 1700ms) << "the grid begins with the first";
    EXPECT_TRUE(co_await sleep(300ms));
    ticks.restart();
    const auto tick = co_await ticks.next();
    EXPECT_EQ(tick->number, 0U);
    EXPECT_EQ(tick->due, started_ + 3s);
  };
  run(body());
}

TEST_F(IntervalTest, ACancelledWaitTakesNoTick) {
  const auto body = [this]() -> Task<> {
    Interval ticks(1s);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ((co_await timeout(300ms, ticks.next())).error(), Errc::timed_out);
    }
    EXPECT_EQ((co_await ticks.next())->number, 0U);
    EXPECT_EQ(elapsed(), 1s);
  };
  run(body());
}

// The clock calls the event first, then the loop would fire the timer.
TEST_F(IntervalTest, ACancellationAtTheTimeOfATickLeavesTheTick) {
  CancelSource cancel;
  Interval ticks(1s);
  platform_.at(platform_.now() + 1s, [&] { cancel.cancel(); });
  EXPECT_EQ(run(as_task(ticks.next()), &cancel).error(), Errc::cancelled);
  EXPECT_EQ(elapsed(), 1s);
  const auto tick = run(as_task(ticks.next()));
  EXPECT_EQ(tick->number, 0U);
  EXPECT_EQ(tick->missed, 0U);
  EXPECT_EQ(tick->due, started_ + 1s);
  EXPECT_EQ(elapsed(), 1s);
}

TEST_F(IntervalTest, ATickThatLosesASelectAtItsTimeStays) {
  Interval ticks(1s);
  Channel<int> channel(1);
  platform_.at(platform_.now() + 1s, [&] { EXPECT_TRUE(channel.try_send(7)); });
  const auto body = [&]() -> Task<> {
    const auto first = co_await select(ticks.next(), channel.receive());
    EXPECT_EQ(first->index(), 1U);
    co_await yield();
    EXPECT_EQ((co_await ticks.next())->number, 0U);
    EXPECT_EQ((co_await ticks.next())->number, 1U);
  };
  run(body());
  EXPECT_EQ(elapsed(), 2s);
}

TEST_F(IntervalTest, ACancelledSelectTakesNoTick) {
  Interval ticks(1s);
  Channel<int> silent(1);
  CancelSource cancel;
  cancel.cancel();
  EXPECT_EQ(run(as_task(select(ticks.next(), silent.receive())), &cancel).error(), Errc::cancelled);
  EXPECT_EQ(run(as_task(ticks.next()))->number, 0U);
  EXPECT_EQ(elapsed(), 1s);
}

TEST_F(IntervalTest, IsACaseOfASelect) {
  Channel<int> channel(1);
  const auto body = [&]() -> Task<> {
    Interval ticks(1s);
    std::uint64_t expected = 0;
    for (int round = 0; round < 6; ++round) {
      if (round % 2 == 1) {
        EXPECT_TRUE(channel.try_send(int(round)));
      }
      const auto first = co_await select(channel.receive(), ticks.next());
      EXPECT_EQ(first->index(), round % 2 == 1 ? 0U : 1U);
      if (first->index() == 1) {
        const Result<Tick>& tick = std::get<1>(*first);
        EXPECT_EQ(tick->number, expected++);
      }
    }
  };
  run(body());
  EXPECT_EQ(elapsed(), 3s);
}

TEST_F(IntervalTest, AnOverdueTickIsChosenInTheOrderOfASelect) {
  Channel<int> channel(3);
  const auto body = [&]() -> Task<> {
    Interval ticks(1s);
    EXPECT_EQ((co_await ticks.next())->number, 0U);
    EXPECT_TRUE(co_await sleep(2500ms));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(channel.try_send(int(i)));
    const auto behind = co_await select(channel.receive(), ticks.next());
    EXPECT_EQ(behind->index(), 0U);
    const auto late = co_await select(ticks.next(), channel.receive());
    EXPECT_EQ(late->index(), 0U);
    EXPECT_EQ(std::get<0>(*late)->number, 2U);
    EXPECT_EQ(std::get<0>(*late)->missed, 1U);
    const auto early = co_await select(ticks.next(), channel.receive());
    EXPECT_EQ(early->index(), 1U) << "the next one is not due yet";
    EXPECT_EQ(channel.size(), 1U);
    EXPECT_EQ(elapsed(), 3500ms);
    EXPECT_EQ((co_await ticks.next())->number, 3U);
    EXPECT_EQ(elapsed(), 4s);
  };
  run(body());
}

TEST_F(IntervalTest, ATickIsDueIfATurnBeginsAtItsTime) {
  Channel<int> channel(2);
  const auto body = [&]() -> Task<> {
    Interval ticks(1s);
    EXPECT_TRUE(co_await ticks.next());
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(channel.try_send(int(i)));
    platform_.clock().move_to(started_ + 2s);  // in the middle of this turn
    const auto early = co_await select(ticks.next(), channel.receive());
    EXPECT_EQ(early->index(), 1U);
    EXPECT_TRUE(co_await sleep(0s));
    const auto due = co_await select(ticks.next(), channel.receive());
    EXPECT_EQ(due->index(), 0U);
    EXPECT_EQ(std::get<0>(*due)->number, 1U);
    EXPECT_EQ(std::get<0>(*due)->missed, 0U);
  };
  run(body());
  EXPECT_EQ(elapsed(), 2s);
}

TEST_F(IntervalTest, AChannelThatIsNeverEmptyDelaysNoTick) {
  Channel<int> channel(1);
  const auto body = [&]() -> Task<> {
    Interval ticks(1ms);
    std::uint64_t next = 0;
    int seen = 0;
    for (int i = 0; i < 100'000 && seen < 3; ++i) {
      platform_.clock().move_to(platform_.now() + 1us);
      if (channel.size() == 0) {
        EXPECT_TRUE(channel.try_send(int(i)));
      }
      const auto first = co_await select(ticks.next(), channel.receive());
      if (first->index() == 0) {
        const Result<Tick>& tick = std::get<0>(*first);
        EXPECT_EQ(tick->number, next + tick->missed);
        next = tick->number + 1;
        ++seen;
      }
      co_await yield();
    }
    EXPECT_EQ(seen, 3);
  };
  run(body());
}

Task<> tick_cancellable(CancelInjector& injector, Interval& ticks,
                        std::vector<std::uint64_t>& numbers) {
  for (int i = 0; i < 3; ++i) {
    injector.checkpoint();
    const auto tick = co_await ticks.next();
    injector.checkpoint();
    if (!tick) co_return;
    numbers.push_back(tick->number);
  }
}

TEST_F(IntervalTest, NoTickIsLostByACancellation) {
  const auto scenario = [](CancelInjector& injector) -> Task<> {
    IntervalOptions options;
    options.missed = MissedTicks::burst;
    Interval ticks(1s, options);
    std::vector<std::uint64_t> numbers;
    co_await injector.as_target(0, tick_cancellable(injector, ticks, numbers));
    while (numbers.size() < 4) numbers.push_back((co_await ticks.next())->number);
    EXPECT_EQ(numbers, (std::vector<std::uint64_t>{0, 1, 2, 3}));
  };
  EXPECT_GT(sweep(1, scenario), 6U);
}

#ifndef NDEBUG
TEST_F(IntervalTest, AssertsThatOneTaskWaitsAtATime) {
  enum class Action : std::uint8_t { wait, select, restart, destroy };
  const auto act_while_waited_on = [this](Action action) {
    auto ticks = std::make_unique<Interval>(1s);
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn([](Interval& from) -> Task<> { std::ignore = co_await from.next(); }(*ticks));
      if (action == Action::restart) ticks->restart();
      if (action == Action::destroy) ticks.reset();
      if (action == Action::wait) std::ignore = co_await ticks->next();
      if (action == Action::select) std::ignore = co_await select(ticks->next(), sleep(1s));
    };
    static_cast<void>(run(with_scope(body)));
  };
  EXPECT_DEATH(act_while_waited_on(Action::wait), "one next\\(\\) at a time");
  EXPECT_DEATH(act_while_waited_on(Action::select), "one next\\(\\) at a time");
  EXPECT_DEATH(act_while_waited_on(Action::restart), "waited_on_");
  EXPECT_DEATH(act_while_waited_on(Action::destroy), "destroyed while waited on");
}

TEST_F(IntervalTest, AssertsThatItsPeriodIsGreaterThanZero) {
  EXPECT_DEATH(Interval(0s), "period");
  EXPECT_DEATH(Interval(-1s), "period");
}
#endif

}  // namespace
}  // namespace weir::interval_test
