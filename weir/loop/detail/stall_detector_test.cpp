// Who is named when a turn was slow, by a watchdog's ticks and in virtual time.
#include "weir/loop/turn_watch.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>

#include "weir/loop/loop.hpp"
#include "weir/testing/memory/memory_platform.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir {
namespace {

/// As on an operating system: the clock is not asked behind each thing that runs.
class TickedHost : public MemoryHost {
 public:
  bool clock_is_free() const noexcept override { return false; }
};

class TurnWatchOfTicks : public testing::Test {
 protected:
  void begin() { const TurnWatch::Turn turn(watch_, host_.now()); }
  void spend(unsigned ticks) {
    for (; ticks > 0; --ticks) watch_.tick();
  }
  /// Something called so has run, and the watchdog ticked so often meanwhile.
  void run(const char* name, unsigned ticks) {
    spend(ticks);
    if (watch_.ticked()) watch_.look_at([name] { return std::string(name); });
  }
  const std::string& suspect() const { return watch_.suspect().name; }

  TickedHost host_;
  TurnWatch watch_{host_};
};

TEST_F(TurnWatchOfTicks, NobodyIsSuspectedForOneTick) {
  begin();
  for (int i = 0; i < 10; ++i) run("one", 1);
  EXPECT_EQ(suspect(), "") << "it began with the thing before, maybe";
}

TEST_F(TurnWatchOfTicks, TwoTicksBehindOneThingProveThatItTookLong) {
  begin();
  run("one", 1);
  run("other", 2);
  run("one", 1);
  EXPECT_EQ(suspect(), "other");
}

TEST_F(TurnWatchOfTicks, TheLongestIsTheOne) {
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

TEST_F(TurnWatchOfTicks, AWholeIsNamedInsteadOfItsPart) {
  begin();
  spend(3);
  watch_.look_at_part();
  watch_.look_at_part();
  EXPECT_EQ(suspect(), "");
  EXPECT_TRUE(watch_.ticked()) << "whoever looks at the whole shall do so";
  run("whole", 0);
  EXPECT_EQ(suspect(), "whole");
  EXPECT_FALSE(watch_.ticked());
  run("next", 0);
  EXPECT_EQ(suspect(), "whole");
}

TEST_F(TurnWatchOfTicks, APartOfNothingWithANameKeepsItsOwn) {
  begin();
  spend(3);
  watch_.look_at_part();
  watch_.look_at_all();
  run("next", 1);
  EXPECT_EQ(suspect(), "");
}

TEST_F(TurnWatchOfTicks, TicksBetweenTurnsAreNobodys) {
  for (int i = 0; i < 5; ++i) watch_.tick();
  begin();
  EXPECT_FALSE(watch_.ticked());
  run("one", 1);
  EXPECT_EQ(suspect(), "");
}

TEST(TurnWatchOfAFreeClock, AsksIt) {
  MemoryHost host;
  TurnWatch watch(host);
  const TurnWatch::Turn turn(watch, host.now());
  const auto run = [&](const char* name, Duration length) {
    host.clock().move_to(host.now() + length);
    ASSERT_TRUE(watch.ticked()) << "it is asked each time";
    watch.look_at([name] { return std::string(name); });
  };
  run("one", TurnWatch::tick_length - 1ns);
  EXPECT_EQ(watch.suspect().name, "");
  run("other", TurnWatch::tick_length);
  EXPECT_EQ(watch.suspect().name, "other");
  run("one", 200ms);
  EXPECT_EQ(watch.suspect().name, "one");
  run("other", 190ms);
  EXPECT_EQ(watch.suspect().name, "one");
}

TEST(TurnWatch, WakesAWatchdogThatSleepsOnce) {
  MemoryHost host;
  TurnWatch watch(host);
  int woken = 0;
  watch.wake_watchdog();
  watch.set_watchdog([](void* count) { ++*static_cast<int*>(count); }, &woken);
  watch.wake_watchdog();
  EXPECT_EQ(woken, 0) << "it does not sleep";
  watch.watchdog_sleeps(true);
  watch.wake_watchdog();
  watch.wake_watchdog();
  EXPECT_EQ(woken, 1);
}

class LoopWithTicks : public testing::Test {
 public:
  /// As a thing that runs for so long: the watchdog ticks meanwhile.
  void spend(unsigned ticks) {
    host_.clock().move_to(host_.now() + ticks * TurnWatch::tick_length);
    for (; ticks > 0; --ticks) loop_->watch().tick();
  }

 protected:
  /// The next turn runs these, and does not wait.
  void turn_of(std::initializer_list<Runnable*> runnables) {
    for (Runnable* const each : runnables) loop_->ready(*each);
    loop_->turn(host_.now());
  }
  TickedHost host_;
  std::unique_ptr<Loop> loop_ = Loop::make(host_, {}).value();
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

TEST_F(LoopWithTicks, NamesWhatTookLongAndNotItsNeighbours) {
  Quick first(*this);
  Slow second(*this);
  Quick third(*this);
  turn_of({&first, &second, &third});
  ASSERT_EQ(host_.logged().size(), 1U);
  const std::string& line = host_.logged().front();
  EXPECT_TRUE(line.starts_with("weir: core 0: a turn took 120 ms: ")) << line;
  EXPECT_NE(line.find("Slow::slow"), line.npos) << line;
  EXPECT_EQ(line.find("Quick"), line.npos) << line;
}

TEST_F(LoopWithTicks, NamesNobodyWhenManyThingsMakeATurnSlow) {
  Quick first(*this);
  Quick second(*this);
  Quick third(*this);
  turn_of({&first, &second, &third});
  ASSERT_EQ(host_.logged().size(), 1U);
  EXPECT_NE(host_.logged().front().find("60 ms: no one thing"), std::string::npos)
      << host_.logged().front();
}

}  // namespace
}  // namespace weir
