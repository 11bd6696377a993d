// Tests that the clocks are the kernel's and that the monotonic clock never goes back.
#include "weir/os/detail/io/clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>

namespace weir::os::clock_test {
namespace {

TEST(Clock, MonotonicNeverGoesBack) {
  Instant last = monotonic_now();
  for (int i = 0; i < 10'000; ++i) {
    const Instant now = monotonic_now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(Clock, BothAreTheKernelsClocks) {
  // libstdc++ uses the same two clocks, so that a reading lies between two of its readings.
  const auto steady_before = std::chrono::steady_clock::now().time_since_epoch();
  const auto monotonic = monotonic_now().time_since_epoch();
  const auto steady_after = std::chrono::steady_clock::now().time_since_epoch();
  EXPECT_LE(steady_before, monotonic);
  EXPECT_LE(monotonic, steady_after);
  const auto difference = wall_now() - std::chrono::system_clock::now();
  EXPECT_LT(std::chrono::abs(difference), std::chrono::seconds(5));
}

TEST(Clock, ConvertsLengthsForSystemCalls) {
  using namespace std::chrono_literals;
  for (const Duration length : {Duration(0ns), Duration(999'999'999ns), Duration(1s),
                                Duration(1s + 1ns), Duration::max()}) {
    const timespec time = to_timespec(length);
    EXPECT_EQ(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec), length);
    EXPECT_LT(time.tv_nsec, 1'000'000'000);
  }
}

TEST(Clock, RoundsPollTimeoutsUp) {
  using namespace std::chrono_literals;
  const Instant now(1h);
  EXPECT_EQ(to_poll_timeout(never, now), -1);
  EXPECT_EQ(to_poll_timeout(Instant::min(), now), 0);
  EXPECT_EQ(to_poll_timeout(now, now), 0);
  EXPECT_EQ(to_poll_timeout(now + 1ns, now), 1);
  EXPECT_EQ(to_poll_timeout(now + 1ms, now), 1);
  EXPECT_EQ(to_poll_timeout(now + 24h * 365, now), std::numeric_limits<int>::max());
}

}  // namespace
}  // namespace weir::os::clock_test
