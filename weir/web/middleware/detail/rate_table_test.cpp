// Tests of the table of token buckets.
#include "weir/web/middleware/detail/rate_table.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace weir::http::rate_table_test {
namespace {

constexpr Instant start = Instant(1h);

Hash128 key(std::uint64_t number) {
  return hash_bytes(std::to_string(number), 1);
}

TEST(RateTable, AllowsABurstAndThenTheRate) {
  RateTable table({.tokens = 2, .per = 1s, .burst = 3}, 100);
  for (const unsigned left : {2U, 1U, 0U}) {
    const auto decision = table.take(key(1), start);
    EXPECT_TRUE(decision.allowed);
    EXPECT_EQ(decision.remaining, left);
  }
  const auto refused = table.take(key(1), start);
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.remaining, 0U);
  EXPECT_EQ(refused.retry_after, 500ms);
  EXPECT_EQ(refused.until_full, 1500ms);
  EXPECT_FALSE(table.take(key(1), start + 499ms).allowed);
  EXPECT_TRUE(table.take(key(1), start + 500ms).allowed);
  EXPECT_FALSE(table.take(key(1), start + 500ms).allowed) << "a refused request costs nothing";
  const auto rested = table.take(key(1), start + 1h);
  EXPECT_EQ(rested.remaining, 2U) << "a bucket is never more than full";
  EXPECT_EQ(rested.until_full, 500ms);
}

TEST(RateTable, NeverAllowsMoreThanBurstAndRate) {
  RateTable table({.tokens = 3, .per = 1s, .burst = 5}, 8);
  int allowed = 0;
  for (Duration time{0}; time < 100s; time += 7ms) {
    if (table.take(key(1), start + time).allowed) ++allowed;
    const double most = 5 + 3 * std::chrono::duration<double>(time).count();
    ASSERT_LE(allowed, most + 1e-6);
  }
  EXPECT_GE(allowed, 299);
}

TEST(RateTable, KeepsKeysApart) {
  RateTable table({.tokens = 1, .per = 1s, .burst = 1}, 1000);
  for (std::uint64_t number = 0; number < 100; ++number) {
    EXPECT_TRUE(table.take(key(number), start).allowed);
    EXPECT_FALSE(table.take(key(number), start).allowed);
  }
}

TEST(RateTable, HasABoundOfItsMemory) {
  RateTable table({.tokens = 1, .per = 1h, .burst = 1}, 1000);
  EXPECT_EQ(table.capacity(), 1000U);
  EXPECT_EQ(table.bytes(), 16'000U);
  for (std::uint64_t number = 0; number < 100'000; ++number) {
    EXPECT_TRUE(table.take(key(number), start).allowed);
  }
  EXPECT_EQ(table.capacity(), 1000U);
  EXPECT_EQ(RateTable({}, 1).capacity(), RateTable::ways);
  EXPECT_EQ(RateTable({}, 0).capacity(), RateTable::ways);
}

TEST(RateTable, ForgetsTheFullestBucketFirst) {
  RateTable table({.tokens = 1, .per = 1s, .burst = 10}, RateTable::ways);
  for (int times = 0; times < 10; ++times) EXPECT_TRUE(table.take(key(1), start).allowed);
  for (std::uint64_t number = 2; number < 1000; ++number) table.take(key(number), start);
  EXPECT_FALSE(table.take(key(1), start).allowed) << "a key that uses its limit stays";
}

}  // namespace
}  // namespace weir::http::rate_table_test
