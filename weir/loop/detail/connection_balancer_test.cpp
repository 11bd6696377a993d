#include "weir/loop/balance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir {
namespace {

TEST(BalanceRule, WithEvenTrafficNothingEverBegins) {
  for (std::size_t cores = 1; cores <= 64; ++cores) {
    BalanceRule rule;
    for (std::size_t each = 0; each < 2000; ++each) {
      // One core is a connection ahead of all others, or level with them.
      EXPECT_FALSE(rule.hands_over(each + 1, each * cores + 1, cores));
      EXPECT_FALSE(rule.hands_over(each, each * cores, cores));
    }
  }
}

TEST(BalanceRule, AloneThereIsNobodyToHandTo) {
  BalanceRule rule;
  EXPECT_FALSE(rule.hands_over(10'000, 10'000, 1));
}

TEST(BalanceRule, BelowTheLeastNothingBegins) {
  BalanceRule rule;
  EXPECT_FALSE(rule.hands_over(31, 31, 2));
  EXPECT_TRUE(rule.hands_over(32, 32, 2));
  EXPECT_FALSE(rule.hands_over(31, 40, 2)) << "and what has begun ends";
}

TEST(BalanceRule, BeginsAtAQuarterAboveTheMeanAndEndsAtIt) {
  BalanceRule rule;
  EXPECT_FALSE(rule.hands_over(124, 200, 2));
  EXPECT_TRUE(rule.hands_over(125, 200, 2));
  EXPECT_TRUE(rule.hands_over(110, 200, 2)) << "once begun it goes on";
  EXPECT_TRUE(rule.hands_over(101, 200, 2));
  EXPECT_FALSE(rule.hands_over(100, 200, 2));
  EXPECT_FALSE(rule.hands_over(110, 200, 2)) << "once ended it does not";
}

/// How many of the clients that the kernel spreads at random over `cores` are handed over.
std::size_t moved_of(std::size_t clients, std::size_t cores, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<BalanceRule> rules(cores);
  std::vector<std::size_t> loads(cores, 0);
  std::size_t moved = 0;
  for (std::size_t all = 0; all < clients; ++all) {
    const std::size_t core = random() % cores;
    const bool hands_over = rules[core].hands_over(loads[core], all, cores);
    const auto lightest = std::ranges::min_element(loads);
    if (hands_over && *lightest < loads[core]) {
      ++*lightest;
      ++moved;
    } else {
      ++loads[core];
    }
  }
  return moved;
}

TEST(BalanceRule, RandomlySpreadClientsAreHardlyEverMoved) {
  constexpr std::size_t clients = 4000;
  constexpr std::size_t runs = 100;
  for (const std::size_t cores : {2U, 4U, 16U}) {
    std::size_t moved = 0;
    for (std::uint64_t seed = 1; seed <= runs; ++seed) moved += moved_of(clients, cores, seed);
    EXPECT_LT(moved * 100, clients * runs) << cores << " cores";
    EXPECT_GT(moved, 0U) << "by chance some core has a quarter too many";
  }
}

/// Loops of one group, turned by the test.
class BalanceTest : public ::testing::Test {
 protected:
  struct Receiver final : Intake::Receiver {
    void connections_came() override { ++told; }
    int told = 0;
  };

  BalanceTest() {
    for (unsigned core = 0; core < 3; ++core) {
      loops_.push_back(Loop::make(host_, {.core = core, .group = &group_}).value());
      pointers_.push_back(loops_.back().get());
    }
    balance_ = std::make_unique<Balance>(pointers_);
  }

  /// Something that can be given, and whose closing can be seen.
  Descriptor connection() { return host_.open_stream(os::Address::loopback(1)).value(); }
  void have(unsigned core, int connections) {
    for (int i = 0; i < connections; ++i) loops_[core]->count_connection_opened();
  }
  Intake& intake(unsigned core) { return balance_->intake(core); }
  void turn(unsigned core) { loops_[core]->turn(host_.now()); }

  MemoryHost host_;
  LoopGroup group_;
  std::unique_ptr<Balance> balance_;  // outlives the loops
  std::vector<std::unique_ptr<Loop>> loops_;
  std::vector<Loop*> pointers_;
};

TEST_F(BalanceTest, TheOneWithTheFewestGetsIt) {
  std::array<Receiver, 3> receivers;
  for (unsigned core = 0; core < 3; ++core) ASSERT_TRUE(intake(core).open(receivers[core]));
  have(0, 60);
  have(1, 20);
  have(2, 21);
  // What is on its way counts: 20 + 2 and 21 + 1 in the end.
  for (int i = 0; i < 3; ++i) {
    Descriptor each = connection();
    EXPECT_TRUE(balance_->hand_over(0, each));
    EXPECT_FALSE(each);
  }
  EXPECT_EQ(intake(1).load(), 22u);
  EXPECT_EQ(intake(2).load(), 22u);
  turn(1);
  EXPECT_EQ(receivers[1].told, 1) << "once for both";
  EXPECT_TRUE(intake(1).take());
  EXPECT_TRUE(intake(1).take());
  EXPECT_FALSE(intake(1).take());
  EXPECT_EQ(intake(1).load(), 20u);
  Descriptor light = connection();
  EXPECT_FALSE(balance_->hand_over(1, light));
  EXPECT_TRUE(light) << "it is still the caller's";
  for (unsigned core = 0; core < 3; ++core) intake(core).close();
  EXPECT_EQ(host_.open_descriptors(), 1u);
}

TEST_F(BalanceTest, WhoDoesNotListenGetsNothingAndDoesNotCount) {
  Receiver receiver;
  ASSERT_TRUE(intake(0).open(receiver));
  have(0, 100);
  Descriptor each = connection();
  EXPECT_FALSE(balance_->hand_over(0, each)) << "it is alone";
  Receiver other;
  ASSERT_TRUE(intake(2).open(other));
  EXPECT_FALSE(intake(2).open(receiver)) << "there is one already";
  EXPECT_TRUE(balance_->hand_over(0, each));
  EXPECT_EQ(intake(1).load(), 0u);
  EXPECT_EQ(intake(2).load(), 1u);
  intake(0).close();
  intake(2).close();
}

TEST_F(BalanceTest, WhoIsShutStillHandsOutWhatHeHas) {
  Receiver receiver;
  Receiver other;
  ASSERT_TRUE(intake(0).open(receiver));
  ASSERT_TRUE(intake(1).open(other));
  have(0, 100);
  Descriptor first = connection();
  ASSERT_TRUE(balance_->hand_over(0, first));
  intake(1).shut();
  Descriptor second = connection();
  EXPECT_FALSE(balance_->hand_over(0, second));
  EXPECT_TRUE(second);
  turn(1);
  EXPECT_EQ(other.told, 1);
  EXPECT_TRUE(intake(1).take());
  intake(0).close();
  intake(1).close();
}

// Whoever accepts may look before he is told; the word of it is still on its way then.
TEST_F(BalanceTest, WhatIsTakenBeforeTheWordOfItDoesNotDisturbTheNext) {
  Receiver receiver;
  Receiver other;
  ASSERT_TRUE(intake(0).open(receiver));
  ASSERT_TRUE(intake(1).open(other));
  have(0, 100);
  for (int i = 0; i < 3; ++i) {
    Descriptor each = connection();
    ASSERT_TRUE(balance_->hand_over(0, each));
    if (i < 2) {
      EXPECT_TRUE(intake(1).take());
    }
  }
  turn(1);
  EXPECT_EQ(other.told, 1);
  EXPECT_TRUE(intake(1).take());
  Descriptor later = connection();
  ASSERT_TRUE(balance_->hand_over(0, later));
  turn(1);
  EXPECT_EQ(other.told, 2) << "and the next time he is told again";
  intake(0).close();
  intake(1).close();
}

TEST_F(BalanceTest, WhatNobodyTookIsClosed) {
  Receiver receiver;
  Receiver other;
  ASSERT_TRUE(intake(0).open(receiver));
  ASSERT_TRUE(intake(1).open(other));
  have(0, 100);
  Descriptor each = connection();
  ASSERT_TRUE(balance_->hand_over(0, each));
  EXPECT_EQ(host_.open_descriptors(), 1u);
  intake(1).close();
  EXPECT_EQ(host_.open_descriptors(), 0u);
  turn(1);
  EXPECT_EQ(other.told, 0) << "it may be gone";
  ASSERT_TRUE(intake(1).open(other)) << "who comes back begins anew";
  EXPECT_TRUE(intake(1).empty());
  intake(0).close();
  intake(1).close();
}

}  // namespace
}  // namespace weir
