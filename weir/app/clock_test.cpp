// Tests of the clocks for services.
#include "weir/app/clock.hpp"

#include "weir/app/test/app_fixture.hpp"

namespace weir::clock_test {
namespace {

using ClockTest = AppTest;

TEST_F(ClockTest, TheSystemClockFollowsThePlatform) {
  const Clock* clock = nullptr;
  struct Last {};
  app_.per_core<SystemClock, Clock>();
  app_.per_core([&clock](const Clock& given) {
    clock = &given;
    return Last();
  });
  ASSERT_TRUE(start());
  ASSERT_NE(clock, nullptr);
  const Instant before = clock->now();
  const WallTime wall_time_before = clock->wall_time();
  EXPECT_EQ(before, platform_.now());
  EXPECT_EQ(wall_time_before, platform_.wall_time());
  platform_.advance(*loop_, 3s);
  EXPECT_EQ(clock->now() - before, 3s);
  EXPECT_EQ(clock->wall_time() - wall_time_before, 3s);
  stop();
}

TEST(FakeClock, AdvancesOnlyByAdvance) {
  FakeClock control(WallTime(5s));
  const FakeClock copy = control;
  const Instant before = copy.now();
  EXPECT_EQ(copy.wall_time(), WallTime(5s));
  control.advance(2s);
  control.advance(1ms);
  EXPECT_EQ(copy.now() - before, 2001ms);
  EXPECT_EQ(copy.wall_time(), WallTime(7001ms));
}

}  // namespace
}  // namespace weir::clock_test
