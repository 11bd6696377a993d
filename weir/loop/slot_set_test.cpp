#include "weir/loop/slot_set.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace weir {
namespace {

TEST(SlotSet, IsASet) {
  std::mt19937 random(3);
  SlotSet slots;
  std::set<unsigned> expected;
  for (int step = 0; step < 20000; ++step) {
    const unsigned slot = random() % SlotSet::size;
    // Grows, then shrinks, so that it is nearly empty and nearly full at times.
    if (random() % 100 < (step / 5000 % 2 == 0 ? 80U : 20U)) {
      slots.insert(slot);
      expected.insert(slot);
    } else {
      slots.erase(slot);
      expected.erase(slot);
    }
    ASSERT_EQ(slots.contains(slot), expected.contains(slot));
    ASSERT_EQ(slots.empty(), expected.empty());
    if (!expected.empty()) {
      ASSERT_EQ(slots.first(), *expected.begin());
    }
  }
}

}  // namespace
}  // namespace weir
