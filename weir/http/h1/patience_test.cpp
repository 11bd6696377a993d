#include "weir/http/server/detail/rate_tracker.hpp"

#include <gtest/gtest.h>

namespace weir::http {
namespace {

constexpr MinimumRate rate{5s, 240, 20s};

TEST(Patience, StartsWithTheGrace) {
  Patience patience(rate);
  EXPECT_EQ(patience.left(), 5s);
  EXPECT_FALSE(patience.exhausted());
  patience.note(5s, 0);
  EXPECT_TRUE(patience.exhausted());
}

TEST(Patience, TheRateKeepsItAsItIs) {
  Patience patience(rate);
  for (int hour = 0; hour < 24; ++hour) patience.note(3600s, 3600 * 240);
  EXPECT_EQ(patience.left(), 5s);
  for (int second = 0; second < 1199; ++second) patience.note(1s, 239);
  EXPECT_FALSE(patience.exhausted());
  patience.note(1s, 239);
  EXPECT_TRUE(patience.exhausted());
}

TEST(Patience, ABurstBuysNoMoreThanTheLongestStall) {
  Patience patience(rate);
  patience.note(0s, std::uint64_t{1} << 62);
  EXPECT_EQ(patience.left(), 20s);
  patience.note(19s, 0);
  EXPECT_FALSE(patience.exhausted());
  patience.note(1s, 0);
  EXPECT_TRUE(patience.exhausted());
}

}  // namespace
}  // namespace weir::http
