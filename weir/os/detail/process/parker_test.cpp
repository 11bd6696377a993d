#include "weir/os/detail/process/parker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "weir/os/detail/io/clock.hpp"

namespace weir::os::parker_test {
namespace {

TEST(Parker, KeepsANotificationThatArrivesFirst) {
  Parker parker;
  EXPECT_FALSE(parker.is_notified());
  parker.unpark();
  parker.unpark();
  EXPECT_TRUE(parker.is_notified());
  parker.park();
  EXPECT_FALSE(parker.is_notified());
  const Instant until = after(monotonic_now(), 5ms);
  while (monotonic_now() < until) parker.park(until);  // several notifications count as one
}

TEST(Parker, ReturnsAtItsDeadline) {
  Parker parker;
  const Instant began = monotonic_now();
  parker.park(after(began, -1s));
  EXPECT_LT(monotonic_now() - began, 1s);
  while (monotonic_now() < after(began, 3ms)) parker.park(after(began, 3ms));
  EXPECT_GE(monotonic_now() - began, 3ms);
}

TEST(Parker, TwoThreadsTakeTurns) {
  constexpr int rounds = 20'000;
  Parker left;
  Parker right;
  std::atomic<bool> lefts_turn = true;
  int count = 0;
  const auto play = [&](Parker& own, Parker& other, bool turn) {
    for (int i = 0; i < rounds; ++i) {
      while (lefts_turn != turn) own.park();
      ++count;
      lefts_turn = !turn;
      other.unpark();
    }
  };
  std::thread thread([&] { play(right, left, false); });
  play(left, right, true);
  thread.join();
  EXPECT_EQ(count, 2 * rounds);
}

}  // namespace
}  // namespace weir::os::parker_test
