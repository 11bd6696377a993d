// Tests of the work account.
#include "weir/http/detail/h2/work_account.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace weir::http::work_account_test {
namespace {

using namespace std::chrono_literals;
using Verdict = WorkAccount::Verdict;

constexpr WorkLimits limits{.burst = 100, .refill_per_second = 10, .delay = 100ms, .delays_max = 3};

TEST(WorkAccount, BeginsFull) {
  WorkAccount account(limits, Instant());
  EXPECT_EQ(account.balance(), 100);
  account.spend(99);
  EXPECT_EQ(account.check(Instant()), Verdict::open);
  account.spend(1);
  EXPECT_TRUE(account.empty());
  EXPECT_EQ(account.check(Instant()), Verdict::empty);
}

TEST(WorkAccount, IsRefilledByTime) {
  WorkAccount account(limits, Instant(5s));
  account.spend(100);
  EXPECT_EQ(account.check(Instant(5s) + 99ms), Verdict::empty);
  EXPECT_EQ(account.check(Instant(5s) + 200ms), Verdict::open);
  EXPECT_EQ(account.balance(), 1);
  EXPECT_EQ(account.check(Instant(4s)), Verdict::open);
  EXPECT_EQ(account.balance(), 1);
  EXPECT_EQ(account.check(Instant::max()), Verdict::open);
  EXPECT_EQ(account.balance(), 100);
}

TEST(WorkAccount, EarnsAtMostAFullBalance) {
  WorkAccount account(limits, Instant());
  account.spend(50);
  account.earn(20);
  EXPECT_EQ(account.balance(), 70);
  account.earn(1'000);
  EXPECT_EQ(account.balance(), 100);
}

TEST(WorkAccount, DataEarnsBackWhatFramesHaveSpent) {
  WorkAccount account(limits, Instant());
  account.spend(50);
  account.earn_by_data(50);
  EXPECT_EQ(account.balance(), 50) << "no frame has spent anything";
  account.spend_on_frames(20);
  account.earn_by_data(15);
  EXPECT_EQ(account.balance(), 45);
  account.earn_by_data(15);
  EXPECT_EQ(account.balance(), 50);
  account.earn_by_data(1);
  EXPECT_EQ(account.balance(), 50);
}

TEST(WorkAccount, IsExhaustedAfterItsDelays) {
  WorkAccount account(limits, Instant());
  account.spend(100);
  for (int delay = 0; delay < 3; ++delay) EXPECT_EQ(account.check(Instant()), Verdict::empty);
  EXPECT_EQ(account.check(Instant()), Verdict::exhausted);
}

TEST(WorkAccount, ForgetsDelaysWhenItIsHalfFull) {
  WorkAccount account(limits, Instant());
  account.spend(100);
  for (int delay = 0; delay < 3; ++delay) EXPECT_EQ(account.check(Instant()), Verdict::empty);
  account.earn(50);
  account.spend(50);
  EXPECT_EQ(account.check(Instant()), Verdict::exhausted);
  account.earn(51);
  account.spend(51);
  EXPECT_EQ(account.check(Instant()), Verdict::empty);
}

TEST(WorkAccount, LimitsItsDebt) {
  constexpr WorkLimits fast{.refill_per_second = 2'000'000'000};
  WorkAccount account(fast, Instant());
  for (int round = 0; round < 5'000; ++round) account.spend(1'000'000);
  EXPECT_EQ(account.balance(), -1'000'000);
  EXPECT_EQ(account.check(Instant(1s)), Verdict::open);
}

}  // namespace
}  // namespace weir::http::work_account_test
