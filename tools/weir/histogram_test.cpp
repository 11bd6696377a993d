// Tests of the histogram.
#include "tools/weir/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

namespace weir::bench::histogram_test {
namespace {

constexpr double precision = 1.0 / 128;

std::uint64_t exact_percentile(std::vector<std::uint64_t> values, double percent) {
  std::sort(values.begin(), values.end());
  const auto rank =
      static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(values.size())));
  return values[std::max<std::size_t>(rank, 1) - 1];
}

TEST(Histogram, IsZeroBeforeAnythingIsRecorded) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.min(), 0U);
  EXPECT_EQ(histogram.max(), 0U);
  EXPECT_EQ(histogram.mean(), 0.0);
  EXPECT_EQ(histogram.percentile(50), 0U);
  EXPECT_EQ(histogram.percentile(100), 0U);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (std::uint64_t value = 0; value < 256; ++value) histogram.record(value);
  EXPECT_EQ(histogram.percentile(50), 127U);
  EXPECT_EQ(histogram.percentile(25), 63U);
  EXPECT_EQ(histogram.percentile(0), 0U);
  EXPECT_EQ(histogram.percentile(100), 255U);
  EXPECT_EQ(histogram.mean(), 127.5);
}

TEST(Histogram, PowersOfTwoAndTheirNeighboursAreWithinThePrecision) {
  for (unsigned bit = 1; bit < 42; ++bit) {
    for (const int offset : {-1, 0, 1}) {
      const std::uint64_t value =
          (std::uint64_t{1} << bit) + static_cast<std::uint64_t>(static_cast<std::int64_t>(offset));
      Histogram histogram;
      histogram.record(value);
      histogram.record(Histogram::value_max);  // keeps the maximum from cutting the bucket
      const std::uint64_t found = histogram.percentile(50);
      EXPECT_GE(found, value);
      EXPECT_LE(static_cast<double>(found - value), static_cast<double>(value) * precision)
          << value;
    }
  }
}

TEST(Histogram, PercentilesAreAtMostOneBucketAboveTheExactValue) {
  const std::uint64_t seed = 20240607;
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> times(11, 2.5);
  Histogram histogram;
  std::vector<std::uint64_t> values;
  double sum = 0;
  for (int each = 0; each < 20'000; ++each) {
    values.push_back(static_cast<std::uint64_t>(times(random)));
    histogram.record(values.back());
    sum += static_cast<double>(values.back());
  }
  for (const double percent : {0.01, 1.0, 10.0, 50.0, 90.0, 99.0, 99.9, 99.99}) {
    const auto truth = static_cast<double>(exact_percentile(values, percent));
    const auto found = static_cast<double>(histogram.percentile(percent));
    EXPECT_GE(found, truth) << percent << ", seed " << seed;
    EXPECT_LE(found, truth * (1 + precision) + 1) << percent << ", seed " << seed;
  }
  EXPECT_EQ(histogram.min(), *std::min_element(values.begin(), values.end()));
  EXPECT_EQ(histogram.max(), *std::max_element(values.begin(), values.end()));
  EXPECT_EQ(histogram.percentile(100), histogram.max());
  EXPECT_NEAR(histogram.mean(), sum / 20'000, 1);
}

TEST(Histogram, ValuesAboveTheLargestKeepTheMaximum) {
  Histogram histogram;
  histogram.record(1);
  histogram.record(UINT64_MAX);
  EXPECT_EQ(histogram.max(), UINT64_MAX);
  EXPECT_EQ(histogram.percentile(100), UINT64_MAX);
  EXPECT_EQ(histogram.percentile(50), 1U);
}

TEST(Histogram, RecordingACountEqualsRecordingOneByOne) {
  Histogram together;
  Histogram alone;
  together.record(1000, 64);
  for (int each = 0; each < 64; ++each) alone.record(1000);
  EXPECT_EQ(together.count(), alone.count());
  EXPECT_EQ(together.mean(), alone.mean());
  EXPECT_EQ(together.percentile(99), alone.percentile(99));
}

TEST(Histogram, AddMergesEverything) {
  Histogram low;
  Histogram high;
  low.record(10, 90);
  high.record(5000, 10);
  low.add(high);
  low.add(Histogram());
  EXPECT_EQ(low.count(), 100U);
  EXPECT_EQ(low.min(), 10U);
  EXPECT_EQ(low.max(), 5000U);
  EXPECT_EQ(low.percentile(90), 10U);
  EXPECT_EQ(low.percentile(91), 5000U);
  EXPECT_DOUBLE_EQ(low.mean(), (90 * 10 + 10 * 5000) / 100.0);
}

TEST(Histogram, VisitsTheBucketsInAscendingOrder) {
  Histogram histogram;
  for (const std::uint64_t value : {1000U, 3U, 255U, 256U, 257U, 258U, 511U, 512U, 515U, 516U}) {
    histogram.record(value, value);
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;
  histogram.visit([&](std::uint64_t top, std::uint64_t count) { seen.emplace_back(top, count); });
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> expected{
      {3, 3},     {255, 255},  {257, 513}, {259, 258},
      {511, 511}, {515, 1027}, {519, 516}, {1003, 1000}};
  EXPECT_EQ(seen, expected);
}

TEST(Histogram, TheLastBucketEndsAtTheLargestValue) {
  Histogram histogram;
  histogram.record(Histogram::value_max);
  histogram.record(Histogram::value_max + 1);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;
  histogram.visit([&](std::uint64_t top, std::uint64_t count) { seen.emplace_back(top, count); });
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> expected{{Histogram::value_max, 2}};
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(histogram.percentile(50), Histogram::value_max + 1);
}

TEST(Histogram, PercentilesStayBetweenMinimumAndMaximum) {
  Histogram histogram;
  histogram.record(1000);
  histogram.record(5000);
  EXPECT_EQ(histogram.percentile(-1), histogram.percentile(0));
  EXPECT_EQ(histogram.percentile(0), 1003U) << "the largest value of the bucket of 1000";
  EXPECT_EQ(histogram.percentile(50), 1003U);
  EXPECT_EQ(histogram.percentile(50.1), 5000U);
  EXPECT_EQ(histogram.percentile(101), 5000U);
  Histogram one;
  one.record(1000);
  EXPECT_EQ(one.percentile(50), 1000U);
}

}  // namespace
}  // namespace weir::bench::histogram_test
