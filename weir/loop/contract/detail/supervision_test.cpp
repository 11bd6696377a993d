// Tests of the number and the pauses of worker restarts.
#include "weir/loop/contract/detail/supervision.hpp"

#include <gtest/gtest.h>

namespace weir::loop::supervision_test {
namespace {

using namespace std::chrono_literals;

constexpr RestartPolicy policy{
    .pause_first = 100ms, .pause_max = 1s, .stable_after = 30s, .in_a_row_max = 6};

TEST(RestartBackoff, PauseDoublesUntilRestartsEnd) {
  RestartBackoff backoff(policy);
  const Instant now{};
  backoff.on_start(now);
  for (const Duration pause : {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
    EXPECT_EQ(backoff.on_end(now), now + pause);
    backoff.on_start(now);
  }
  EXPECT_EQ(backoff.in_a_row(), 6U);
  EXPECT_EQ(backoff.on_end(now), std::nullopt);
}

TEST(RestartBackoff, ALongRunEndsTheRow) {
  RestartBackoff backoff(policy);
  Instant now{};
  for (int round = 0; round < 20; ++round) {
    backoff.on_start(now);
    now += 30s;
    EXPECT_EQ(backoff.on_end(now), now + 100ms);
    backoff.on_start(now);
    EXPECT_EQ(backoff.on_end(now + 29s), now + 29s + 200ms);
  }
}

TEST(RestartBackoff, ZeroRestartsForbidRestarting) {
  RestartBackoff backoff({.in_a_row_max = 0});
  backoff.on_start(Instant{});
  EXPECT_EQ(backoff.on_end(Instant{}), std::nullopt);
}

TEST(RestartBackoff, TheDefaultsAllowTenRestartsInARow) {
  RestartBackoff backoff{RestartPolicy()};
  Instant now{};
  backoff.on_start(now);
  for (const Duration pause :
       {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms, 10'000ms, 10'000ms, 10'000ms}) {
    EXPECT_EQ(backoff.on_end(now), now + pause);
    backoff.on_start(now);
  }
  EXPECT_EQ(backoff.on_end(now + 30s - 1ns), std::nullopt);
  EXPECT_EQ(backoff.on_end(now + 30s), now + 30s + 100ms) << "a stable run ends the row";
  EXPECT_EQ(backoff.in_a_row(), 1U);
}

TEST(SupervisionOptions, GiveADrainTenSecondsAndThreeMoreUntilTheKill) {
  const SupervisionOptions options;
  EXPECT_EQ(options.drain_timeout, 10s);
  EXPECT_EQ(options.kill_timeout, 3s);
  EXPECT_TRUE(options.announce);
}

}  // namespace
}  // namespace weir::loop::supervision_test
