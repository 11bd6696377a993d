#include "weir/loop/slow_turns.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir {
namespace {

void one_place() {}

TEST(SlowTurns, APlaceIsToldOnceAndCountedAlways) {
  SlowTurns slow;
  EXPECT_EQ(slow.add({.name = "GET /slow"}, 80ms), "GET /slow");
  for (int i = 0; i < 9; ++i) EXPECT_EQ(slow.add({.name = "GET /slow"}, 90ms - i * 1ms), "");
  EXPECT_EQ(slow.add({.name = "GET /other"}, 60ms), "GET /other");
  const auto places = slow.places();
  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ(places[0].name, "GET /slow");
  EXPECT_EQ(places[0].turns, 10U);
  EXPECT_EQ(places[0].longest, 90ms);
  EXPECT_EQ(places[1].turns, 1U);
}

TEST(SlowTurns, FunctionsAreNamed) {
  SlowTurns slow;
  const auto* const function = reinterpret_cast<const void*>(&one_place);
  EXPECT_EQ(slow.add({function}, 80ms), "weir::(anonymous namespace)::one_place");
  EXPECT_EQ(slow.add({function}, 80ms), "") << "told already";
  EXPECT_EQ(slow.add({}, 80ms), "no one thing was seen to take long");
  EXPECT_EQ(slow.places().size(), 2U);
}

TEST(SlowTurns, TheMostFrequentComesFirst) {
  SlowTurns slow;
  slow.add({.name = "seldom"}, 80ms);
  slow.add({.name = "often"}, 70ms);
  slow.add({.name = "often"}, 70ms);
  EXPECT_EQ(slow.places().front().name, "often");
}

TEST(SlowTurns, OfTooManyPlacesTheRestIsCountedTogether) {
  SlowTurns slow;
  for (std::size_t i = 0; i < SlowTurns::places_max; ++i) {
    EXPECT_NE(slow.add({.name = "place " + std::to_string(i)}, 80ms), "");
  }
  EXPECT_EQ(slow.add({.name = "one more"}, 80ms), "others");
  EXPECT_EQ(slow.add({.name = "and another"}, 100ms), "");
  EXPECT_EQ(slow.add({.name = "place 0"}, 80ms), "") << "known ones are still told apart";
  const auto places = slow.places();
  EXPECT_EQ(places.size(), SlowTurns::places_max + 1);
  for (const SlowPlace& each : places) {
    const bool twice = each.name == "others" || each.name == "place 0";
    EXPECT_EQ(each.turns, twice ? 2U : 1U) << each.name;
  }
}

}  // namespace
}  // namespace weir
