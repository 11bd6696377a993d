#include "weir/loop/detail/cross_core_queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "weir/loop/os/os_platform.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::loop::cross_core_queue_test {
namespace {

struct Item {
  int number = 0;
  Item* next = nullptr;
};
using Queue = CrossCoreQueue<Item, &Item::next>;

class CrossCoreQueueTest : public LoopTest {
 protected:
  void push(Item& item) { EXPECT_TRUE(queue_.push(item, *loop_)); }
  void turn() { loop_->turn(platform_.now()); }
  /// Removes at most `items_max` items on each call of receive().
  void receive(Loop& loop) {
    ++calls_;
    EXPECT_EQ(&loop, loop_.get());
    for (unsigned left = items_max_; left != 0 && queue_.front() != nullptr; --left) {
      Item* const front = queue_.front();
      EXPECT_EQ(queue_.pop(), front);
      numbers_.push_back(front->number);
    }
    if (queue_.front() != nullptr) queue_.receive_again(loop);
  }

  std::array<Item, 4> items_{Item{1}, Item{2}, Item{3}, Item{4}};
  unsigned items_max_ = 100;
  int calls_ = 0;
  std::vector<int> numbers_;
  Queue queue_{
      [](void* self, Loop& loop) { static_cast<CrossCoreQueueTest*>(self)->receive(loop); }, this};
};

TEST_F(CrossCoreQueueTest, ReceivesAllThatArrivedInOneCall) {
  EXPECT_TRUE(queue_.idle());
  for (std::size_t i = 0; i < 3; ++i) push(items_[i]);
  EXPECT_FALSE(queue_.empty());
  EXPECT_FALSE(queue_.idle());
  EXPECT_EQ(queue_.front(), nullptr) << "nothing is received before the loop runs";
  EXPECT_EQ(loop_->inbox_depth(), 1U);
  turn();
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(numbers_, (std::vector<int>{1, 2, 3}));
  EXPECT_TRUE(queue_.empty());
  EXPECT_TRUE(queue_.idle());
  push(items_[3]);
  turn();
  EXPECT_EQ(calls_, 2);
  EXPECT_EQ(numbers_, (std::vector<int>{1, 2, 3, 4}));
}

TEST_F(CrossCoreQueueTest, KeepsTheOrderOfItemsThatTheReceiverLeaves) {
  items_max_ = 1;
  for (std::size_t i = 0; i < 3; ++i) push(items_[i]);
  turn();
  EXPECT_EQ(numbers_, (std::vector<int>{1})) << "the rest waits for the next turn";
  push(items_[3]);
  turn();
  EXPECT_EQ(numbers_, (std::vector<int>{1, 2})) << "an arrival does not raise the limit of a turn";
  for (int i = 0; i < 2; ++i) turn();
  EXPECT_EQ(numbers_, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_TRUE(queue_.idle());
}

TEST_F(CrossCoreQueueTest, IsNotIdleWhileItWillReceiveAgain) {
  queue_.receive_again(*loop_);
  queue_.receive_again(*loop_);
  EXPECT_TRUE(queue_.empty());
  EXPECT_FALSE(queue_.idle());
  turn();
  EXPECT_FALSE(queue_.idle());
  turn();
  EXPECT_EQ(calls_, 1);
  EXPECT_TRUE(queue_.idle());
}

TEST_F(CrossCoreQueueTest, DoesNotReceiveAgainAfterItIsClosed) {
  queue_.receive_again(*loop_);
  queue_.close();
  EXPECT_TRUE(queue_.idle());
  for (int i = 0; i < 2; ++i) turn();
  EXPECT_EQ(calls_, 0);
}

TEST_F(CrossCoreQueueTest, CollectsBeforeTheLoopIsWoken) {
  queue_.collect();
  push(items_[0]);
  queue_.collect();
  EXPECT_EQ(queue_.pop(), items_.data());
  EXPECT_EQ(queue_.pop(), nullptr);
  EXPECT_TRUE(queue_.empty());
  EXPECT_FALSE(queue_.idle()) << "the wake-up is under way";
  push(items_[1]);
  EXPECT_EQ(loop_->inbox_depth(), 1U) << "one wake-up serves both";
  turn();
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(numbers_, (std::vector<int>{2}));
  EXPECT_TRUE(queue_.idle());
}

TEST_F(CrossCoreQueueTest, RefusesItemsWhileItIsClosed) {
  queue_.close();
  EXPECT_FALSE(queue_.push(items_[0], *loop_));
  EXPECT_TRUE(queue_.empty());
  EXPECT_TRUE(queue_.idle());
  EXPECT_EQ(loop_->inbox_depth(), 0U);
  queue_.close();
  queue_.reopen();
  push(items_[0]);
  turn();
  EXPECT_EQ(numbers_, (std::vector<int>{1}));
}

TEST_F(CrossCoreQueueTest, ReturnsWhatArrivedBeforeTheClose) {
  push(items_[0]);
  push(items_[1]);
  queue_.close();
  EXPECT_FALSE(queue_.push(items_[2], *loop_));
  EXPECT_EQ(queue_.pop(), &items_[0]);
  EXPECT_EQ(queue_.pop(), &items_[1]);
  EXPECT_TRUE(queue_.empty());
  EXPECT_FALSE(queue_.idle());
  queue_.close();
  turn();
  EXPECT_EQ(calls_, 1);
  EXPECT_TRUE(queue_.idle());
}

TEST_F(CrossCoreQueueTest, PostsOneWakeUpAcrossACloseAndAReopen) {
  push(items_[0]);
  queue_.close();
  queue_.reopen();
  push(items_[1]);
  EXPECT_EQ(loop_->inbox_depth(), 1U) << "the first wake-up is still under way";
  turn();
  EXPECT_EQ(numbers_, (std::vector<int>{1, 2}));
  push(items_[2]);
  EXPECT_EQ(loop_->inbox_depth(), 1U);
  turn();
  EXPECT_EQ(numbers_, (std::vector<int>{1, 2, 3}));
}

TEST(CrossCoreQueueOfThreads, EachItemArrivesOnceAndInTheOrderOfItsThread) {
  constexpr int items_per_thread = 2000;
  OsPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  std::array<std::vector<Item>, 2> items;
  struct Receiver {
    Queue queue{[](void* self, Loop&) { static_cast<Receiver*>(self)->receive(); }, this};
    std::array<int, 2> last{-1, -1};
    int received = 0;
    void receive() {
      while (const Item* const item = queue.pop()) {
        const int thread = item->number % 2;
        EXPECT_EQ(item->number / 2, ++last[static_cast<std::size_t>(thread)]);
        ++received;
      }
    }
  } receiver;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    auto& mine = items[static_cast<std::size_t>(thread)];
    mine.resize(items_per_thread);
    for (int i = 0; i < items_per_thread; ++i)
      mine[static_cast<std::size_t>(i)].number = 2 * i + thread;
    threads.emplace_back([&] {
      for (Item& each : mine) EXPECT_TRUE(receiver.queue.push(each, *loop));
    });
  }
  while (receiver.received != 2 * items_per_thread) loop->turn(platform.now());
  threads.clear();
  EXPECT_TRUE(receiver.queue.empty());
}

/// The producer of an item that is not the first uses nothing of the queue after the push.
TEST(CrossCoreQueueOfThreads, EndsAfterItsLastItem) {
  OsPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  for (int round = 0; round < 200; ++round) {
    struct Receiver {
      Queue queue{[](void* self, Loop&) { static_cast<Receiver*>(self)->receive(); }, this};
      int received = 0;
      void receive() {
        while (queue.pop() != nullptr) ++received;
      }
    };
    auto receiver = std::make_unique<Receiver>();
    std::array<Item, 2> items;
    std::vector<std::jthread> threads;
    for (Item& each : items) {
      threads.emplace_back(
          [&each, &loop, queue = &receiver->queue] { EXPECT_TRUE(queue->push(each, *loop)); });
    }
    while (receiver->received != 2) loop->turn(platform.now());
    receiver.reset();
    threads.clear();
  }
}

}  // namespace
}  // namespace weir::loop::cross_core_queue_test
