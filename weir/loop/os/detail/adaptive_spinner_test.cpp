// Tests of adaptive spinning.
#include "weir/loop/os/detail/adaptive_spinner.hpp"

#include <gtest/gtest.h>

namespace weir::loop::adaptive_spinner_test {
namespace {

TEST(AdaptiveSpinner, OneThreadSpinsAtATimeAndNoneOnASingleCpu) {
  SpinPermit permit(2);
  AdaptiveSpinner first;
  AdaptiveSpinner second;
  EXPECT_TRUE(first.try_begin(permit));
  EXPECT_FALSE(second.try_begin(permit));
  first.record_success();
  permit.release();
  EXPECT_TRUE(second.try_begin(permit));
  SpinPermit single(1);
  EXPECT_FALSE(first.try_begin(single));
}

/// Returns the number of waits without spinning before the next spin, which fails.
int pauses_before_a_failure(AdaptiveSpinner& spinner, SpinPermit& permit) {
  int pauses = 0;
  while (!spinner.try_begin(permit)) ++pauses;
  spinner.record_failure();
  permit.release();
  return pauses;
}

TEST(AdaptiveSpinner, SpinsLessOftenAfterEachFailure) {
  SpinPermit permit(2);
  AdaptiveSpinner spinner;
  for (const int expected : {0, 1, 3, 7, 15, 31, 63, 127, 127}) {
    EXPECT_EQ(pauses_before_a_failure(spinner, permit), expected);
  }
  for (int i = 0; i < 127; ++i) EXPECT_FALSE(spinner.try_begin(permit));
  ASSERT_TRUE(spinner.try_begin(permit));
  spinner.record_success();
  permit.release();
  for (const int expected : {0, 1, 3}) {
    EXPECT_EQ(pauses_before_a_failure(spinner, permit), expected) << "a success ends the row";
  }
}

TEST(AdaptiveSpinner, KeepsSpinningAfterSuccesses) {
  SpinPermit permit(2);
  AdaptiveSpinner spinner;
  ASSERT_TRUE(spinner.try_begin(permit));
  spinner.record_failure();
  permit.release();
  EXPECT_FALSE(spinner.try_begin(permit));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(spinner.try_begin(permit));
    spinner.record_success();
    permit.release();
  }
}

}  // namespace
}  // namespace weir::loop::adaptive_spinner_test
