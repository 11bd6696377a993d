// Tests the event statistics and the histogram.
#include "weir/event/statistics.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "weir/event/test/event_fixture.hpp"

namespace weir::statistics_test {
namespace {

class EventStatisticsTest : public CoreEventsTest {
 protected:
  /// A handler that takes the number of nanoseconds in its event.
  auto taking_time() {
    return [this](const Ping& ping) {
      static_cast<void>(platform_.pass_time(platform_.now() + Duration(ping.number)));
    };
  }
};

TEST_F(EventStatisticsTest, CountsTheTimeOfHandlers) {
  const auto handler = events().on(taking_time());
  const EventStatistics statistics(events());
  EXPECT_TRUE(statistics.all().empty());
  EXPECT_EQ(statistics.of<Ping>().count, 0U);
  EXPECT_EQ(statistics.of<Ping>().type, "weir::Ping");
  publish_pings(1, 100);
  run_until_idle();
  const EventSummary pings = statistics.of<Ping>();
  EXPECT_EQ(pings.type, "weir::Ping");
  EXPECT_EQ(pings.count, 100U);
  EXPECT_EQ(pings.minimum, 1ns);
  EXPECT_EQ(pings.average, 50ns);
  EXPECT_EQ(pings.maximum, 100ns);
  EXPECT_EQ(pings.p99, 99ns);
}

TEST_F(EventStatisticsTest, OneEventInAHundredExceedsThe99thPercentile) {
  const auto handler = events().on(taking_time());
  const EventStatistics statistics(events());
  publish_pings(29, 30);
  for (int i = 0; i < 98; ++i) publish_pings(1, 1);
  run_until_idle();
  EXPECT_EQ(statistics.of<Ping>().p99, 29ns);
}

TEST_F(EventStatisticsTest, CountsEachTypeSeparately) {
  ASSERT_TRUE(events().publish(std::string("before the statistics")));
  run_until_idle();
  const EventStatistics statistics(events());
  ASSERT_TRUE(events().publish(Pong(1)));
  const auto handler = events().on(taking_time());
  publish_pings(5, 6);
  run_until_idle();
  const auto all = statistics.all();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].type, "weir::Pong") << "in the order of first occurrence";
  EXPECT_EQ(all[0].count, 1U);
  EXPECT_EQ(all[0].maximum, 0ns);
  EXPECT_EQ(all[1].type, "weir::Ping");
  EXPECT_EQ(all[1].count, 2U);
  EXPECT_EQ(all[1].minimum, 5ns);
  EXPECT_EQ(all[1].maximum, 6ns);
  EXPECT_EQ(statistics.of<Pong>().count, 1U);
  EXPECT_EQ(statistics.of<Ping>().count, 2U);
  EXPECT_EQ(statistics.of<Ping>().type, "weir::Ping");
  EXPECT_EQ(statistics.of<std::string>().count, 0U) << "it occurred before";
}

TEST_F(EventStatisticsTest, KeepsItsCountsAfterTheBus) {
  const EventStatistics statistics(events());
  publish_pings(1, 3);
  run_until_idle();
  bus_.reset();
  EXPECT_EQ(statistics.of<Ping>().count, 3U);
  EXPECT_EQ(statistics.all().size(), 1U);
}

TEST_F(EventStatisticsTest, OmitsVetoedEvents) {
  const EventStatistics statistics(events());
  const auto veto = events().before(
      [](const Ping& ping) { return ping.number == 2 ? EventVerdict::veto : EventVerdict::pass; });
  publish_pings(1, 3);
  run_until_idle();
  EXPECT_EQ(statistics.of<Ping>().count, 2U);
}

TEST_F(EventStatisticsTest, OmitsTheTimeOfATaskAfterItsFirstWait) {
  const EventStatistics statistics(events());
  const auto take_time = [this](Ping) -> Task<> {
    static_cast<void>(platform_.pass_time(platform_.now() + 7ns));
    co_await sleep_for(1s);
    static_cast<void>(platform_.pass_time(platform_.now() + 100ns));
  };
  const auto body = [&](Scope& scope) -> Task<> {
    const auto handler = events().on(scope, take_time);
    publish_pings(1, 1);
    co_await sleep_for(2s);
  };
  const auto root = [&]() -> Task<> { std::ignore = co_await with_scope(body); };
  run_made(root);
  EXPECT_EQ(statistics.of<Ping>().count, 1U);
  EXPECT_EQ(statistics.of<Ping>().maximum, 7ns);
}

TEST_F(EventStatisticsTest, MayBeginAndEndInsideAHandler) {
  std::unique_ptr<EventStatistics> statistics;
  const auto handler = events().on([&](const Ping& ping) {
    if (ping.number == 1) statistics = std::make_unique<EventStatistics>(events());
    if (ping.number != 3) return;
    EXPECT_EQ(statistics->of<Ping>().count, 1U);
    statistics.reset();
  });
  publish_pings(1, 4);
  run_until_idle();
  EXPECT_EQ(statistics, nullptr);
  EXPECT_EQ(events().counters().handled.value(), 4U);
}

}  // namespace

namespace {

TEST(EventHistogram, IsZeroAtFirst) {
  const EventHistogram times;
  EXPECT_EQ(times.count(), 0U);
  EXPECT_EQ(times.minimum(), 0ns);
  EXPECT_EQ(times.average(), 0ns);
  EXPECT_EQ(times.maximum(), 0ns);
  EXPECT_EQ(times.percentile(99), 0ns);
}

TEST(EventHistogram, StoresMinimumAndMaximum) {
  EventHistogram times;
  times.add(-5ns);
  times.add(Duration::max());
  EXPECT_EQ(times.count(), 2U);
  EXPECT_EQ(times.minimum(), 0ns);
  EXPECT_EQ(times.maximum(), Duration::max());
  EXPECT_EQ(times.percentile(50), 0ns);
  EXPECT_EQ(times.percentile(51), Duration::max());
}

TEST(EventHistogram, ReturnsASingleValueExactly) {
  for (const Duration value : {0ns, 1ns, 5ns, 31ns, 32ns, 33ns, 1'000'003ns}) {
    EventHistogram times;
    times.add(value);
    EXPECT_EQ(times.count(), 1U);
    EXPECT_EQ(times.minimum(), value);
    EXPECT_EQ(times.average(), value);
    EXPECT_EQ(times.maximum(), value);
    for (const double percent : {0.0, 50.0, 100.0}) EXPECT_EQ(times.percentile(percent), value);
  }
}

TEST(EventHistogram, RoundsUpByAtMostASixteenth) {
  for (int value = 0; value <= 4100; ++value) {
    EventHistogram times;
    times.add(Duration(value));
    times.add(1h);
    const Duration found = times.percentile(50);
    ASSERT_GE(found, Duration(value));
    ASSERT_LE(found, Duration(value + value / 16)) << value;
  }
  // A power of two begins a bucket, and the value before it ends one.
  for (int bit = 5; bit < 62; ++bit) {
    const Duration power(std::int64_t{1} << bit);
    EventHistogram times;
    times.add(power - 1ns);
    times.add(power);
    times.add(Duration::max());
    EXPECT_EQ(times.percentile(33), power - 1ns) << bit;
    EXPECT_EQ(times.percentile(66), power + power / 16 - 1ns) << bit;
  }
}

TEST(EventHistogram, SmallValuesAreExact) {
  EventHistogram times;
  for (int i = 1; i <= 31; ++i) times.add(Duration(i));
  EXPECT_EQ(times.average(), 16ns);
  for (int i = 1; i <= 31; ++i) {
    EXPECT_EQ(times.percentile(100 * (i - 0.5) / 31), Duration(i)) << i;
  }
}

TEST(EventHistogram, ReturnsPercentiles) {
  EventHistogram times;
  for (int i = 0; i < 99; ++i) times.add(10ns);
  times.add(1s);
  EXPECT_EQ(times.percentile(99), 10ns);
  EXPECT_EQ(times.percentile(99.5), 1s);
  times.add(1s);
  EXPECT_EQ(times.percentile(99), 1s) << "100 of 101";
}

TEST(EventHistogram, MergesAnEmptyOne) {
  EventHistogram times;
  times.merge(EventHistogram());
  EXPECT_EQ(times.count(), 0U);
  EXPECT_EQ(times.minimum(), 0ns);
  EventHistogram one;
  one.add(0ns);
  one.add(7ns);
  times.merge(one);
  times.merge(EventHistogram());
  EXPECT_EQ(times.count(), 2U);
  EXPECT_EQ(times.minimum(), 0ns);
  EXPECT_EQ(times.average(), 3ns);
  EXPECT_EQ(times.maximum(), 7ns);
  EXPECT_EQ(times.percentile(50), 0ns);
}

std::uint64_t seed() {
  const char* const given = std::getenv("WEIR_TEST_SEED");
  return given == nullptr ? 20'261'122 : std::strtoull(given, nullptr, 10);
}

/// Returns a value of any magnitude.
Duration some_length(std::mt19937_64& random) {
  return Duration(static_cast<Duration::rep>(random() >> (1 + random() % 63)));
}

TEST(EventHistogram, PercentilesAreAtMostASixteenthTooLong) {
  SCOPED_TRACE("WEIR_TEST_SEED=" + std::to_string(seed()));
  std::mt19937_64 random(seed());
  for (int round = 0; round < 50; ++round) {
    EventHistogram times;
    std::vector<Duration> all(1 + random() % 300);
    for (Duration& each : all) {
      each = some_length(random);
      times.add(each);
    }
    std::ranges::sort(all);
    EXPECT_EQ(times.minimum(), all.front());
    EXPECT_EQ(times.maximum(), all.back());
    for (std::size_t i = 0; i < all.size(); ++i) {
      // The middle between two ranks, where rounding does not matter.
      const double percent = 100 * (static_cast<double>(i) + 0.5) / static_cast<double>(all.size());
      const Duration found = times.percentile(percent);
      EXPECT_GE(found, all[i]);
      EXPECT_LE(found - all[i], all[i] / 16);
    }
  }
}

TEST(EventHistogram, MergesAsIfAddedToOne) {
  SCOPED_TRACE("WEIR_TEST_SEED=" + std::to_string(seed()));
  std::mt19937_64 random(seed());
  EventHistogram one;
  EventHistogram other;
  EventHistogram both;
  for (int i = 0; i < 1000; ++i) {
    const Duration length = some_length(random) / 1000;
    (i % 3 == 0 ? one : other).add(length);
    both.add(length);
  }
  one.merge(other);
  EXPECT_EQ(one.count(), both.count());
  EXPECT_EQ(one.minimum(), both.minimum());
  EXPECT_EQ(one.maximum(), both.maximum());
  EXPECT_EQ(one.average(), both.average());
  for (int percent = 0; percent <= 100; ++percent) {
    EXPECT_EQ(one.percentile(percent), both.percentile(percent));
  }
}

}  // namespace
}  // namespace weir::statistics_test
