#include "weir/net/listen/detail/connection_balancer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "weir/loop/detail/loop_group.hpp"
#include "weir/loop/loop.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::connection_balancer_test {
namespace {

TEST(BalancePolicy, EvenTrafficStartsNoHandover) {
  for (std::size_t cores = 1; cores <= 64; ++cores) {
    BalancePolicy rule;
    for (std::size_t each = 0; each < 2000; ++each) {
      // One core is a connection ahead of all others, or level with them.
      EXPECT_FALSE(rule.should_hand_over(each + 1, each * cores + 1, cores));
      EXPECT_FALSE(rule.should_hand_over(each, each * cores, cores));
    }
  }
}

TEST(BalancePolicy, OneCoreHandsNothingOver) {
  BalancePolicy rule;
  EXPECT_FALSE(rule.should_hand_over(10'000, 10'000, 1));
}

TEST(BalancePolicy, NeedsTheMinimumOfConnections) {
  BalancePolicy rule;
  EXPECT_FALSE(rule.should_hand_over(31, 31, 2));
  EXPECT_TRUE(rule.should_hand_over(32, 32, 2));
  EXPECT_FALSE(rule.should_hand_over(31, 40, 2)) << "a handover that has begun ends";
}

TEST(BalancePolicy, BeginsAtAQuarterAboveTheMeanAndEndsAtTheMean) {
  BalancePolicy rule;
  EXPECT_FALSE(rule.should_hand_over(124, 200, 2));
  EXPECT_TRUE(rule.should_hand_over(125, 200, 2));
  EXPECT_TRUE(rule.should_hand_over(110, 200, 2)) << "it continues after it has begun";
  EXPECT_TRUE(rule.should_hand_over(101, 200, 2));
  EXPECT_FALSE(rule.should_hand_over(100, 200, 2));
  EXPECT_FALSE(rule.should_hand_over(110, 200, 2)) << "it does not continue after it has ended";
}

/// Returns the number of clients handed over, of those that the kernel spreads at random over
/// `cores`.
std::size_t moved_of(std::size_t clients, std::size_t cores, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<BalancePolicy> rules(cores);
  std::vector<std::size_t> loads(cores, 0);
  std::size_t moved = 0;
  for (std::size_t all = 0; all < clients; ++all) {
    const std::size_t core = random() % cores;
    const bool hands_over = rules[core].should_hand_over(loads[core], all, cores);
    const auto least_loaded = std::ranges::min_element(loads);
    if (hands_over && *least_loaded < loads[core]) {
      ++*least_loaded;
      ++moved;
    } else {
      ++loads[core];
    }
  }
  return moved;
}

TEST(BalancePolicy, FewRandomlySpreadClientsAreMoved) {
  constexpr std::size_t clients = 4000;
  constexpr std::size_t runs = 100;
  for (const std::size_t cores : {2U, 4U, 16U}) {
    std::size_t moved = 0;
    for (std::uint64_t seed = 1; seed <= runs; ++seed) moved += moved_of(clients, cores, seed);
    EXPECT_LT(moved * 100, clients * runs) << cores << " cores";
    EXPECT_GT(moved, 0U) << "by chance some core has a quarter too many";
  }
}

/// Loops of one group; the test runs their turns.
class ConnectionBalancerTest : public ::testing::Test {
 protected:
  struct Receiver final : HandoffQueue::Receiver {
    void on_connections() override { ++notifications; }
    int notifications = 0;
  };

  ConnectionBalancerTest() {
    for (unsigned core = 0; core < 3; ++core) {
      loops_.push_back(Loop::make(platform_, {.core = core, .group = &group_}).value());
      pointers_.push_back(loops_.back().get());
    }
    balancer_ = std::make_unique<ConnectionBalancer>(pointers_);
  }

  /// Returns a descriptor that the test can hand over. open_descriptors() shows when it is closed.
  loop::Descriptor connection() { return platform_.open_stream(os::Address::loopback(1)).value(); }
  void have(unsigned core, int connections) {
    for (int i = 0; i < connections; ++i) ConnectionCounters::of(*loops_[core]).open.add();
  }
  HandoffQueue& handoff_queue(unsigned core) { return balancer_->handoff_queue(core); }
  void turn(unsigned core) { loops_[core]->turn(platform_.now()); }

  MemoryPlatform platform_;
  loop::LoopGroup group_;
  std::unique_ptr<ConnectionBalancer> balancer_;  // outlives the loops
  std::vector<std::unique_ptr<Loop>> loops_;
  std::vector<Loop*> pointers_;
};

TEST_F(ConnectionBalancerTest, TheCoreWithTheFewestConnectionsGetsTheNext) {
  std::array<Receiver, 3> receivers;
  for (unsigned core = 0; core < 3; ++core) ASSERT_TRUE(handoff_queue(core).open(receivers[core]));
  have(0, 60);
  have(1, 20);
  have(2, 21);
  // Queued connections count: 20 + 2 and 21 + 1 in the end.
  for (int i = 0; i < 3; ++i) {
    loop::Descriptor each = connection();
    EXPECT_TRUE(balancer_->hand_over(0, each));
    EXPECT_FALSE(each);
  }
  EXPECT_EQ(handoff_queue(1).load(), 22u);
  EXPECT_EQ(handoff_queue(2).load(), 22u);
  turn(1);
  EXPECT_EQ(receivers[1].notifications, 1) << "once for both";
  EXPECT_TRUE(handoff_queue(1).take());
  EXPECT_TRUE(handoff_queue(1).take());
  EXPECT_FALSE(handoff_queue(1).take());
  EXPECT_EQ(handoff_queue(1).load(), 20u);
  loop::Descriptor light = connection();
  EXPECT_FALSE(balancer_->hand_over(1, light));
  EXPECT_TRUE(light) << "the caller keeps it";
  for (unsigned core = 0; core < 3; ++core) handoff_queue(core).close();
  EXPECT_EQ(platform_.open_descriptors(), 1u);
}

TEST_F(ConnectionBalancerTest, BeginsWithTheMinimumOfConnections) {
  std::array<Receiver, 2> receivers;
  for (unsigned core = 0; core < 2; ++core) ASSERT_TRUE(handoff_queue(core).open(receivers[core]));
  have(0, 31);
  loop::Descriptor each = connection();
  EXPECT_FALSE(balancer_->hand_over(0, each));
  have(0, 1);
  EXPECT_TRUE(balancer_->hand_over(0, each));
  EXPECT_EQ(handoff_queue(1).load(), 1u);
  for (unsigned core = 0; core < 2; ++core) handoff_queue(core).close();
}

TEST_F(ConnectionBalancerTest, AHandoverThatEndedAtTheMinimumBeginsAtAQuarterAboveTheMeanAgain) {
  std::array<Receiver, 2> receivers;
  for (unsigned core = 0; core < 2; ++core) ASSERT_TRUE(handoff_queue(core).open(receivers[core]));
  have(0, 100);
  loop::Descriptor each = connection();
  ASSERT_TRUE(balancer_->hand_over(0, each));
  for (int i = 0; i < 70; ++i) ConnectionCounters::of(*loops_[0]).open.subtract();
  loop::Descriptor next = connection();
  EXPECT_FALSE(balancer_->hand_over(0, next)) << "30 connections are too few";
  have(0, 4);
  have(1, 25);
  EXPECT_FALSE(balancer_->hand_over(0, next)) << "34 and 26: less than a quarter above the mean";
  have(0, 11);
  EXPECT_TRUE(balancer_->hand_over(0, next)) << "45 and 26";
  for (unsigned core = 0; core < 2; ++core) handoff_queue(core).close();
}

TEST_F(ConnectionBalancerTest, ClosedCoresDoNotCountInTheMean) {
  std::array<Receiver, 2> receivers;
  for (unsigned core = 0; core < 2; ++core) ASSERT_TRUE(handoff_queue(core).open(receivers[core]));
  have(0, 60);
  have(1, 50);
  have(2, 1);  // without a listener
  loop::Descriptor each = connection();
  EXPECT_FALSE(balancer_->hand_over(0, each)) << "60 and 50: less than a quarter above the mean";
  for (unsigned core = 0; core < 2; ++core) handoff_queue(core).close();
}

TEST_F(ConnectionBalancerTest, ACoreWithoutAListenerGetsNothingAndDoesNotCount) {
  Receiver receiver;
  ASSERT_TRUE(handoff_queue(0).open(receiver));
  have(0, 100);
  loop::Descriptor each = connection();
  EXPECT_FALSE(balancer_->hand_over(0, each)) << "no other core listens";
  Receiver other;
  ASSERT_TRUE(handoff_queue(2).open(other));
  EXPECT_FALSE(handoff_queue(2).open(receiver)) << "it has a receiver already";
  EXPECT_TRUE(balancer_->hand_over(0, each));
  EXPECT_EQ(handoff_queue(1).load(), 0u);
  EXPECT_EQ(handoff_queue(2).load(), 1u);
  handoff_queue(0).close();
  handoff_queue(2).close();
}

TEST_F(ConnectionBalancerTest, AStoppedQueueStillReturnsItsConnections) {
  Receiver receiver;
  Receiver other;
  ASSERT_TRUE(handoff_queue(0).open(receiver));
  ASSERT_TRUE(handoff_queue(1).open(other));
  have(0, 100);
  loop::Descriptor first = connection();
  ASSERT_TRUE(balancer_->hand_over(0, first));
  handoff_queue(1).stop_receiving();
  loop::Descriptor second = connection();
  EXPECT_FALSE(balancer_->hand_over(0, second));
  EXPECT_TRUE(second);
  turn(1);
  EXPECT_EQ(other.notifications, 1);
  EXPECT_TRUE(handoff_queue(1).take());
  handoff_queue(0).close();
  handoff_queue(1).close();
}

// A receiver may take connections before its notification, which is then still in the inbox.
TEST_F(ConnectionBalancerTest, TakingBeforeTheNotificationDoesNotSuppressTheNextOne) {
  Receiver receiver;
  Receiver other;
  ASSERT_TRUE(handoff_queue(0).open(receiver));
  ASSERT_TRUE(handoff_queue(1).open(other));
  have(0, 100);
  for (int i = 0; i < 3; ++i) {
    loop::Descriptor each = connection();
    ASSERT_TRUE(balancer_->hand_over(0, each));
    if (i < 2) {
      EXPECT_TRUE(handoff_queue(1).take());
    }
  }
  turn(1);
  EXPECT_EQ(other.notifications, 1);
  EXPECT_TRUE(handoff_queue(1).take());
  loop::Descriptor later = connection();
  ASSERT_TRUE(balancer_->hand_over(0, later));
  turn(1);
  EXPECT_EQ(other.notifications, 2) << "the next connection notifies again";
  handoff_queue(0).close();
  handoff_queue(1).close();
}

TEST_F(ConnectionBalancerTest, ClosingTheQueueClosesItsConnections) {
  Receiver receiver;
  Receiver other;
  ASSERT_TRUE(handoff_queue(0).open(receiver));
  ASSERT_TRUE(handoff_queue(1).open(other));
  have(0, 100);
  loop::Descriptor each = connection();
  ASSERT_TRUE(balancer_->hand_over(0, each));
  EXPECT_EQ(platform_.open_descriptors(), 1u);
  handoff_queue(1).close();
  EXPECT_EQ(platform_.open_descriptors(), 0u);
  turn(1);
  EXPECT_EQ(other.notifications, 0) << "the receiver may be destroyed";
  ASSERT_TRUE(handoff_queue(1).open(other)) << "a new receiver may open the queue";
  EXPECT_TRUE(handoff_queue(1).empty());
  handoff_queue(0).close();
  handoff_queue(1).close();
}

TEST_F(ConnectionBalancerTest, TheOldestConnectionLeavesTheQueueFirst) {
  Receiver receiver;
  HandoffQueue& queue = handoff_queue(1);
  ASSERT_TRUE(queue.open(receiver));
  std::vector<int> pushed;
  std::vector<int> taken;
  std::vector<loop::Descriptor> kept;
  const auto take = [&] {
    kept.push_back(queue.take());
    taken.push_back(kept.back().value());
  };
  for (int i = 0; i < 5; ++i) {
    loop::Descriptor each = connection();
    pushed.push_back(each.value());
    EXPECT_TRUE(queue.try_push(each));
    if (i == 2) take();
  }
  while (!queue.empty()) take();
  EXPECT_EQ(taken, pushed);
  EXPECT_FALSE(queue.take());
  queue.close();
}

// The notification of the first receiver is still in the inbox.
TEST_F(ConnectionBalancerTest, AQueueThatOpensAgainNotifiesItsNewReceiver) {
  Receiver former;
  Receiver receiver;
  HandoffQueue& queue = handoff_queue(1);
  ASSERT_TRUE(queue.open(former));
  loop::Descriptor lost = connection();
  EXPECT_TRUE(queue.try_push(lost));
  queue.close();
  loop::Descriptor refused = connection();
  EXPECT_FALSE(queue.try_push(refused));
  EXPECT_TRUE(refused) << "the caller keeps it";
  EXPECT_FALSE(queue.is_open());
  ASSERT_TRUE(queue.open(receiver));
  EXPECT_TRUE(queue.is_open());
  EXPECT_TRUE(queue.try_push(refused));
  turn(1);
  EXPECT_EQ(former.notifications, 0);
  EXPECT_EQ(receiver.notifications, 1);
  EXPECT_TRUE(queue.take());
  loop::Descriptor next = connection();
  EXPECT_TRUE(queue.try_push(next));
  turn(1);
  EXPECT_EQ(receiver.notifications, 2);
  queue.close();
}

/// Counts the descriptors that it closes, on any thread.
class CountingPlatform final : public MemoryPlatform {
 public:
  void close(int) noexcept override { ++closed; }
  std::atomic<int> closed{0};
};

TEST(HandoffQueueOfThreads, EachConnectionArrivesOnce) {
  constexpr int each = 5000;
  struct Collector final : HandoffQueue::Receiver {
    void on_connections() override {
      while (loop::Descriptor next = queue->take()) {
        EXPECT_EQ(next.release(), 7);
        ++taken;
      }
    }
    HandoffQueue* queue = nullptr;
    int taken = 0;
  };
  CountingPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  HandoffQueue queue(*loop);
  Collector collector;
  collector.queue = &queue;
  ASSERT_TRUE(queue.open(collector));
  std::vector<std::thread> producers;
  for (int thread = 0; thread < 2; ++thread) {
    producers.emplace_back([&] {
      for (int i = 0; i < each; ++i) {
        loop::Descriptor connection(platform, 7);
        EXPECT_TRUE(queue.try_push(connection));
      }
    });
  }
  while (collector.taken < 2 * each) loop->turn(platform.now());
  for (std::thread& producer : producers) producer.join();
  EXPECT_EQ(collector.taken, 2 * each);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(platform.closed.load(), 0);
  queue.close();
}

// A connection that is pushed while the queue closes is either refused or closed.
TEST(HandoffQueueOfThreads, NoConnectionIsLostWhenTheQueueCloses) {
  struct Ignoring final : HandoffQueue::Receiver {
    void on_connections() override {}
  };
  CountingPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  int refused = 0;
  constexpr int rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    HandoffQueue queue(*loop);
    Ignoring receiver;
    ASSERT_TRUE(queue.open(receiver));
    std::atomic<bool> begun{false};
    std::thread producer([&] {
      begun = true;
      loop::Descriptor connection(platform, 7);
      if (!queue.try_push(connection)) {
        EXPECT_TRUE(connection);
        connection.release();
        ++refused;
      }
    });
    while (!begun) std::this_thread::yield();
    queue.close();
    producer.join();
    EXPECT_TRUE(queue.empty());
    loop->turn(platform.now());
  }
  EXPECT_EQ(platform.closed.load() + refused, rounds);
}

TEST(ConnectionBalancer, TheLoopsOfAGroupShareOneForEachAddress) {
  MemoryPlatform platform({.cores = 2});
  const auto alone = Loop::make(platform, {}).value();
  EXPECT_EQ(ConnectionBalancer::of(*alone, os::Address::loopback(80)), nullptr);
  loop::LoopGroup group;
  const auto first = Loop::make(platform, {.core = 0, .group = &group}).value();
  const auto second = Loop::make(platform, {.core = 1, .group = &group}).value();
  group.set_loops({first.get(), second.get()});
  ConnectionBalancer* const of_80 = ConnectionBalancer::of(*first, os::Address::loopback(80));
  ASSERT_NE(of_80, nullptr);
  ConnectionBalancer* const of_81 = ConnectionBalancer::of(*second, os::Address::loopback(81));
  EXPECT_NE(of_81, nullptr);
  EXPECT_NE(of_81, of_80);
  const os::Address name = os::Address::local("name").value();
  ConnectionBalancer* const of_name = ConnectionBalancer::of(*first, name);
  EXPECT_NE(of_name, nullptr);
  EXPECT_NE(of_name, of_80);
  EXPECT_EQ(ConnectionBalancer::of(*second, os::Address::loopback(80)), of_80);
  EXPECT_EQ(ConnectionBalancer::of(*first, os::Address::loopback(81)), of_81);
  EXPECT_EQ(ConnectionBalancer::of(*second, name), of_name);
}

}  // namespace
}  // namespace weir::connection_balancer_test
