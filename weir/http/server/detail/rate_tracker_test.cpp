// Tests of the time budget of peers that must keep a minimum rate.
#include "weir/http/server/detail/rate_tracker.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace weir::http::rate_tracker_test {
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

TEST(RateTracker, BudgetReachesTheGraceIfThatIsLonger) {
  RateTracker tracker({10s, 240, 2s});
  tracker.record(0s, 0);
  EXPECT_EQ(tracker.time_left(), 10s);
  tracker.record(4s, 0);
  EXPECT_EQ(tracker.time_left(), 6s);
  tracker.record(1s, 480);
  EXPECT_EQ(tracker.time_left(), 7s);
  tracker.record(0s, std::uint64_t{1} << 62);
  EXPECT_EQ(tracker.time_left(), 10s);
}

TEST(RateTracker, EachByteEarnsItsShareOfASecond) {
  RateTracker tracker({5s, 8, 20s});
  tracker.record(1s, 1);
  EXPECT_EQ(tracker.time_left(), 4125ms);
  tracker.record(0s, 7);
  EXPECT_EQ(tracker.time_left(), 5s);
  tracker.record(0s, 1000);
  EXPECT_EQ(tracker.time_left(), 20s);
  tracker.record(20s - 1ns, 0);
  EXPECT_FALSE(tracker.exhausted());
  tracker.record(1ns, 0);
  EXPECT_TRUE(tracker.exhausted());
}

TEST(RateTracker, LargestGraceHasRoomForNoMore) {
  RateTracker tracker({Duration::max(), 0, 20s});
  tracker.record(0s, std::uint64_t{1} << 62);
  EXPECT_EQ(tracker.time_left(), Duration::max());
  tracker.record(10s, 1);
  EXPECT_EQ(tracker.time_left(), Duration::max() - 9s);
  tracker.record(0s, 9);
  EXPECT_EQ(tracker.time_left(), Duration::max());
}

TEST(RateTracker, ARateOfZeroCountsAsOne) {
  RateTracker tracker({5s, 0, 20s});
  tracker.record(4s, 3);
  EXPECT_EQ(tracker.time_left(), 4s);
  tracker.record(4s, 0);
  EXPECT_TRUE(tracker.exhausted());
}

}  // namespace
}  // namespace weir::http::rate_tracker_test
