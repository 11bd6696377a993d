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
  MemoryPlatform platform_;
  std::unique_ptr<Loop> loop_ = Loop::make(platform_, {}).value();
};

class Observer : public DrainObserver {
 public:
  explicit Observer(std::function<void()> call = {})
      : DrainObserver([](DrainObserver& self) { static_cast<Observer&>(self).on_drain(); }),
        call_(std::move(call)) {}
  int calls = 0;

 private:
  void on_drain() {
    ++calls;
    if (call_) call_();
  }
  std::function<void()> call_;
};

TEST_F(LoopOfMemory, RunsReadyRunnablesThenTheInboxThenTimers) {
  std::vector<int> order;
  CallProbe ready([&] { order.push_back(1); });
  CallProbe again([&] { order.push_back(3); });
  CallProbe posted([&] {
    order.push_back(2);
    loop_->ready(again);
  });
  TimerProbe timer;
  timer.then = [&] { order.push_back(4); };
  loop_->timers().start(timer, platform_.now());
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

TEST_F(LoopOfMemory, IsCurrentOnlyInItsTurnsAndProvidesItsBlockPool) {
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
  const auto other = Loop::make(platform_, {}).value();
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

TEST_F(LoopOfMemory, ARunnableThatRequeuesItselfDoesNotStarveTimers) {
  int runs = 0;
  std::optional<CallProbe> spinning;
  spinning.emplace([&] {
    ++runs;
    loop_->ready(*spinning);
  });
  TimerProbe timer;
  loop_->timers().start(timer, platform_.now());
  loop_->ready(*spinning);
  loop_->turn();
  EXPECT_EQ(timer.fired, 1);
  EXPECT_GT(runs, 100) << "one turn runs many";
  const int before = runs;
  const Instant now = platform_.now();
  EXPECT_TRUE(loop_->turn());
  EXPECT_GT(runs, before);
  EXPECT_EQ(platform_.now(), now) << "a loop with ready runnables does not wait";
}

TEST_F(LoopOfMemory, WaitsUntilTheNextTimerOrTheGivenMoment) {
  const Instant start = platform_.now();
  TimerProbe timer;
  loop_->timers().start(timer, start + 2ms);
  loop_->turn(start + 1ms);
  EXPECT_EQ(platform_.now(), start + 1ms);
  EXPECT_EQ(loop_->now(), start + 1ms);
  while (timer.fired == 0) loop_->turn();
  EXPECT_EQ(platform_.now(), start + 2ms);
}

TEST_F(LoopOfMemory, CountsSlowTurns) {
  CallProbe slow([&] { platform_.clock().move_to(platform_.now() + Loop::slow_turn + 1ms); });
  CallProbe quick([&] { platform_.clock().move_to(platform_.now() + Loop::slow_turn); });
  loop_->ready(quick);
  loop_->turn();
  EXPECT_EQ(loop_->counters().slow_turns.value(), 0U);
  loop_->ready(slow);
  loop_->turn();
  EXPECT_EQ(loop_->counters().slow_turns.value(), 1U);
}

TEST_F(LoopOfMemory, LogsASlowSiteOnceAndCountsItsTurns) {
  CallProbe slow([&] { platform_.clock().move_to(platform_.now() + 73ms); });
  CallProbe quick([&] { platform_.clock().move_to(platform_.now() + 1ms); });
  for (int i = 0; i < 10; ++i) {
    loop_->ready(quick);
    loop_->ready(slow);
    loop_->turn(platform_.now());
  }
  ASSERT_EQ(platform_.logged().size(), 1U);
  const std::string& line = platform_.logged().front();
  EXPECT_TRUE(line.starts_with("weir: core 0: slow loop turn: 74 ms: ")) << line;
  EXPECT_NE(line.find("CallProbe"), line.npos) << line;
  EXPECT_EQ(loop_->counters().slow_turns.value(), 10U);
  const auto summaries = loop_->group().stall_log().summaries();
  ASSERT_EQ(summaries.size(), 1U);
  EXPECT_EQ(summaries.front().turns, 10U);
  EXPECT_EQ(summaries.front().longest, 74ms);
}

TEST_F(LoopOfMemory, CountsRunTimeAndWaitTime) {
  CallProbe call([&] { platform_.clock().move_to(platform_.now() + 3ms); });
  loop_->ready(call);
  loop_->turn(platform_.now());
  loop_->turn(platform_.now() + 40ms);
  EXPECT_EQ(loop_->counters().run_time.value(), 3'000'000U);
  EXPECT_EQ(loop_->counters().wait_time.value(), 40'000'000U);
}

TEST_F(LoopOfMemory, CountsRunnablesOfTheInbox) {
  CallProbe one([] {});
  CallProbe two([] {});
  CallProbe three([] {});
  EXPECT_EQ(loop_->inbox_depth(), 0U);
  loop_->post(one);
  loop_->post(two);
  EXPECT_EQ(loop_->inbox_depth(), 2U);
  loop_->turn(platform_.now());
  EXPECT_EQ(loop_->inbox_depth(), 0U);
  loop_->post(three);
  EXPECT_EQ(loop_->inbox_depth(), 1U);
  loop_->turn(platform_.now());
  EXPECT_EQ(loop_->inbox_depth(), 0U);
  EXPECT_EQ(loop_->counters().received.value(), 3U);
  EXPECT_EQ(loop_->counters().inbox_depth_max.value(), 2U);
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

TEST_F(LoopOfMemory, DrainCallsEachObserverOnceInOrder) {
  std::vector<int> order;
  Observer first([&] { order.push_back(1); });
  auto gone = std::make_unique<Observer>();
  auto dropped = std::make_unique<Observer>();
  Observer second([&] {
    order.push_back(2);
    dropped.reset();
  });
  loop_->observe_drain(first);
  loop_->observe_drain(*gone);
  loop_->observe_drain(second);
  loop_->observe_drain(*dropped);
  gone.reset();
  EXPECT_FALSE(loop_->draining());
  loop_->drain();
  loop_->drain();
  EXPECT_TRUE(loop_->draining());
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_EQ(first.calls + second.calls, 2);
}

TEST_F(LoopOfMemory, IsAloneInItsGroup) {
  ASSERT_EQ(loop_->group().loops().size(), 1U);
  EXPECT_EQ(loop_->group().loops()[0], loop_.get());
}

TEST_F(LoopOfMemory, MakeFailsIfTheBackendIsUnavailable) {
  const auto made = Loop::make(platform_, {.backend = BackendChoice::uring});
  EXPECT_EQ(made.error(), Errc::unsupported);
}

// Threads post to a loop that sleeps in the kernel. No post is lost, and each producer's posts
// stay in order.
TEST(LoopOfThreads, TakesPostsFromManyThreads) {
  OsPlatform platform;
  for (const BackendChoice choice : {BackendChoice::epoll, BackendChoice::poll}) {
    const auto loop = Loop::make(platform, {.backend = choice}).value();
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
  OsPlatform platform;
  for (int i = 0; i < 50; ++i) {
    const auto loop = Loop::make(platform, {.backend = BackendChoice::epoll}).value();
    std::thread stopper([&] { loop->stop(); });
    loop->run();
    stopper.join();
    EXPECT_TRUE(loop->stopping());
  }
}

}  // namespace
}  // namespace weir
