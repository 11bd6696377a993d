// Tests of TurnWork.
#include "weir/compression/detail/turn_work.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::compression::turn_work_test {
namespace {

TEST(TurnWork, IsUsedByInput) {
  TurnWork work;
  work.enter(7);
  const std::string data(2 * TurnWork::input_max, 'x');
  const Bytes first = work.input(to_bytes(data));
  EXPECT_EQ(first.size(), TurnWork::input_max);
  work.count({.consumed = first.size()});
  EXPECT_TRUE(work.is_used());
  work.enter(7);
  EXPECT_TRUE(work.is_used()) << "it is the same turn";
  work.enter(8);
  EXPECT_FALSE(work.is_used());
}

TEST(TurnWork, IsUsedByOutput) {
  TurnWork work;
  work.enter(0);
  EXPECT_EQ(work.output(100), 100U);
  work.count({.consumed = 1, .produced = TurnWork::output_max - 1});
  EXPECT_EQ(work.output(100), 1U);
  EXPECT_FALSE(work.is_used());
  work.count({.consumed = 0, .produced = 1});
  EXPECT_TRUE(work.is_used());
}

TEST(TurnWork, IsUsedByStepsThatTakeNothing) {
  TurnWork work;
  work.enter(0);
  std::size_t steps = 0;
  for (; !work.is_used(); ++steps) work.count({});
  EXPECT_EQ(steps, TurnWork::input_max / TurnWork::step_price);
}

}  // namespace
}  // namespace weir::compression::turn_work_test
