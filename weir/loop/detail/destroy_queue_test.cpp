// Tests of the destruction of objects that other threads have released.
#include "weir/loop/detail/destroy_queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "weir/base/detail/block_pool.hpp"
#include "weir/loop/loop.hpp"
#include "weir/testing/memory/memory_platform.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir::loop::destroy_queue_test {
namespace {

/// An object of a loop that calls a function when it is destroyed.
class Item final : public DestroyQueue::Destroyable {
 public:
  Item(const Loop& loop, std::function<void()> on_destroy)
      : Destroyable(loop.destroy_queue(),
                    [](Destroyable& self) noexcept { delete static_cast<Item*>(&self); }),
        on_destroy_(std::move(on_destroy)) {}
  ~Item() { on_destroy_(); }

 private:
  std::function<void()> on_destroy_;
};

/// Calls a function on another thread, which is not a loop.
void on_another_thread(const std::function<void()>& call) {
  std::thread(call).join();
}

class DestroyQueueTest : public testing::Test {
 protected:
  Item& make(int number) {
    return *new Item(*loop_, [this, number] { destroyed_.push_back(number); });
  }
  /// Releases the objects from `first` to `last`, in this order.
  void release(int first, int last) {
    for (int number = first; number <= last; ++number) make(number).destroy_on_owner();
  }
  /// Returns the numbers from 1 to `last`.
  static std::vector<int> up_to(int last) {
    std::vector<int> numbers(static_cast<std::size_t>(last));
    std::iota(numbers.begin(), numbers.end(), 1);
    return numbers;
  }
  void turn() { loop_->turn(platform_.now()); }

  MemoryPlatform platform_;
  std::vector<int> destroyed_;
  std::unique_ptr<Loop> loop_ = Loop::make(platform_, {}).value();
};

TEST_F(DestroyQueueTest, TheOwnerDestroysObjectsInTheOrderOfTheirRelease) {
  release(1, 5);
  EXPECT_TRUE(destroyed_.empty());
  turn();
  EXPECT_EQ(destroyed_, up_to(5));
  release(6, 7);
  turn();
  EXPECT_EQ(destroyed_, up_to(7));
}

TEST_F(DestroyQueueTest, OneWakeUpServesAllObjectsReleasedBeforeIt) {
  release(1, 10);
  EXPECT_EQ(loop_->inbox_depth(), 1U);
  turn();
  EXPECT_EQ(loop_->counters().ran.value(), 1U);
  release(11, 11);
  EXPECT_EQ(loop_->inbox_depth(), 1U) << "the next object wakes the loop again";
  turn();
  EXPECT_EQ(destroyed_, up_to(11));
}

TEST_F(DestroyQueueTest, DestroysImmediatelyInATurnOfTheOwner) {
  CallProbe call([&] {
    release(1, 1);
    EXPECT_EQ(destroyed_, up_to(1));
  });
  loop_->ready(call);
  turn();
  EXPECT_EQ(destroyed_, up_to(1));
  EXPECT_EQ(loop_->inbox_depth(), 0U);
}

TEST_F(DestroyQueueTest, ATurnOfAnotherLoopDestroysNothing) {
  const auto other = Loop::make(platform_, {}).value();
  CallProbe call([&] { release(1, 1); });
  other->ready(call);
  other->turn(platform_.now());
  EXPECT_TRUE(destroyed_.empty());
  turn();
  EXPECT_EQ(destroyed_, up_to(1));
}

TEST_F(DestroyQueueTest, AnObjectMayReleaseOthersWhenItIsDestroyed) {
  Item& inner = make(1);
  Item& outer = *new Item(*loop_, [&] {
    inner.destroy_on_owner();
    destroyed_.push_back(2);
  });
  outer.destroy_on_owner();
  turn();
  EXPECT_EQ(destroyed_, up_to(2));
}

TEST_F(DestroyQueueTest, DestroysAtMost1024ObjectsPerTurn) {
  release(1, 3000);
  turn();
  EXPECT_EQ(destroyed_, up_to(1024));
  turn();
  EXPECT_EQ(destroyed_, up_to(2048));
  release(3001, 3001);  // while older ones are left
  turn();
  EXPECT_EQ(destroyed_, up_to(3001));
  EXPECT_EQ(loop_->timers().armed(), 0U);
  turn();
  EXPECT_EQ(destroyed_, up_to(3001));
}

TEST_F(DestroyQueueTest, DestroysTheRestWithoutAFurtherRelease) {
  release(1, 1025);
  turn();
  EXPECT_TRUE(loop_->has_work());
  turn();
  EXPECT_EQ(destroyed_, up_to(1025));
  EXPECT_FALSE(loop_->has_work());
}

// The wake-up runs twice in the turn, because the loop looks into its inbox repeatedly.
TEST_F(DestroyQueueTest, TheLimitHoldsForAllWakeUpsOfATurn) {
  CallProbe second([&] { on_another_thread([&] { release(1001, 2000); }); });
  int runs = 0;
  std::optional<CallProbe> busy;
  busy.emplace([&] {
    ++runs;
    if (runs == 1) on_another_thread([&] { release(1, 1000); });
    if (runs == 40) {
      EXPECT_EQ(destroyed_, up_to(1000)) << "the first wake-up has run";
      loop_->ready(second);
    }
    if (runs < 100) loop_->ready(*busy);
  });
  loop_->ready(*busy);
  turn();
  EXPECT_EQ(destroyed_, up_to(1024));
  turn();
  EXPECT_EQ(destroyed_, up_to(2000));
}

TEST_F(DestroyQueueTest, TheEndOfTheLoopDestroysAllReleasedObjectsAsItsOwner) {
  release(1, 2000);
  turn();
  const Loop* current = nullptr;
  const BlockPool* pool = nullptr;
  const BlockPool* const expected = &loop_->blocks();
  const Loop* const owner = loop_.get();
  (new Item(*loop_, [&] {
    current = Loop::current();
    pool = BlockPool::current();
    destroyed_.push_back(2001);
  }))->destroy_on_owner();
  loop_.reset();
  EXPECT_EQ(destroyed_, up_to(2001));
  EXPECT_EQ(current, owner);
  EXPECT_EQ(pool, expected);
  EXPECT_EQ(Loop::current(), nullptr);
}

TEST_F(DestroyQueueTest, AnObjectMayOutliveItsLoop) {
  Item& first = make(1);
  Item& second = make(2);
  loop_.reset();
  EXPECT_TRUE(destroyed_.empty());
  first.destroy_on_owner();
  EXPECT_EQ(destroyed_, up_to(1)) << "the thread that releases it destroys it";
  on_another_thread([&] { second.destroy_on_owner(); });
  EXPECT_EQ(destroyed_, up_to(2));
}

TEST_F(DestroyQueueTest, EveryObjectIsDestroyedOnceWhileThreadsRelease) {
  constexpr int threads = 3;
  constexpr int each = 4000;
  std::atomic<int> destroyed{0};
  std::atomic<int> running{threads};
  std::vector<std::thread> producers;
  for (int i = 0; i < threads; ++i) {
    producers.emplace_back([&] {
      for (int count = 0; count < each; ++count) {
        (new Item(*loop_, [&] { destroyed.fetch_add(1); }))->destroy_on_owner();
      }
      running.fetch_sub(1);
    });
  }
  while (running.load() != 0) turn();
  for (std::thread& producer : producers) producer.join();
  while (loop_->has_work()) turn();
  EXPECT_EQ(destroyed.load(), threads * each);
}

TEST_F(DestroyQueueTest, TheLoopMayEndWhileThreadsRelease) {
  constexpr int each = 100;
  for (int round = 0; round < 50; ++round) {
    auto loop = Loop::make(platform_, {}).value();
    std::atomic<int> destroyed{0};
    std::array<std::vector<Item*>, 2> items;
    for (auto& own : items) {
      for (int i = 0; i < each; ++i) {
        own.push_back(new Item(*loop, [&] { destroyed.fetch_add(1); }));
      }
    }
    std::vector<std::thread> producers;
    std::atomic<bool> begun{false};
    for (auto& own : items) {
      producers.emplace_back([&] {
        for (Item* item : own) {
          item->destroy_on_owner();
          begun = true;
        }
      });
    }
    while (!begun) std::this_thread::yield();
    loop.reset();
    for (std::thread& producer : producers) producer.join();
    EXPECT_EQ(destroyed.load(), 2 * each);
  }
}

}  // namespace
}  // namespace weir::loop::destroy_queue_test
