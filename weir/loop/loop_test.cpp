#include "weir/loop/loop.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weir/loop/contract/detail/trace_context.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/testing/memory/memory_platform.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir::loop_test {
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

TEST_F(LoopOfMemory, ARunnableOfTheNextTurnRunsOnceInEachTurn) {
  int runs = 0;
  std::optional<CallProbe> working;
  working.emplace([&] {
    ++runs;
    loop_->ready_next_turn(*working);
  });
  loop_->ready_next_turn(*working);
  EXPECT_TRUE(loop_->has_work());
  EXPECT_TRUE(loop_->turn());
  const Instant now = platform_.now();
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(runs, turn);
    EXPECT_TRUE(loop_->turn());
  }
  EXPECT_EQ(platform_.now(), now) << "the loop does not wait";
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
  EXPECT_TRUE(line.ends_with(" (logged once; see Runtime::report())")) << line;
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

TEST_F(LoopOfMemory, TimersAreNeitherRunTimeNorWaitTime) {
  TimerProbe timer;
  timer.then = [&] { platform_.clock().move_to(platform_.now() + 5ms); };
  loop_->timers().start(timer, platform_.now() + 1ms);
  while (timer.fired == 0) loop_->turn();
  CallProbe call([] {});
  loop_->ready(call);
  loop_->turn(platform_.now());
  EXPECT_EQ(loop_->counters().run_time.value(), 0U);
  EXPECT_EQ(loop_->counters().wait_time.value(), 1'000'000U);
  EXPECT_EQ(loop_->counters().ran.value(), 1U) << "a timer is no runnable";
}

TEST_F(LoopOfMemory, ASlowTurnIsLoggedWithItsCore) {
  loop::LoopGroup group;
  const auto third = Loop::make(platform_, {.core = 2, .group = &group}).value();
  CallProbe slow([&] { platform_.clock().move_to(platform_.now() + 60ms); });
  third->ready(slow);
  third->turn(platform_.now());
  ASSERT_EQ(platform_.logged().size(), 1U);
  const std::string& line = platform_.logged().front();
  EXPECT_TRUE(line.starts_with("weir: core 2: slow loop turn: 60 ms: ")) << line;
  EXPECT_EQ(group.stall_log().summaries().size(), 1U) << "the log of its group";
  EXPECT_TRUE(loop_->group().stall_log().summaries().empty());
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

TEST_F(LoopOfMemory, RunMakesNoTurnAfterAStop) {
  int runs = 0;
  CallProbe call([&] { ++runs; });
  loop_->ready(call);
  loop_->stop();
  loop_->run();
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(loop_->counters().turns.value(), 0U);
  loop_->turn();
  EXPECT_EQ(runs, 1) << "a stopping loop can still be turned";
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

/// Counts its calls, and adds itself again while `again` is positive.
struct TurnCounter : TurnObserver {
  explicit TurnCounter(Loop& of)
      : TurnObserver([](TurnObserver& self) {
          auto& counter = static_cast<TurnCounter&>(self);
          ++counter.calls;
          counter.called_at = counter.loop.now();
          if (counter.again-- > 0) counter.loop.observe_turn_end(counter);
        }),
        loop(of) {}
  Loop& loop;
  int calls = 0;
  int again = 0;
  Instant called_at{};
};

TEST_F(LoopOfMemory, CallsTurnObserversOnceAfterTheRunnables) {
  TurnCounter counter(*loop_);
  TurnCounter gone(*loop_);
  Instant ran{};
  CallProbe call([&] {
    EXPECT_EQ(counter.calls, 0);
    platform_.clock().move_to(platform_.now() + 5ms);
    ran = platform_.now();
  });
  loop_->observe_turn_end(counter);
  loop_->observe_turn_end(gone);
  gone.unlink();
  loop_->ready(call);
  loop_->turn(loop_->now());
  EXPECT_EQ(counter.calls, 1);
  EXPECT_EQ(counter.called_at, ran);
  loop_->turn(loop_->now());
  EXPECT_EQ(counter.calls, 1);
  EXPECT_EQ(gone.calls, 0);
}

TEST_F(LoopOfMemory, CountsTheTimeOfTurnObserversAsRunTime) {
  struct SlowObserver : TurnObserver {
    explicit SlowObserver(MemoryPlatform& of)
        : TurnObserver([](TurnObserver& self) {
            auto& platform = static_cast<SlowObserver&>(self).platform;
            platform.clock().move_to(platform.now() + 70ms);
          }),
          platform(of) {}
    MemoryPlatform& platform;
  } slow(platform_);
  loop_->observe_turn_end(slow);
  loop_->turn(loop_->now());
  EXPECT_EQ(Duration(loop_->counters().run_time.value()), 70ms);
  EXPECT_EQ(loop_->counters().wait_time.value(), 0U);
  EXPECT_EQ(loop_->counters().slow_turns.value(), 1U);
}

TEST_F(LoopOfMemory, RunsNoFunctionBetweenTurns) {
  loop::CurrentActivity::end();  // of tests before
  const void* running = nullptr;
  CallProbe call([&] { running = loop_->stall_detector().activity(); });
  loop_->ready(call);
  loop_->turn(loop_->now());
  EXPECT_EQ(running, static_cast<loop::Runnable&>(call).function());
  EXPECT_EQ(loop_->stall_detector().activity(), nullptr);
}

TEST_F(LoopOfMemory, CallsATurnObserverThatAddsItselfInTheNextTurn) {
  TurnCounter counter(*loop_);
  counter.again = 1;
  loop_->observe_turn_end(counter);
  loop_->turn(loop_->now());
  EXPECT_EQ(counter.calls, 1);
  loop_->turn(loop_->now());
  loop_->turn(loop_->now());
  EXPECT_EQ(counter.calls, 2);
}

TEST_F(LoopOfMemory, ADrainingLoopCallsNoFurtherObserver) {
  loop_->drain();
  Observer late;
  loop_->observe_drain(late);
  loop_->drain();
  EXPECT_EQ(late.calls, 0);
}

TEST_F(LoopOfMemory, ADrainHasBegunWhenItCallsItsObservers) {
  Observer late;
  Observer second;
  Observer first([&] {
    EXPECT_TRUE(loop_->draining());
    loop_->observe_drain(late);
    loop_->drain();
    EXPECT_EQ(second.calls, 0) << "each is called once, by the first call";
  });
  loop_->observe_drain(first);
  loop_->observe_drain(second);
  loop_->drain();
  EXPECT_EQ(first.calls, 1);
  EXPECT_EQ(second.calls, 1);
  EXPECT_EQ(late.calls, 0) << "the loop drains already";
}

class AcceptCall : public AcceptObserver {
 public:
  explicit AcceptCall(std::function<void()> call)
      : AcceptObserver([](AcceptObserver& self) { static_cast<AcceptCall&>(self).call_(); }),
        call_(std::move(call)) {}

 private:
  std::function<void()> call_;
};

TEST_F(LoopOfMemory, ResumeAcceptingCallsEachObserverOnceInOrder) {
  std::vector<int> order;
  EXPECT_FALSE(loop_->accepting_paused());
  loop_->resume_accepting();  // does nothing
  loop_->pause_accepting();
  EXPECT_TRUE(loop_->accepting_paused());
  AcceptCall first([&] {
    EXPECT_FALSE(loop_->accepting_paused()) << "the observer may accept";
    order.push_back(1);
  });
  auto gone = std::make_unique<AcceptCall>([&] { order.push_back(-1); });
  auto dropped = std::make_unique<AcceptCall>([&] { order.push_back(-2); });
  AcceptCall second([&] {
    order.push_back(2);
    dropped.reset();
  });
  loop_->observe_resume_accepting(first);
  loop_->observe_resume_accepting(*gone);
  loop_->observe_resume_accepting(second);
  loop_->observe_resume_accepting(*dropped);
  gone.reset();
  EXPECT_TRUE(order.empty());
  loop_->resume_accepting();
  EXPECT_FALSE(loop_->accepting_paused());
  loop_->resume_accepting();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(LoopOfMemory, KeepsAnObjectOfAHigherFloor) {
  struct Counted {
    detail::Counter events;
  };
  EXPECT_EQ(loop_->slots().find<Counted>(), nullptr);
  loop_->slots().get<Counted>().events.add();
  EXPECT_EQ(loop_->slots().get<Counted>().events.value(), 1U);
}

TEST_F(LoopOfMemory, HasWorkForEachReasonOfATurn) {
  EXPECT_FALSE(loop_->has_work());
  CallProbe call([] {});
  loop_->ready(call);
  EXPECT_TRUE(loop_->has_work());
  loop_->turn(platform_.now());
  EXPECT_FALSE(loop_->has_work());
  loop_->post(call);
  EXPECT_TRUE(loop_->has_work());
  loop_->turn(platform_.now());
  TimerProbe timer;
  loop_->timers().start(timer, platform_.now() + 1us);
  EXPECT_FALSE(loop_->has_work()) << "the timer is not due yet";
  platform_.clock().move_to(platform_.now() + 1us);
  EXPECT_TRUE(loop_->has_work());
  loop_->turn(platform_.now());
  EXPECT_FALSE(loop_->has_work());
  loop_->stop();
  EXPECT_TRUE(loop_->has_work());
}

TEST_F(LoopOfMemory, ATurnReportsIfItDidAnything) {
  EXPECT_FALSE(loop_->turn(platform_.now()));
  EXPECT_FALSE(loop_->turn(platform_.now() + 1ms)) << "waiting is no work";
  CallProbe call([] {});
  loop_->ready(call);
  EXPECT_TRUE(loop_->turn(platform_.now())) << "a runnable ran";
  EXPECT_FALSE(loop_->turn(platform_.now()));
  TimerProbe timer;
  loop_->timers().start(timer, platform_.now());
  EXPECT_TRUE(loop_->turn(platform_.now())) << "a timer fired";
  EXPECT_EQ(loop_->counters().ran.value(), 1U);
  platform_.at(platform_.now() + 1ms, [&] { loop_->ready(call); });
  EXPECT_TRUE(loop_->turn(platform_.now() + 1h)) << "a runnable is ready";
  EXPECT_EQ(loop_->counters().ran.value(), 1U) << "it has not run yet";
  EXPECT_EQ(loop_->counters().turns.value(), 6U);
}

TEST_F(LoopOfMemory, APostWakesASleepingLoop) {
  const Instant start = platform_.now();
  int runs = 0;
  bool slept = false;
  CallProbe call([&] {
    ++runs;
    EXPECT_FALSE(loop_->is_sleeping()) << "it runs";
  });
  platform_.at(start + 1ms, [&] {
    slept = loop_->is_sleeping();
    loop_->post(call);
  });
  EXPECT_FALSE(loop_->is_sleeping());
  loop_->turn(start + 1h);
  EXPECT_TRUE(slept);
  EXPECT_FALSE(loop_->is_sleeping());
  EXPECT_EQ(platform_.now(), start + 1ms);
  loop_->turn(platform_.now());
  EXPECT_EQ(runs, 1);
}

TEST_F(LoopOfMemory, StopWakesASleepingLoop) {
  const Instant start = platform_.now();
  platform_.at(start + 1ms, [&] { loop_->stop(); });
  EXPECT_FALSE(loop_->stopping());
  loop_->turn(start + 1h);
  EXPECT_TRUE(loop_->stopping());
  EXPECT_EQ(platform_.now(), start + 1ms);
  loop_->turn(start + 1h);
  EXPECT_EQ(platform_.now(), start + 1ms) << "a stopping loop does not wait";
}

TEST_F(LoopOfMemory, ATurnRunsAtMost4096Runnables) {
  int runs = 0;
  std::optional<CallProbe> spinning;
  spinning.emplace([&] {
    ++runs;
    if (runs < 10'000) loop_->ready(*spinning);
  });
  loop_->ready(*spinning);
  EXPECT_TRUE(loop_->turn());
  EXPECT_EQ(runs, 4096);
  EXPECT_EQ(loop_->counters().ran.value(), 4096U);
  loop_->turn();
  EXPECT_EQ(runs, 8192);
}

TEST_F(LoopOfMemory, ABusyLoopLooksIntoItsInboxBeforeEvery16thRunnable) {
  int runs = 0;
  int runs_before_message = 0;
  CallProbe message([&] { runs_before_message = runs; });
  std::optional<CallProbe> spinning;
  spinning.emplace([&] {
    if (++runs == 1) loop_->post(message);
    loop_->ready(*spinning);
  });
  loop_->ready(*spinning);
  loop_->turn();
  EXPECT_EQ(runs_before_message, 17) << "one is ready when the loop looks before the 17th";
}

TEST_F(LoopOfMemory, RunnablesSeeTheTimeOfTheTurnAndTimersTheTimeOfTheWait) {
  const Instant start = platform_.now();
  Instant in_runnable{};
  Instant in_timer{};
  CallProbe call([&] {
    platform_.clock().move_to(start + 1ms);
    in_runnable = loop_->now();
  });
  TimerProbe timer;
  timer.then = [&] { in_timer = loop_->now(); };
  loop_->timers().start(timer, start + 5ms);
  loop_->ready(call);
  while (timer.fired == 0) loop_->turn();
  EXPECT_EQ(in_runnable, start);
  EXPECT_EQ(in_timer, start + 5ms);
}

TEST_F(LoopOfMemory, TraceContextsEndWithTheirRunnable) {
  struct Trace final : TraceContext {
    std::string_view kind() const noexcept override { return "test"; }
    std::string_view id(IdBuffer) const noexcept override { return "1"; }
  } trace;
  EXPECT_EQ(trace.origin(), nullptr);
  const TraceContext* in_next = &trace;
  CallProbe traced([&] { loop::CurrentActivity::set_trace(&trace); });
  CallProbe next([&] {
    in_next = loop::CurrentActivity::trace();
    loop::CurrentActivity::set_trace(&trace);
  });
  loop_->ready(traced);
  loop_->ready(next);
  loop_->turn(platform_.now());
  EXPECT_EQ(in_next, nullptr);
  EXPECT_EQ(loop::CurrentActivity::trace(), nullptr) << "nothing runs any more";
}

TEST_F(LoopOfMemory, KnowsItsCoreAndTheReasonOfItsBackend) {
  loop::LoopGroup group;
  const auto third = Loop::make(platform_, {.core = 2, .group = &group}).value();
  EXPECT_EQ(loop_->core(), 0U);
  EXPECT_EQ(third->core(), 2U);
  EXPECT_EQ(&third->group(), &group);
  EXPECT_TRUE(group.loops().empty()) << "the owner of the group sets them";
  loop::RunQueue ready;
  EXPECT_EQ(loop_->backend_reason(),
            platform_.make_backend(BackendChoice::automatic, ready)->reason);
  EXPECT_EQ(&loop_->platform(), &platform_);
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
    struct Message : loop::Runnable {
      Message()
          : loop::Runnable([](loop::Runnable& self) { static_cast<Message&>(self).arrived(); }) {}
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

// The destructor of the loop waits until the thread has left post_from_foreign_thread().
TEST(LoopOfThreads, MayEndWhileAForeignThreadStillPosts) {
  OsPlatform platform;
  for (int i = 0; i < 200; ++i) {
    auto loop = Loop::make(platform, {.backend = BackendChoice::epoll}).value();
    int runs = 0;
    CallProbe last([&] {
      ++runs;
      loop->stop();
    });
    std::thread foreign([&, &own = *loop] { own.post_from_foreign_thread(last); });
    loop->run();
    loop.reset();
    foreign.join();
    EXPECT_EQ(runs, 1);
  }
}

/// Uses `blocks` blocks of this size from the wait of a turn to its work, `uses` times, 10 ms
/// apart. Returns the bytes of free blocks after 800 ms.
std::size_t cached_after(int uses, std::size_t blocks = 256, std::size_t bytes = 16 * 1024) {
  OsPlatform platform;
  const auto loop = Loop::make(platform, {.backend = BackendChoice::epoll}).value();
  loop->blocks().set_cache_limit(BlockPool::cached_bytes_max);
  std::vector<void*> held;
  CallProbe release([&] {
    for (void* block : held) BlockPool::release(block);
    held.clear();
  });
  TimerProbe use;
  use.then = [&] {
    for (std::size_t i = 0; i < blocks; ++i) held.push_back(BlockPool::allocate(bytes));
    loop->ready(release);
    if (use.fired < uses) loop->timers().start(use, after(platform.now(), 10ms));
  };
  TimerProbe end;
  end.then = [&] { loop->stop(); };
  loop->timers().start(use, platform.now());
  loop->timers().start(end, after(platform.now(), 800ms));
  loop->run();
  use.cancel();
  while (!held.empty()) loop->turn(platform.now());
  return loop->blocks().cached_bytes();
}

TEST(LoopOfThreads, FreesTheBlocksThatNoTurnNeedsAnyMore) {
  EXPECT_LT(cached_after(3), BlockPool::idle_bytes + BlockPool::block_max);
}

TEST(LoopOfThreads, FreesManyBlocksInTurnsThatFollow) {
  EXPECT_LT(cached_after(3, 3 * BlockPool::trimmed_blocks_max, 1024),
            BlockPool::idle_bytes + BlockPool::block_max);
}

TEST(LoopOfThreads, KeepsTheBlocksThatItsTurnsNeed) {
  EXPECT_GE(cached_after(1000), std::size_t{4} << 20);
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
}  // namespace weir::loop_test
