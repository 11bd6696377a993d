#include "weir/base/detail/counter.hpp"

#include <gtest/gtest.h>

namespace weir::detail::counter_test {
namespace {

TEST(Counter, AddsAndSubtractsOneOrMore) {
  Counter counter;
  EXPECT_EQ(counter.value(), 0U);
  counter.add();
  EXPECT_EQ(counter.value(), 1U);
  counter.add(10);
  EXPECT_EQ(counter.value(), 11U);
  counter.subtract();
  EXPECT_EQ(counter.value(), 10U);
  counter.subtract(7);
  EXPECT_EQ(counter.value(), 3U);
}

TEST(Counter, KeepsTheGreatestValue) {
  Counter counter;
  counter.update_max(5);
  EXPECT_EQ(counter.value(), 5U);
  counter.update_max(4);
  EXPECT_EQ(counter.value(), 5U);
  counter.update_max(6);
  EXPECT_EQ(counter.value(), 6U);
}

}  // namespace
}  // namespace weir::detail::counter_test
