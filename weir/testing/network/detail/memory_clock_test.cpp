// Tests of the virtual clock: the order and the times of its events.
#include "weir/testing/network/detail/memory_clock.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::memory_clock_test {
namespace {

TEST(MemoryClock, StandsStillUntilItIsMoved) {
  MemoryClock clock;
  const Instant start = clock.now();
  EXPECT_GT(start, Instant()) << "Instant{} is in the past";
  EXPECT_EQ(clock.next(), never);
  EXPECT_FALSE(clock.move_to(after(start, 5s)));
  EXPECT_EQ(clock.now(), after(start, 5s));
  EXPECT_FALSE(clock.move_to(start));
  EXPECT_EQ(clock.now(), after(start, 5s)) << "it never moves back";
}

TEST(MemoryClock, EventsOfOneMomentHappenInTheirOrder) {
  MemoryClock clock;
  const Instant start = clock.now();
  std::string order;
  for (const char each : {'a', 'b', 'c', 'd'}) {
    clock.at(after(start, 1s), [&order, each] { order += each; });
  }
  clock.at(start, [&order] { order += '0'; });
  EXPECT_EQ(clock.next(), start);
  EXPECT_TRUE(clock.move_to(start));
  EXPECT_EQ(order, "0") << "an event that is due now happens in the next move";
  EXPECT_FALSE(clock.move_to(after(start, 1s - 1ns)));
  EXPECT_TRUE(clock.move_to(after(start, 1s)));
  EXPECT_EQ(order, "0abcd");
}

TEST(MemoryClock, EachEventSeesItsOwnTime) {
  MemoryClock clock;
  const Instant start = clock.now();
  std::string seen;
  const auto note = [&] { seen += std::to_string((clock.now() - start) / 1s) + " "; };
  clock.at(after(start, 3s), note);
  clock.at(after(start, 1s), [&] {
    note();
    clock.at(after(start, 2s), note);
    clock.at(Instant(), note);  // in the past
    clock.at(after(start, 9s), note);
  });
  EXPECT_TRUE(clock.move_to(after(start, 5s)));
  EXPECT_EQ(seen, "1 1 2 3 ");
  EXPECT_EQ(clock.next(), after(start, 9s));
}

TEST(MemoryClock, AnEventMayMoveTheClockAndCancelLaterOnes) {
  MemoryClock clock;
  const Instant start = clock.now();
  std::string order;
  MemoryClock::EventId cancelled;
  clock.at(after(start, 1s), [&] {
    order += 'a';
    clock.cancel(cancelled);
    EXPECT_TRUE(clock.move_to(after(start, 3s)));
    order += 'd';
  });
  cancelled = clock.at(after(start, 1s), [&] { order += 'x'; });
  clock.at(after(start, 1s), [&] { order += 'b'; });
  clock.at(after(start, 3s), [&] { order += 'c'; });
  clock.at(after(start, 4s), [&] { order += 'e'; });
  EXPECT_TRUE(clock.move_to(after(start, 2s)));
  EXPECT_EQ(order, "abcd");
  EXPECT_EQ(clock.now(), after(start, 3s)) << "it never moves back";
  EXPECT_TRUE(clock.move_to(after(start, 4s)));
  EXPECT_EQ(order, "abcde");
}

TEST(MemoryClock, ACancelledEventDoesNotHappen) {
  MemoryClock clock;
  int happened = 0;
  const auto first = clock.at(after(clock.now(), 1s), [&] { ++happened; });
  const auto second = clock.at(after(clock.now(), 1s), [&] { ++happened; });
  EXPECT_NE(first, second);
  clock.cancel(first);
  EXPECT_TRUE(clock.move_to(after(clock.now(), 1s)));
  EXPECT_EQ(happened, 1);
  clock.cancel(second);
  EXPECT_EQ(clock.next(), never);
}

}  // namespace
}  // namespace weir::memory_clock_test
