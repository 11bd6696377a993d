#include "weir/http/server/detail/rate_tracker.hpp"

#include <gtest/gtest.h>

namespace weir::http {
namespace {

constexpr MinimumRate rate{5s, 240, 20s};

TEST(RateTracker, StartsWithTheGrace) {
  RateTracker tracker(rate);
  EXPECT_EQ(tracker.time_left(), 5s);
  EXPECT_FALSE(tracker.exhausted());
  tracker.record(5s, 0);
  EXPECT_TRUE(tracker.exhausted());
}

TEST(RateTracker, PeerAtTheMinimumRateKeepsItsTime) {
  RateTracker tracker(rate);
  for (int hour = 0; hour < 24; ++hour) tracker.record(3600s, 3600 * 240);
  EXPECT_EQ(tracker.time_left(), 5s);
  for (int second = 0; second < 1199; ++second) tracker.record(1s, 239);
  EXPECT_FALSE(tracker.exhausted());
  tracker.record(1s, 239);
  EXPECT_TRUE(tracker.exhausted());
}

TEST(RateTracker, BurstEarnsAtMostTheLongestStall) {
  RateTracker tracker(rate);
  tracker.record(0s, std::uint64_t{1} << 62);
  EXPECT_EQ(tracker.time_left(), 20s);
  tracker.record(19s, 0);
  EXPECT_FALSE(tracker.exhausted());
  tracker.record(1s, 0);
  EXPECT_TRUE(tracker.exhausted());
}

}  // namespace
}  // namespace weir::http
