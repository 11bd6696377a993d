#include "weir/loop/watchdog.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/testing/memory/memory_platform.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir {
namespace {

class TickedHost : public MemoryHost {
 public:
  bool clock_is_free() const noexcept override { return false; }
};

bool is_readable(int descriptor) {
  pollfd watched{descriptor, POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

/// A loop and its watchdog, which looks when it wants to, in virtual time.
class WatchdogInMemory : public testing::Test {
 protected:
  WatchdogInMemory() {
    watchdog_.start();
    look_when_due();
  }
  void look_when_due() {
    if (watchdog_.next() == never) return;
    host_.at(watchdog_.next(), [this] {
      ++looks_;
      watchdog_.look();
      look_when_due();
    });
  }

  TickedHost host_;
  std::unique_ptr<Loop> loop_ = Loop::make(host_, {}).value();
  std::array<LoopPlace, 1> places_{{{loop_.get(), -1}}};
  Watchdog watchdog_ = Watchdog::make(host_, places_).value();
  int looks_ = 0;
};

TEST_F(WatchdogInMemory, TicksInsideATurnOnly) {
  bool ticked_before = true;
  bool ticked_after = false;
  CallProbe slow([&] {
    ticked_before = loop_->watch().ticked();
    host_.clock().move_to(host_.now() + 3 * TurnWatch::tick_length);
    ticked_after = loop_->watch().ticked();
  });
  loop_->turn(host_.now() + 10 * TurnWatch::tick_length);  // it sleeps meanwhile
  EXPECT_GE(looks_, 9);
  loop_->ready(slow);
  loop_->turn(host_.now());
  EXPECT_FALSE(ticked_before);
  EXPECT_TRUE(ticked_after);
}

TEST_F(WatchdogInMemory, SleepsWhenNothingHappensForASecondUntilATurnBegins) {
  loop_->turn(host_.now() + 1h);
  EXPECT_EQ(watchdog_.next(), never);
  EXPECT_GE(looks_, 50);
  EXPECT_LE(looks_, 52);
  EXPECT_FALSE(is_readable(watchdog_.woken()));
  loop_->turn(host_.now());
  ASSERT_TRUE(is_readable(watchdog_.woken()));
  watchdog_.wake();
  EXPECT_FALSE(is_readable(watchdog_.woken()));
  EXPECT_EQ(watchdog_.next(), host_.now() + TurnWatch::tick_length);
  loop_->turn(host_.now());
  EXPECT_FALSE(is_readable(watchdog_.woken())) << "it is awake";
}

TEST_F(WatchdogInMemory, StaysAwakeWhileTurnsAreMade) {
  for (int i = 0; i < 20; ++i) loop_->turn(host_.now() + 500ms);
  EXPECT_NE(watchdog_.next(), never);
}

/// What it logs can be read.
class LoggingHost : public OsHost {
 public:
  void log(std::string_view line) noexcept override {
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
  /// For more than Loop::slow_turn, and until the watchdog has ticked often enough to prove it,
  /// however busy the machine is.
  static void compute_for_long(Runnable& self) {
    Loop& loop = static_cast<Culprit&>(self).loop;
    const Instant begun = loop.host().now();
    while (loop.host().now() - begun <= Loop::slow_turn || loop.watch().ticks() < 3) {
    }
    loop.stop();
  }
  Loop& loop;
};

TEST(WatchdogOfThreads, NamesWhatBlocksALoop) {
  LoggingHost host;
  const auto loop = Loop::make(host, {}).value();
  Culprit culprit(*loop);
  loop->ready(culprit);
  const std::array<LoopPlace, 1> places{{{loop.get(), -1}}};
  ASSERT_TRUE(host.run(places, nullptr));
  EXPECT_GE(loop->counters().slow_turns.value(), 1U);
  EXPECT_NE(host.logged().find("Culprit::compute_for_long"), std::string::npos) << host.logged();
}

}  // namespace
}  // namespace weir
