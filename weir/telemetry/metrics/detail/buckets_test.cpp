#include "weir/telemetry/metrics/detail/buckets.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace weir::telemetry::detail::buckets_test {
namespace {

TEST(NativeBucketsTest, FindsTheBucketOfEachBound) {
  for (int key = -400; key <= 400; ++key) {
    const double bound = std::exp2(key / 8.0);
    // The bounds themselves are rounded, so their neighbours are tested.
    EXPECT_EQ(NativeBuckets::key_of(bound * (1 - 1e-12)), key) << key;
    EXPECT_EQ(NativeBuckets::key_of(bound * (1 + 1e-12)), key + 1) << key;
  }
  EXPECT_EQ(NativeBuckets::key_of(1.0), 0);
  EXPECT_EQ(NativeBuckets::key_of(2.0), 8);
  EXPECT_EQ(NativeBuckets::key_of(0.5), -8);
}

TEST(NativeBucketsTest, FindsTheBucketOfEachValue) {
  for (double value = 1e-7; value < 1e6; value *= 1.01) {
    const int key = NativeBuckets::key_of(value);
    EXPECT_GT(value, std::exp2((key - 1) / 8.0) * (1 - 1e-12)) << value;
    EXPECT_LE(value, std::exp2(key / 8.0) * (1 + 1e-12)) << value;
  }
}

TEST(HistogramLayoutTest, KeepsAllValuesInItsCells) {
  const HistogramLayout layout{.bounds = {1, 2}, .native = true, .zero_key = -160};
  EXPECT_EQ(layout.native_bucket_of(0), 0U);
  EXPECT_EQ(layout.native_bucket_of(-1), 0U);
  EXPECT_EQ(layout.native_bucket_of(layout.zero_threshold()), 0U);
  EXPECT_EQ(layout.native_bucket_of(layout.zero_threshold() * 1.0001), 1U);
  EXPECT_EQ(layout.native_bucket_of(1e300), std::size_t{NativeBuckets::count});
  EXPECT_EQ(layout.native_bucket_of(INFINITY), std::size_t{NativeBuckets::count});
  EXPECT_EQ(layout.cell_count(), 1U + 3U + 1U + NativeBuckets::count);
  EXPECT_EQ(layout.bucket_of(1), 0U);
  EXPECT_EQ(layout.bucket_of(1.5), 1U);
  EXPECT_EQ(layout.bucket_of(2.5), 2U);
}

}  // namespace
}  // namespace weir::telemetry::detail::buckets_test
