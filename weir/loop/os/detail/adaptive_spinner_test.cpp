// Tests of adaptive spinning.
#include "weir/loop/os/detail/adaptive_spinner.hpp"

#include <gtest/gtest.h>

namespace weir {
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

TEST(AdaptiveSpinner, SpinsLessOftenAfterFailures) {
  SpinPermit permit(2);
  AdaptiveSpinner spinner;
  int tried = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (!spinner.try_begin(permit)) continue;
    ++tried;
    spinner.record_failure();
    permit.release();
  }
  EXPECT_GT(tried, 10'000 / 140);
  EXPECT_LT(tried, 10'000 / 100);
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
}  // namespace weir
