#include "weir/loop/os/detail/adaptive_spinner.hpp"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Spinning, OneAtATimeAndNotOnASingleCpu) {
  SpinPlace place(2);
  Spinning first;
  Spinning second;
  EXPECT_TRUE(first.begin(place));
  EXPECT_FALSE(second.begin(place));
  first.succeeded();
  place.give_back();
  EXPECT_TRUE(second.begin(place));
  SpinPlace single(1);
  EXPECT_FALSE(first.begin(single));
}

TEST(Spinning, IsTriedEverMoreSeldomWhileItIsOfNoUse) {
  SpinPlace place(2);
  Spinning spinning;
  int tried = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (!spinning.begin(place)) continue;
    ++tried;
    spinning.failed();
    place.give_back();
  }
  EXPECT_GT(tried, 10'000 / 140);
  EXPECT_LT(tried, 10'000 / 100);
}

TEST(Spinning, GoesOnWhileItIsOfUse) {
  SpinPlace place(2);
  Spinning spinning;
  ASSERT_TRUE(spinning.begin(place));
  spinning.failed();
  place.give_back();
  EXPECT_FALSE(spinning.begin(place));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(spinning.begin(place));
    spinning.succeeded();
    place.give_back();
  }
}

}  // namespace
}  // namespace weir
