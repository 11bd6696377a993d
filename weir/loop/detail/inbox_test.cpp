#include "weir/loop/detail/inbox.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "weir/loop/contract/detail/runnable.hpp"

namespace weir::loop::inbox_test {
namespace {

struct Numbered : Runnable {
  explicit Numbered(int is = 0)
      : Runnable([](Runnable& self) { ++static_cast<Numbered&>(self).ran; }), number(is) {}
  int number;
  int producer = 0;
  int ran = 0;
};

std::vector<int> numbers(RunQueue queue) {
  std::vector<int> all;
  while (Runnable* runnable = queue.pop()) all.push_back(static_cast<Numbered*>(runnable)->number);
  return all;
}

TEST(RunQueue, ReturnsRunnablesInOrder) {
  RunQueue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.pop(), nullptr);
  Numbered one(1), two(2), three(3);
  queue.push(one);
  queue.push(two);
  EXPECT_EQ(queue.pop(), &one);
  queue.push(three);
  queue.push(one);
  EXPECT_EQ(numbers(queue.take()), (std::vector<int>{2, 3, 1}));
  EXPECT_TRUE(queue.empty());
}

TEST(RunQueue, ARunningRunnableMayBeQueuedAgain) {
  RunQueue queue;
  Numbered one(1);
  for (int i = 0; i < 3; ++i) {
    queue.push(one);
    queue.pop()->run();
  }
  EXPECT_EQ(one.ran, 3);
}

TEST(Inbox, TakesTheOldestFirst) {
  Inbox inbox;
  EXPECT_TRUE(inbox.empty());
  EXPECT_TRUE(inbox.take().empty());
  Numbered one(1), two(2), three(3);
  EXPECT_FALSE(inbox.push(one)) << "the consumer does not sleep";
  EXPECT_FALSE(inbox.push(two));
  EXPECT_FALSE(inbox.push(three));
  EXPECT_FALSE(inbox.empty());
  EXPECT_EQ(numbers(inbox.take()), (std::vector<int>{1, 2, 3}));
  EXPECT_TRUE(inbox.empty());
}

TEST(Inbox, OnePushPerSleepReturnsTrue) {
  Inbox inbox;
  Numbered one(1), two(2), three(3);
  EXPECT_TRUE(inbox.prepare_to_sleep());
  EXPECT_TRUE(inbox.push(one));
  EXPECT_FALSE(inbox.push(two));
  inbox.woke();
  EXPECT_FALSE(inbox.prepare_to_sleep()) << "a runnable has arrived";
  EXPECT_FALSE(inbox.push(three)) << "it did not go to sleep";
  EXPECT_EQ(numbers(inbox.take()), (std::vector<int>{1, 2, 3}));
  EXPECT_TRUE(inbox.prepare_to_sleep());
  inbox.woke();
  EXPECT_FALSE(inbox.push(one)) << "it is awake already";
  static_cast<void>(inbox.take());
}

TEST(Inbox, CountsPushesAndKnowsIfTheConsumerSleeps) {
  Inbox inbox;
  Numbered one(1), two(2);
  EXPECT_EQ(inbox.pushed(), 0U);
  EXPECT_FALSE(inbox.sleeping());
  EXPECT_TRUE(inbox.prepare_to_sleep());
  EXPECT_TRUE(inbox.sleeping());
  EXPECT_TRUE(inbox.push(one));
  EXPECT_FALSE(inbox.sleeping()) << "a producer wakes it";
  EXPECT_EQ(inbox.pushed(), 1U);
  EXPECT_FALSE(inbox.prepare_to_sleep());
  EXPECT_FALSE(inbox.sleeping());
  EXPECT_EQ(numbers(inbox.take()), std::vector<int>{1});
  EXPECT_FALSE(inbox.push(two));
  EXPECT_EQ(inbox.pushed(), 2U);
  EXPECT_EQ(numbers(inbox.take()), std::vector<int>{2});
  EXPECT_EQ(inbox.pushed(), 2U) << "a total";
  EXPECT_TRUE(inbox.prepare_to_sleep());
  inbox.woke();
  EXPECT_FALSE(inbox.sleeping());
}

// A lost wake-up would leave the consumer asleep for good.
TEST(Inbox, EverythingArrivesInOrderAndNoWakeUpIsLost) {
  constexpr int producers = 3;
  constexpr int each = 20'000;
  Inbox inbox;
  std::counting_semaphore<> wakes(0);
  std::vector<std::vector<Numbered>> sent(producers);
  std::vector<std::thread> threads;
  for (int p = 0; p < producers; ++p) {
    auto& own = sent[static_cast<std::size_t>(p)] = std::vector<Numbered>(each);
    threads.emplace_back([&own, &inbox, &wakes, p] {
      for (int i = 0; i < each; ++i) {
        Numbered& message = own[static_cast<std::size_t>(i)];
        message.number = i;
        message.producer = p;
        if (inbox.push(message)) wakes.release();
        if (i % 64 == 0) std::this_thread::yield();
      }
    });
  }
  std::vector<int> expected(producers, 0);
  int received = 0;
  while (received < producers * each) {
    RunQueue arrived = inbox.take();
    while (Runnable* runnable = arrived.pop()) {
      auto& message = static_cast<Numbered&>(*runnable);
      EXPECT_EQ(message.number, expected[static_cast<std::size_t>(message.producer)]++);
      runnable->run();
      ++received;
    }
    if (received == producers * each) break;
    if (inbox.prepare_to_sleep()) {
      wakes.acquire();
      inbox.woke();
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& own : sent) {
    for (const Numbered& message : own) EXPECT_EQ(message.ran, 1);
  }
}

}  // namespace
}  // namespace weir::loop::inbox_test
