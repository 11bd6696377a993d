// Tests of the cause that is named for a slow turn, by the ticks of a watchdog and in virtual
// time.
#include "weir/loop/detail/stall_detector.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <array>
#include <atomic>
#include <coroutine>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "weir/loop/contract/detail/trace_context.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/testing/memory/memory_platform.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir::loop {
namespace {

/// A platform with a costly clock, which a detector does not read after each function.
class TickedPlatform : public MemoryPlatform {
 public:
  bool clock_is_free() const noexcept override { return false; }
};

class StallDetectorOfTicks : public testing::Test {
 protected:
  void begin() { const StallDetector::Turn turn(watch_, platform_.now()); }
  void spend(unsigned ticks) {
    for (; ticks > 0; --ticks) watch_.tick();
  }
  /// Reports that `name` has run, during which the watchdog ticked `ticks` times.
  void run(const char* name, unsigned ticks) {
    spend(ticks);
    if (watch_.ticked()) watch_.check_as([name] { return std::string(name); });
  }
  const std::string& suspect() const { return watch_.suspect().name; }

  TickedPlatform platform_;
  StallDetector watch_{platform_};
};

TEST_F(StallDetectorOfTicks, HasNothingToCheckBeforeTheFirstTick) {
  EXPECT_FALSE(watch_.ticked());
  EXPECT_EQ(watch_.ticks(), 0U);
}

TEST_F(StallDetectorOfTicks, OneTickNamesNoFunction) {
  begin();
  for (int i = 0; i < 10; ++i) run("one", 1);
  EXPECT_EQ(suspect(), "") << "the tick may have begun in the function before";
}

TEST_F(StallDetectorOfTicks, TwoTicksAfterOneFunctionProveThatItTookLong) {
  begin();
  run("one", 1);
  run("other", 2);
  run("one", 1);
  EXPECT_EQ(suspect(), "other");
}

TEST_F(StallDetectorOfTicks, NamesTheLongestFunction) {
  begin();
  run("one", 2);
  run("other", 4);
  run("one", 3);
  EXPECT_EQ(suspect(), "other");
  begin();
  EXPECT_EQ(suspect(), "") << "a new turn";
  run("one", 2);
  EXPECT_EQ(suspect(), "one");
}

TEST_F(StallDetectorOfTicks, NamesTheWholeWorkInsteadOfItsPart) {
  begin();
  spend(3);
  watch_.check_part();
  watch_.check_part();
  EXPECT_EQ(suspect(), "");
  EXPECT_TRUE(watch_.ticked()) << "the whole work is checked, too";
  run("whole", 0);
  EXPECT_EQ(suspect(), "whole");
  EXPECT_FALSE(watch_.ticked());
  run("next", 0);
  EXPECT_EQ(suspect(), "whole");
}

TEST_F(StallDetectorOfTicks, APartOfUnnamedWorkKeepsItsName) {
  begin();
  spend(3);
  watch_.check_part();
  watch_.check_runnable();
  run("next", 1);
  EXPECT_EQ(suspect(), "");
}

TEST_F(StallDetectorOfTicks, TicksBetweenTurnsCountForNoTurn) {
  for (int i = 0; i < 5; ++i) watch_.tick();
  begin();
  EXPECT_FALSE(watch_.ticked());
  run("one", 1);
  EXPECT_EQ(suspect(), "");
}

TEST(StallDetectorOfAFreeClock, ReadsTheClockEachTime) {
  MemoryPlatform platform;
  StallDetector detector(platform);
  const StallDetector::Turn turn(detector, platform.now());
  const auto run = [&](const char* name, Duration length) {
    platform.clock().move_to(platform.now() + length);
    ASSERT_TRUE(detector.ticked()) << "the clock is read each time";
    detector.check_as([name] { return std::string(name); });
  };
  run("one", StallDetector::tick_length - 1ns);
  EXPECT_EQ(detector.suspect().name, "");
  run("other", StallDetector::tick_length);
  EXPECT_EQ(detector.suspect().name, "other");
  run("one", 200ms);
  EXPECT_EQ(detector.suspect().name, "one");
  run("other", 190ms);
  EXPECT_EQ(detector.suspect().name, "one");
}

TEST(StallDetectorOfAFreeClock, ANewTurnBeginsAtItsOwnTime) {
  MemoryPlatform platform;
  StallDetector detector(platform);
  {
    const StallDetector::Turn turn(detector, platform.now());
  }
  platform.clock().move_to(platform.now() + 1s);
  const StallDetector::Turn turn(detector, platform.now());
  detector.check_as([] { return std::string("quick"); });
  EXPECT_EQ(detector.suspect().name, "") << "the time between turns counts for none";
}

TEST_F(StallDetectorOfTicks, CountsTheTicksSinceTheLastCheck) {
  begin();
  EXPECT_EQ(watch_.ticks(), 0U);
  EXPECT_FALSE(watch_.ticked());
  spend(3);
  EXPECT_EQ(watch_.ticks(), 3U);
  watch_.check_part();
  EXPECT_EQ(watch_.ticks(), 0U) << "the mark of a stalled part is no tick";
  EXPECT_TRUE(watch_.ticked());
}

TEST_F(StallDetectorOfTicks, AQuickPartHidesNoStalledPart) {
  begin();
  spend(3);
  watch_.check_part();
  spend(1);
  watch_.check_part();
  EXPECT_TRUE(watch_.ticked()) << "the whole work is still to be checked";
  run("whole", 0);
  EXPECT_EQ(suspect(), "whole");
}

/// A coroutine that records the activity of its thread. It waits for its first resume().
struct RecordingCoroutine {
  struct promise_type {
    RecordingCoroutine get_return_object() {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::abort(); }
  };
  std::coroutine_handle<> handle;
  /// Returns the address of the function that resumes the coroutine.
  const void* function() const { return *static_cast<const void* const*>(handle.address()); }
};

RecordingCoroutine record_function(const void*& function) {
  const void* const seen = CurrentActivity::function();
  function = seen;
  co_return;
}

TEST(CurrentActivity, NamesTheCoroutineThatItResumes) {
  const void* seen = nullptr;
  const RecordingCoroutine coroutine = record_function(seen);
  const void* const function = coroutine.function();
  CurrentActivity::resume(coroutine.handle);
  EXPECT_EQ(seen, function);
  EXPECT_EQ(CurrentActivity::function(), function);
  coroutine.handle.destroy();
}

TEST(CurrentActivity, NamesTheCoroutineThatContinues) {
  const void* seen = nullptr;
  const RecordingCoroutine coroutine = record_function(seen);
  CallProbe before([] {});
  CurrentActivity::begin(before);
  EXPECT_EQ(CurrentActivity::function(), before.function());
  EXPECT_EQ(CurrentActivity::transfer_to(coroutine.handle), coroutine.handle);
  EXPECT_EQ(CurrentActivity::function(), coroutine.function());
  EXPECT_EQ(seen, nullptr) << "the caller resumes it";
  coroutine.handle.destroy();
}

struct NamedTrace final : TraceContext {
  std::string_view kind() const noexcept override { return "test"; }
  std::string_view id(IdBuffer) const noexcept override { return "1"; }
};

TEST(CurrentActivity, AGuardRestoresTheTraceBefore) {
  const NamedTrace outer;
  const NamedTrace inner;
  EXPECT_EQ(CurrentActivity::trace(), nullptr);
  {
    const CurrentActivity::TraceGuard guard(&outer);
    EXPECT_EQ(CurrentActivity::trace(), &outer);
    {
      const CurrentActivity::TraceGuard nested(&inner);
      EXPECT_EQ(CurrentActivity::trace(), &inner);
    }
    EXPECT_EQ(CurrentActivity::trace(), &outer);
    CurrentActivity::set_trace(&inner);
    EXPECT_EQ(CurrentActivity::trace(), &inner);
  }
  EXPECT_EQ(CurrentActivity::trace(), nullptr);
}

TEST(StallDetector, WakesASleepingWatchdogOnce) {
  MemoryPlatform platform;
  StallDetector detector(platform);
  int woken = 0;
  detector.wake_watchdog();
  detector.set_watchdog([](void* count) { ++*static_cast<int*>(count); }, &woken);
  detector.wake_watchdog();
  EXPECT_EQ(woken, 0) << "it does not sleep";
  detector.set_watchdog_sleeping(true);
  detector.wake_watchdog();
  detector.wake_watchdog();
  EXPECT_EQ(woken, 1);
}

class LoopWithTicks : public testing::Test {
 public:
  /// Acts as a function that runs for `ticks` ticks of the watchdog.
  void spend(unsigned ticks) {
    platform_.clock().move_to(platform_.now() + ticks * StallDetector::tick_length);
    for (; ticks > 0; --ticks) loop_->stall_detector().tick();
  }

 protected:
  /// Runs one turn of `runnables` that does not wait.
  void turn_of(std::initializer_list<Runnable*> runnables) {
    for (Runnable* const each : runnables) loop_->ready(*each);
    loop_->turn(platform_.now());
  }
  TickedPlatform platform_;
  std::unique_ptr<Loop> loop_ = Loop::make(platform_, {}).value();
};

struct Quick : Runnable {
  explicit Quick(LoopWithTicks& in) : Runnable(&quick), test(in) {}
  static void quick(Runnable& self) { static_cast<Quick&>(self).test.spend(1); }
  LoopWithTicks& test;
};
struct Slow : Runnable {
  explicit Slow(LoopWithTicks& in) : Runnable(&slow), test(in) {}
  static void slow(Runnable& self) { static_cast<Slow&>(self).test.spend(4); }
  LoopWithTicks& test;
};

TEST_F(LoopWithTicks, NamesTheSlowFunctionAndNotItsNeighbours) {
  Quick first(*this);
  Slow second(*this);
  Quick third(*this);
  turn_of({&first, &second, &third});
  ASSERT_EQ(platform_.logged().size(), 1U);
  const std::string& line = platform_.logged().front();
  EXPECT_TRUE(line.starts_with("weir: core 0: slow loop turn: 120 ms: ")) << line;
  EXPECT_NE(line.find("Slow::slow"), line.npos) << line;
  EXPECT_EQ(line.find("Quick"), line.npos) << line;
}

struct SlowBeforeTransfer : Runnable {
  SlowBeforeTransfer(LoopWithTicks& in, std::coroutine_handle<> to)
      : Runnable(&transfer), test(in), next(to) {}
  static void transfer(Runnable& self) {
    auto& own = static_cast<SlowBeforeTransfer&>(self);
    own.test.spend(4);
    CurrentActivity::transfer_to(own.next).resume();
  }
  LoopWithTicks& test;
  std::coroutine_handle<> next;
};

TEST_F(LoopWithTicks, NamesTheFunctionThatWasSlowBeforeACoroutineContinued) {
  const void* seen = nullptr;
  const RecordingCoroutine coroutine = record_function(seen);
  const void* const function = coroutine.function();
  SlowBeforeTransfer slow(*this, coroutine.handle);
  turn_of({&slow});
  coroutine.handle.destroy();
  EXPECT_EQ(seen, function);
  ASSERT_EQ(platform_.logged().size(), 1U);
  const std::string& line = platform_.logged().front();
  EXPECT_NE(line.find("SlowBeforeTransfer::transfer"), line.npos) << line;
}

TEST_F(LoopWithTicks, NestedTurnsHaveTheirOwnTicks) {
  const auto other = Loop::make(platform_, {}).value();
  CallProbe quick([] {});
  CallProbe outer([&] {
    spend(3);
    other->ready(quick);
    other->turn(platform_.now());
  });
  turn_of({&outer});
  EXPECT_EQ(loop_->counters().slow_turns.value(), 1U);
  EXPECT_EQ(other->counters().slow_turns.value(), 0U);
  ASSERT_EQ(platform_.logged().size(), 1U);
  EXPECT_NE(platform_.logged().front().find("CallProbe"), std::string::npos);
}

TEST_F(LoopWithTicks, NamesNoFunctionWhenManyMakeATurnSlow) {
  Quick first(*this);
  Quick second(*this);
  Quick third(*this);
  turn_of({&first, &second, &third});
  ASSERT_EQ(platform_.logged().size(), 1U);
  EXPECT_NE(platform_.logged().front().find("60 ms: no single slow function"), std::string::npos)
      << platform_.logged().front();
}

}  // namespace

namespace {

void one_function() {}

TEST(StallLog, ASiteIsLoggedOnceAndAlwaysCounted) {
  StallLog slow;
  EXPECT_EQ(slow.add({.name = "GET /slow"}, 80ms), "GET /slow");
  for (int i = 0; i < 9; ++i) EXPECT_EQ(slow.add({.name = "GET /slow"}, 90ms - i * 1ms), "");
  EXPECT_EQ(slow.add({.name = "GET /other"}, 60ms), "GET /other");
  const auto summaries = slow.summaries();
  ASSERT_EQ(summaries.size(), 2U);
  EXPECT_EQ(summaries[0].name, "GET /slow");
  EXPECT_EQ(summaries[0].turns, 10U);
  EXPECT_EQ(summaries[0].longest, 90ms);
  EXPECT_EQ(summaries[1].turns, 1U);
}

TEST(StallLog, NamesFunctions) {
  StallLog slow;
  const auto* const function = reinterpret_cast<const void*>(&one_function);
  EXPECT_EQ(slow.add({function}, 80ms), "weir::loop::(anonymous namespace)::one_function");
  EXPECT_EQ(slow.add({function}, 80ms), "") << "logged already";
  EXPECT_EQ(slow.add({}, 80ms), "no single slow function");
  EXPECT_EQ(slow.summaries().size(), 2U);
}

template <class T>
void function_with_long_name() {}

TEST(StallLog, CutsLongNamesOfFunctions) {
  using Text = std::tuple<std::string, std::string>;
  using Long = std::tuple<Text, Text, Text>;
  StallLog slow;
  const auto* const function = reinterpret_cast<const void*>(&function_with_long_name<Long>);
  const std::string name = slow.add({function}, 80ms);
  EXPECT_EQ(name.size(), 163U) << name;
  EXPECT_TRUE(name.contains("function_with_long_name<")) << name;
  EXPECT_TRUE(name.ends_with("...")) << name;
}

TEST(StallLog, SortsEquallyFrequentSitesByName) {
  StallLog slow;
  for (const char* name : {"b", "d", "a", "c"}) slow.add({.name = name}, 80ms);
  slow.add({.name = "d"}, 60ms);
  std::string order;
  for (const StallSummary& each : slow.summaries()) order += each.name;
  EXPECT_EQ(order, "dabc");
  EXPECT_EQ(slow.summaries().front().longest, 80ms);
}

TEST(StallLog, CountsTheTurnsOfAllThreads) {
  constexpr int each = 5000;
  StallLog slow;
  std::atomic<int> ready{0};
  const auto count = [&] {
    ready.fetch_add(1);
    while (ready.load() < 2) std::this_thread::yield();
    for (int i = 0; i < each; ++i) {
      slow.add({.name = "site " + std::to_string(i % 10)}, 80ms);
      if (i % 100 == 0) {
        EXPECT_LE(slow.summaries().size(), 10U);
      }
    }
  };
  std::thread other(count);
  count();
  other.join();
  const auto summaries = slow.summaries();
  ASSERT_EQ(summaries.size(), 10U);
  for (const StallSummary& site : summaries) EXPECT_EQ(site.turns, 2U * each / 10) << site.name;
}

TEST(StallLog, TheMostFrequentComesFirst) {
  StallLog slow;
  slow.add({.name = "seldom"}, 80ms);
  slow.add({.name = "often"}, 70ms);
  slow.add({.name = "often"}, 70ms);
  EXPECT_EQ(slow.summaries().front().name, "often");
}

TEST(StallLog, CountsSitesBeyondTheLimitTogether) {
  StallLog slow;
  for (std::size_t i = 0; i < StallLog::sites_max; ++i) {
    EXPECT_NE(slow.add({.name = "site " + std::to_string(i)}, 80ms), "");
  }
  EXPECT_EQ(slow.add({.name = "one more"}, 80ms), "others");
  EXPECT_EQ(slow.add({.name = "and another"}, 100ms), "");
  EXPECT_EQ(slow.add({.name = "site 0"}, 80ms), "") << "known sites are still counted apart";
  const auto summaries = slow.summaries();
  EXPECT_EQ(summaries.size(), StallLog::sites_max + 1);
  for (const StallSummary& each : summaries) {
    const bool twice = each.name == "others" || each.name == "site 0";
    EXPECT_EQ(each.turns, twice ? 2U : 1U) << each.name;
  }
}

}  // namespace

namespace {

bool is_readable(int descriptor) {
  pollfd watched{descriptor, POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

/// A loop and its watchdog in virtual time. The watchdog checks when next() is due.
class WatchdogInMemory : public testing::Test {
 protected:
  WatchdogInMemory() {
    watchdog_.start();
    check_when_due();
  }
  void check_when_due() {
    if (watchdog_.next() == never) return;
    platform_.at(watchdog_.next(), [this] {
      ++checks_;
      watchdog_.check();
      check_when_due();
    });
  }

  TickedPlatform platform_;
  std::unique_ptr<Loop> loop_ = Loop::make(platform_, {}).value();
  std::array<LoopPlacement, 1> placements_{{{loop_.get(), -1}}};
  Watchdog watchdog_ = Watchdog::make(platform_, placements_).value();
  int checks_ = 0;
};

TEST_F(WatchdogInMemory, TicksOnlyInsideATurn) {
  bool ticked_before = true;
  bool ticked_after = false;
  CallProbe slow([&] {
    ticked_before = loop_->stall_detector().ticked();
    platform_.clock().move_to(platform_.now() + 3 * StallDetector::tick_length);
    ticked_after = loop_->stall_detector().ticked();
  });
  loop_->turn(platform_.now() + 10 * StallDetector::tick_length);  // it sleeps meanwhile
  EXPECT_GE(checks_, 9);
  loop_->ready(slow);
  loop_->turn(platform_.now());
  EXPECT_FALSE(ticked_before);
  EXPECT_TRUE(ticked_after);
}

TEST_F(WatchdogInMemory, SleepsAfterAnIdleSecondUntilATurnBegins) {
  loop_->turn(platform_.now() + 1h);
  EXPECT_EQ(watchdog_.next(), never);
  EXPECT_GE(checks_, 50);
  EXPECT_LE(checks_, 52);
  EXPECT_FALSE(is_readable(watchdog_.wake_descriptor()));
  loop_->turn(platform_.now());
  ASSERT_TRUE(is_readable(watchdog_.wake_descriptor()));
  watchdog_.wake();
  EXPECT_FALSE(is_readable(watchdog_.wake_descriptor()));
  EXPECT_EQ(watchdog_.next(), platform_.now() + StallDetector::tick_length);
  loop_->turn(platform_.now());
  EXPECT_FALSE(is_readable(watchdog_.wake_descriptor())) << "it is awake";
}

TEST_F(WatchdogInMemory, StaysAwakeWhileTurnsRun) {
  for (int i = 0; i < 20; ++i) loop_->turn(platform_.now() + 500ms);
  EXPECT_NE(watchdog_.next(), never);
}

TEST_F(WatchdogInMemory, SleepsAgainAfterAnotherIdleSecond) {
  loop_->turn(platform_.now() + 1h);
  ASSERT_EQ(watchdog_.next(), never);
  loop_->turn(platform_.now());
  watchdog_.wake();
  check_when_due();
  checks_ = 0;
  loop_->turn(platform_.now() + 1h);
  EXPECT_EQ(watchdog_.next(), never);
  EXPECT_GE(checks_, 51) << "an idle second, and one check more";
  EXPECT_LE(checks_, 52);
}

TEST_F(WatchdogInMemory, AWatchdogThatHasEndedIsNotWoken) {
  bool slept = false;
  platform_.at(platform_.now() + 1ms, [&] {  // the loop sleeps
    auto gone = Watchdog::make(platform_, placements_).value();
    gone.start();
    for (int i = 0; i < 60; ++i) gone.check();
    slept = gone.next() == never;
  });
  loop_->turn(platform_.now() + 2ms);
  EXPECT_TRUE(slept);
  EXPECT_FALSE(loop_->turn(platform_.now()));
}

/// Lets the loop `busy` of two run while the other one sleeps, and the watchdog check often.
void expect_ticks_of(std::size_t busy) {
  std::array<TickedPlatform, 2> platforms;  // time passes on a platform with a single loop
  std::array<std::unique_ptr<Loop>, 2> loops;
  for (std::size_t i = 0; i < 2; ++i) loops[i] = Loop::make(platforms[i], {}).value();
  const std::array<LoopPlacement, 2> placements{{{loops[0].get(), -1}, {loops[1].get(), -1}}};
  auto watchdog = Watchdog::make(platforms[busy], placements).value();
  watchdog.start();
  Loop& working = *loops[busy];
  Loop& sleeping = *loops[1 - busy];
  std::uint32_t ticks = 0;
  CallProbe work([&] {
    for (int i = 0; i < 200; ++i) watchdog.check();
    ticks = working.stall_detector().ticks();
  });
  working.ready(work);
  TickedPlatform& outer = platforms[1 - busy];
  outer.at(outer.now() + 1ms, [&] { working.turn(platforms[busy].now()); });
  sleeping.turn(outer.now() + 10ms);
  EXPECT_EQ(ticks, 200U);
  EXPECT_EQ(sleeping.stall_detector().ticks(), 0U);
  EXPECT_NE(watchdog.next(), never) << "a loop had work at each check";
}

TEST(WatchdogOfTwoLoops, TicksTheBusyLoopAndStaysAwakeForIt) {
  expect_ticks_of(0);
  expect_ticks_of(1);
}

/// A platform that stores its log lines.
class LoggingPlatform : public OsPlatform {
 public:
  void write_line(std::string_view line) noexcept override {
    const std::lock_guard lock(mutex_);
    logged_.emplace_back(line);
  }
  std::string logged() const {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const std::string& line : logged_) text += line + "\n";
    return text;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> logged_;
};

struct Culprit : Runnable {
  explicit Culprit(Loop& on) : Runnable(&compute_for_long), loop(on) {}
  /// Runs for more than Loop::slow_turn, and until the watchdog has ticked often enough to prove
  /// it, however busy the machine is.
  static void compute_for_long(Runnable& self) {
    Loop& loop = static_cast<Culprit&>(self).loop;
    const Instant begun = loop.platform().now();
    while (loop.platform().now() - begun <= Loop::slow_turn || loop.stall_detector().ticks() < 3) {
    }
    loop.stop();
  }
  Loop& loop;
};

TEST(WatchdogOfThreads, NamesTheFunctionThatBlocksALoop) {
  LoggingPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  Culprit culprit(*loop);
  loop->ready(culprit);
  const std::array<LoopPlacement, 1> placements{{{loop.get(), -1}}};
  ASSERT_TRUE(platform.run(placements, nullptr));
  EXPECT_GE(loop->counters().slow_turns.value(), 1U);
  EXPECT_NE(platform.logged().find("Culprit::compute_for_long"), std::string::npos)
      << platform.logged();
}

}  // namespace
}  // namespace weir::loop
