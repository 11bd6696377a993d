#include "weir/loop/loop.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "weir/loop/os/os_platform.hpp"
#include "weir/testing/memory/memory_platform.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir {
namespace {

class LoopOfMemory : public testing::Test {
 protected:
  MemoryHost host_;
  std::unique_ptr<Loop> loop_ = Loop::make(host_, {}).value();
};

class Watcher : public DrainWatcher {
 public:
  explicit Watcher(std::function<void()> call = {})
      : DrainWatcher([](DrainWatcher& self) { static_cast<Watcher&>(self).told(); }),
        call_(std::move(call)) {}
  int calls = 0;

 private:
  void told() {
    ++calls;
    if (call_) call_();
  }
  std::function<void()> call_;
};

TEST_F(LoopOfMemory, RunsWhatIsReadyThenTheInboxThenTimers) {
  std::vector<int> order;
  CallProbe ready([&] { order.push_back(1); });
  CallProbe again([&] { order.push_back(3); });
  CallProbe posted([&] {
    order.push_back(2);
    loop_->ready(again);
  });
  TimerProbe timer;
  timer.then = [&] { order.push_back(4); };
  loop_->timers().start(timer, host_.now());
  loop_->ready(ready);
  loop_->post(posted);
  EXPECT_TRUE(loop_->has_work());
  EXPECT_TRUE(loop_->turn());
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(loop_->counters().ran.value(), 3U);
  EXPECT_EQ(loop_->counters().received.value(), 1U);
  EXPECT_EQ(loop_->counters().turns.value(), 1U);
  EXPECT_FALSE(loop_->has_work());
}

TEST_F(LoopOfMemory, IsCurrentInItsTurnsOnlyAndLendsItsMemory) {
  Loop* inside = nullptr;
  BlockPool* pool = nullptr;
  CallProbe call([&] {
    inside = Loop::current();
    pool = BlockPool::current();
  });
  loop_->ready(call);
  loop_->turn();
  EXPECT_EQ(inside, loop_.get());
  EXPECT_EQ(pool, &loop_->blocks());
  EXPECT_EQ(Loop::current(), nullptr);
  EXPECT_EQ(BlockPool::current(), nullptr);
}

TEST_F(LoopOfMemory, TurnsNestAcrossLoops) {
  const auto other = Loop::make(host_, {}).value();
  Loop *within = nullptr, *behind = nullptr;
  CallProbe inner([&] { within = Loop::current(); });
  CallProbe outer([&] {
    other->ready(inner);
    other->turn();
    behind = Loop::current();
  });
  loop_->ready(outer);
  loop_->turn();
  EXPECT_EQ(within, other.get());
  EXPECT_EQ(behind, loop_.get());
}

TEST_F(LoopOfMemory, WhatReadiesItselfForEverDoesNotKeepTimersOut) {
  int runs = 0;
  std::optional<CallProbe> spinning;
  spinning.emplace([&] {
    ++runs;
    loop_->ready(*spinning);
  });
  TimerProbe timer;
  loop_->timers().start(timer, host_.now());
  loop_->ready(*spinning);
  loop_->turn();
  EXPECT_EQ(timer.fired, 1);
  EXPECT_GT(runs, 100) << "nor does each cost a turn";
  const int before = runs;
  const Instant now = host_.now();
  EXPECT_TRUE(loop_->turn());
  EXPECT_GT(runs, before);
  EXPECT_EQ(host_.now(), now) << "it does not wait while something is ready";
}

TEST_F(LoopOfMemory, WaitsUntilTheNextTimerOrTheGivenMoment) {
  const Instant start = host_.now();
  TimerProbe timer;
  loop_->timers().start(timer, start + 2ms);
  loop_->turn(start + 1ms);
  EXPECT_EQ(host_.now(), start + 1ms);
  EXPECT_EQ(loop_->now(), start + 1ms);
  while (timer.fired == 0) loop_->turn();
  EXPECT_EQ(host_.now(), start + 2ms);
}

TEST_F(LoopOfMemory, CountsSlowTurns) {
  CallProbe slow([&] { host_.clock().move_to(host_.now() + Loop::slow_turn + 1ms); });
  CallProbe quick([&] { host_.clock().move_to(host_.now() + Loop::slow_turn); });
  loop_->ready(quick);
  loop_->turn();
  EXPECT_EQ(loop_->counters().slow_turns.value(), 0U);
  loop_->ready(slow);
  loop_->turn();
  EXPECT_EQ(loop_->counters().slow_turns.value(), 1U);
}

TEST_F(LoopOfMemory, TellsOfASlowPlaceOnceAndCountsItsTurns) {
  CallProbe slow([&] { host_.clock().move_to(host_.now() + 73ms); });
  CallProbe quick([&] { host_.clock().move_to(host_.now() + 1ms); });
  for (int i = 0; i < 10; ++i) {
    loop_->ready(quick);
    loop_->ready(slow);
    loop_->turn(host_.now());
  }
  ASSERT_EQ(host_.logged().size(), 1U);
  const std::string& line = host_.logged().front();
  EXPECT_TRUE(line.starts_with("weir: core 0: a turn took 74 ms: ")) << line;
  EXPECT_NE(line.find("CallProbe"), line.npos) << line;
  EXPECT_EQ(loop_->counters().slow_turns.value(), 10U);
  const auto places = loop_->group().slow_turns().places();
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places.front().turns, 10U);
  EXPECT_EQ(places.front().longest, 74ms);
}

TEST_F(LoopOfMemory, CountsForHowLongItRunsAndWaits) {
  CallProbe call([&] { host_.clock().move_to(host_.now() + 3ms); });
  loop_->ready(call);
  loop_->turn(host_.now());
  loop_->turn(host_.now() + 40ms);
  EXPECT_EQ(loop_->counters().run_time.value(), 3'000'000U);
  EXPECT_EQ(loop_->counters().wait_time.value(), 40'000'000U);
}

TEST_F(LoopOfMemory, CountsWhatComesThroughTheInbox) {
  CallProbe one([] {});
  CallProbe two([] {});
  CallProbe three([] {});
  EXPECT_EQ(loop_->inbox_depth(), 0U);
  loop_->post(one);
  loop_->post(two);
  EXPECT_EQ(loop_->inbox_depth(), 2U);
  loop_->turn(host_.now());
  EXPECT_EQ(loop_->inbox_depth(), 0U);
  loop_->post(three);
  EXPECT_EQ(loop_->inbox_depth(), 1U);
  loop_->turn(host_.now());
  EXPECT_EQ(loop_->inbox_depth(), 0U);
  EXPECT_EQ(loop_->counters().received.value(), 3U);
  EXPECT_EQ(loop_->counters().inbox_most.value(), 2U);
}

TEST_F(LoopOfMemory, RunEndsAfterTheTurnThatStopsIt) {
  int after_stop = 0;
  CallProbe stop([&] { loop_->stop(); });
  CallProbe same_turn([&] { ++after_stop; });
  loop_->ready(stop);
  loop_->ready(same_turn);
  loop_->run();
  EXPECT_TRUE(loop_->stopping());
  EXPECT_EQ(after_stop, 1);
}

TEST_F(LoopOfMemory, DrainTellsEachWatcherOnceInOrder) {
  std::vector<int> order;
  Watcher first([&] { order.push_back(1); });
  auto gone = std::make_unique<Watcher>();
  auto dropped = std::make_unique<Watcher>();
  Watcher second([&] {
    order.push_back(2);
    dropped.reset();
  });
  loop_->watch_drain(first);
  loop_->watch_drain(*gone);
  loop_->watch_drain(second);
  loop_->watch_drain(*dropped);
  gone.reset();
  EXPECT_FALSE(loop_->draining());
  loop_->drain();
  loop_->drain();
  EXPECT_TRUE(loop_->draining());
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_EQ(first.calls + second.calls, 2);
}

TEST_F(LoopOfMemory, AloneInItsGroup) {
  ASSERT_EQ(loop_->group().loops().size(), 1U);
  EXPECT_EQ(loop_->group().loops()[0], loop_.get());
}

TEST_F(LoopOfMemory, ABackendThatCannotBeHad) {
  const auto made = Loop::make(host_, {.backend = BackendChoice::uring});
  EXPECT_EQ(made.error(), Errc::unsupported);
}

// Posts from threads to a loop that sleeps in the kernel: none is lost, each producer's in order.
TEST(LoopOfThreads, TakesPostsFromManyThreads) {
  OsHost host;
  for (const BackendChoice choice : {BackendChoice::epoll, BackendChoice::poll}) {
    const auto loop = Loop::make(host, {.backend = choice}).value();
    constexpr int threads = 3;
    constexpr int each = 5'000;
    std::vector<int> seen(threads, 0);
    int received = 0;
    struct Message : Runnable {
      Message() : Runnable([](Runnable& self) { static_cast<Message&>(self).arrived(); }) {}
      void arrived() {
        EXPECT_EQ(number, *last);
        ++*last;
        if (++*received == threads * each) loop->stop();
      }
      int number = 0;
      int* last = nullptr;
      int* received = nullptr;
      Loop* loop = nullptr;
    };
    std::vector<std::vector<Message>> messages(threads);
    std::vector<std::thread> producers;
    for (std::size_t t = 0; t < threads; ++t) {
      messages[t] = std::vector<Message>(each);
      for (int i = 0; i < each; ++i) {
        Message& message = messages[t][static_cast<std::size_t>(i)];
        message.number = i;
        message.last = &seen[t];
        message.received = &received;
        message.loop = loop.get();
      }
    }
    for (auto& own : messages) {
      producers.emplace_back([&own, &loop] {
        for (Message& message : own) {
          loop->post(message);
          if (message.number % 16 == 0) std::this_thread::yield();
        }
      });
    }
    loop->run();
    for (std::thread& producer : producers) producer.join();
    EXPECT_EQ(received, threads * each);
  }
}

TEST(LoopOfThreads, StopsFromAnotherThreadWhileItSleeps) {
  OsHost host;
  for (int i = 0; i < 50; ++i) {
    const auto loop = Loop::make(host, {.backend = BackendChoice::epoll}).value();
    std::thread stopper([&] { loop->stop(); });
    loop->run();
    stopper.join();
    EXPECT_TRUE(loop->stopping());
  }
}

}  // namespace
}  // namespace weir
