// Tests of random numbers from a seed: the same numbers everywhere, in the documented ranges.
#include "weir/sim/detail/random.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <set>

namespace weir::sim::random_test {
namespace {

TEST(Random, GivesThePublishedNumbersOfItsGenerator) {
  Random random(0);
  EXPECT_EQ(random.next(), 0xe220a8397b1dcdafU);
  EXPECT_EQ(random.next(), 0x6e789e6aa1b965f4U);
  EXPECT_EQ(random.next(), 0x06c45d188009454fU);
  EXPECT_EQ(random.next(), 0xf88bb8a8724c81ecU);
}

TEST(Random, BelowReachesEachNumberEquallyOften) {
  Random random(1);
  for (const std::size_t count : {1U, 2U, 3U, 7U}) {
    std::map<std::size_t, int> seen;
    for (int draw = 0; draw < 7000; ++draw) ++seen[random.below(count)];
    EXPECT_EQ(seen.size(), count);
    EXPECT_EQ(seen.rbegin()->first, count - 1);
    for (const auto& [number, times] : seen) {
      EXPECT_NEAR(times, 7000 / static_cast<int>(count), 200) << number << " of " << count;
    }
  }
}

TEST(Random, OneOfReachesEachValueAsBelowDoes) {
  Random random(1);
  Random same(1);
  constexpr std::array values{5, 7, 9};
  std::set<int> seen;
  for (int draw = 0; draw < 100; ++draw) {
    const int value = random.one_of(values);
    EXPECT_EQ(value, values[same.below(values.size())]);
    seen.insert(value);
  }
  EXPECT_EQ(seen, (std::set<int>{5, 7, 9}));
  EXPECT_EQ(random.one_of(std::array{3}), 3);
  EXPECT_EQ(random.next(), same.next()) << "a choice from one value draws no number";
}

TEST(Random, BernoulliHasItsRate) {
  Random random(1);
  for (const double rate : {0.02, 0.3, 0.5, 0.97}) {
    int times = 0;
    for (int draw = 0; draw < 10'000; ++draw) times += random.bernoulli(rate) ? 1 : 0;
    EXPECT_NEAR(times, rate * 10'000, 200) << rate;
  }
}

TEST(Random, NeverAndAlwaysUseNoNumber) {
  Random random(5);
  Random same(5);
  for (int draw = 0; draw < 100; ++draw) {
    EXPECT_FALSE(random.bernoulli(0));
    EXPECT_FALSE(random.bernoulli(-1));
    EXPECT_TRUE(random.bernoulli(1));
    EXPECT_TRUE(random.bernoulli(2));
  }
  EXPECT_EQ(random.next(), same.next());
}

TEST(Random, BetweenIncludesBothEnds) {
  Random random(1);
  std::set<Duration> seen;
  for (int draw = 0; draw < 300; ++draw) seen.insert(random.between(3ns, 6ns));
  EXPECT_EQ(seen, (std::set<Duration>{3ns, 4ns, 5ns, 6ns}));
  EXPECT_EQ(random.between(5ns, 5ns), 5ns);
  EXPECT_EQ(random.between(5ns, 4ns), 5ns) << "an empty range";
  seen.clear();
  for (int draw = 0; draw < 100; ++draw) seen.insert(random.between(7ns, 8ns));
  EXPECT_EQ(seen.size(), 2U);
}

}  // namespace
}  // namespace weir::sim::random_test
