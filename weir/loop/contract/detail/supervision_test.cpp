// How often and how soon a worker begins again.
#include "weir/loop/restart_policy.hpp"

#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr RestartPolicy policy{
    .pause_first = 100ms, .pause_max = 1s, .stable_after = 30s, .in_a_row_max = 6};

TEST(Restarts, WaitLongerEachTimeInARowAndThenNoMore) {
  Restarts restarts(policy);
  const Instant now{};
  restarts.began(now);
  for (const Duration pause : {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
    EXPECT_EQ(restarts.ended(now), now + pause);
    restarts.began(now);
  }
  EXPECT_EQ(restarts.in_a_row(), 6U);
  EXPECT_EQ(restarts.ended(now), std::nullopt);
}

TEST(Restarts, ALongLifeEndsTheRow) {
  Restarts restarts(policy);
  Instant now{};
  for (int round = 0; round < 20; ++round) {
    restarts.began(now);
    now += 30s;
    EXPECT_EQ(restarts.ended(now), now + 100ms);
    restarts.began(now);
    EXPECT_EQ(restarts.ended(now + 29s), now + 29s + 200ms);
  }
}

TEST(Restarts, MayBeForbidden) {
  Restarts restarts({.in_a_row_max = 0});
  restarts.began(Instant{});
  EXPECT_EQ(restarts.ended(Instant{}), std::nullopt);
}

}  // namespace
}  // namespace weir
