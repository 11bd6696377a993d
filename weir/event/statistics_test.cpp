#include "weir/app/event_histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace weir {
namespace {

TEST(EventHistogram, IsAllZeroAtFirst) {
  const EventHistogram times;
  EXPECT_EQ(times.count(), 0U);
  EXPECT_EQ(times.minimum(), 0ns);
  EXPECT_EQ(times.average(), 0ns);
  EXPECT_EQ(times.maximum(), 0ns);
  EXPECT_EQ(times.percentile(99), 0ns);
}

TEST(EventHistogram, KnowsTheEnds) {
  EventHistogram times;
  times.add(-5ns);
  times.add(Duration::max());
  EXPECT_EQ(times.count(), 2U);
  EXPECT_EQ(times.minimum(), 0ns);
  EXPECT_EQ(times.maximum(), Duration::max());
  EXPECT_EQ(times.percentile(50), 0ns);
  EXPECT_EQ(times.percentile(51), Duration::max());
}

TEST(EventHistogram, SmallOnesAreExact) {
  EventHistogram times;
  for (int i = 1; i <= 31; ++i) times.add(Duration(i));
  EXPECT_EQ(times.average(), 16ns);
  for (int i = 1; i <= 31; ++i) {
    EXPECT_EQ(times.percentile(100 * (i - 0.5) / 31), Duration(i)) << i;
  }
}

TEST(EventHistogram, NinetyNineOfAHundred) {
  EventHistogram times;
  for (int i = 0; i < 99; ++i) times.add(10ns);
  times.add(1s);
  EXPECT_EQ(times.percentile(99), 10ns);
  EXPECT_EQ(times.percentile(99.5), 1s);
  times.add(1s);
  EXPECT_EQ(times.percentile(99), 1s) << "100 of 101";
}

std::uint64_t seed() {
  const char* const given = std::getenv("WEIR_TEST_SEED");
  return given == nullptr ? 20'261'122 : std::strtoull(given, nullptr, 10);
}

/// Of all magnitudes.
Duration some_length(std::mt19937_64& random) {
  return Duration(static_cast<Duration::rep>(random() >> (1 + random() % 63)));
}

TEST(EventHistogram, PercentilesAreASixteenthTooLongAtMost) {
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
      // The middle between two ranks, where rounding cannot matter.
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
}  // namespace weir
