// Tests of the array that reuses released slots.
#include "weir/app/describe/detail/slot_array.hpp"

#include <gtest/gtest.h>

namespace weir::inject::slot_array_test {
namespace {

TEST(SlotArray, AllocatesRunsSideBySideWithinAChunk) {
  SlotArray<int, 4> slots;
  EXPECT_EQ(slots.size(), 0U);
  EXPECT_EQ(slots.allocate(), 0U);
  EXPECT_EQ(slots.allocate(3), 1U) << "the rest of the chunk";
  EXPECT_EQ(slots.size(), 4U);
  EXPECT_EQ(slots.allocate(3), 4U);
  EXPECT_EQ(slots.allocate(2), 8U) << "the next chunk, because the run does not fit";
  EXPECT_EQ(slots.size(), 10U);
  EXPECT_EQ(slots.allocate(4), 12U) << "a whole chunk";
  EXPECT_EQ(slots.allocate(), 16U);
  EXPECT_EQ(slots.size(), 17U);
}

TEST(SlotArray, ElementsStayWhereTheyAre) {
  SlotArray<int, 2> slots;
  int& first = slots[slots.allocate()];
  first = 7;
  for (int i = 0; i < 100; ++i) slots[slots.allocate()] = i;
  EXPECT_EQ(&slots[0], &first);
  EXPECT_EQ(first, 7);
  EXPECT_EQ(slots[1], 0);
  EXPECT_EQ(slots[100], 99);
}

TEST(SlotArray, ReusesReleasedRunsOfTheSameLength) {
  SlotArray<int, 8> slots;
  const Index run = slots.allocate(3);
  const Index single = slots.allocate();
  for (Index i = 0; i < 3; ++i) slots[run + i] = 5;
  slots.release(run, 3);
  slots.release(single);
  EXPECT_EQ(slots.allocate(2), 4U) << "no released run has that length";
  EXPECT_EQ(slots.allocate(), single);
  EXPECT_EQ(slots.allocate(), 6U);
  EXPECT_EQ(slots.allocate(3), run);
  for (Index i = 0; i < 3; ++i) EXPECT_EQ(slots[run + i], 0) << "fresh elements";
  EXPECT_EQ(slots.allocate(3), 8U) << "each run is reused once";
}

TEST(SlotArray, IsEmptyAfterAClear) {
  SlotArray<int, 4> slots;
  slots.release(slots.allocate(2), 2);
  slots.allocate();
  slots.clear();
  EXPECT_EQ(slots.size(), 0U);
  EXPECT_EQ(slots.allocate(), 0U);
  EXPECT_EQ(slots.allocate(2), 1U);
}

}  // namespace
}  // namespace weir::inject::slot_array_test
