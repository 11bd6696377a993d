// Tests of Interval.
#include "weir/task/interval.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "weir/task/select.hpp"
#include "weir/task/sync/channel.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir {
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

}  // namespace
}  // namespace weir
