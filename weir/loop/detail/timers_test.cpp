#include "weir/loop/detail/timers.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "weir/testing/test/probe.hpp"

namespace weir::loop::timers_test {
namespace {

constexpr Instant start{std::chrono::hours(5)};

/// Advances from one next() to the following until `end`, as a loop does. Returns the number of
/// wake-ups.
int advance_as_a_loop(TimerWheel& wheel, Instant& now, Instant end) {
  int wakes = 0;
  while (wheel.next() <= end) {
    now = std::max(now, wheel.next());
    wheel.advance(now);
    ++wakes;
  }
  now = end;
  wheel.advance(now);
  return wakes;
}

TEST(TimerWheel, FiresOnceAndNeverEarly) {
  TimerWheel wheel(start);
  TimerProbe timer;
  wheel.start(timer, start + 10ms);
  EXPECT_TRUE(timer.armed());
  EXPECT_EQ(timer.deadline(), start + 10ms);
  EXPECT_EQ(wheel.armed(), 1U);
  wheel.advance(start + 10ms - 1ns);
  EXPECT_EQ(timer.fired, 0);
  wheel.advance(start + 10ms);
  EXPECT_EQ(timer.fired, 1);
  EXPECT_FALSE(timer.armed());
  wheel.advance(start + 1h);
  EXPECT_EQ(timer.fired, 1);
  EXPECT_EQ(wheel.armed(), 0U);
  EXPECT_EQ(wheel.next(), never);
}

TEST(TimerWheel, NextIsExactForNearTimersAndNeverLateForFarOnes) {
  TimerWheel wheel(start);
  EXPECT_EQ(wheel.next(), never);
  TimerProbe timer;
  for (const Duration length : std::initializer_list<Duration>{1ns, 65535ns, 65536ns, 100us, 4ms}) {
    wheel.start(timer, start + length);
    EXPECT_LE(wheel.next(), start + length);
    if (length < 4ms) {
      EXPECT_EQ(wheel.next(), start + length);
    }
    timer.cancel();
  }
}

TEST(TimerWheel, WakesAtTheExactTimeAndRarelyBefore) {
  for (const Duration length :
       std::initializer_list<Duration>{1ns, 1us, 1ms, 1s, 1h, 24h, 9000h, 24h * 365 * 100}) {
    TimerWheel wheel(start);
    TimerProbe timer;
    Instant now = start;
    Instant fired_at{};
    timer.then = [&] { fired_at = now; };
    wheel.start(timer, start + length);
    const int wakes = advance_as_a_loop(wheel, now, start + length);
    EXPECT_EQ(fired_at, start + length);
    EXPECT_LE(wakes, 8);
  }
}

TEST(TimerWheel, APastDeadlineFiresAtTheNextAdvance) {
  TimerWheel wheel(start);
  TimerProbe now, past, first;
  wheel.start(now, start);
  wheel.start(past, start - 1h);
  wheel.start(first, Instant::min());
  EXPECT_LE(wheel.next(), start);
  EXPECT_EQ(now.fired + past.fired + first.fired, 0);
  wheel.advance(start);
  EXPECT_EQ(now.fired, 1);
  EXPECT_EQ(past.fired, 1);
  EXPECT_EQ(first.fired, 1);
}

TEST(TimerWheel, DeadlineNeverOnlyDisarms) {
  TimerWheel wheel(start);
  TimerProbe timer;
  wheel.start(timer, never);
  EXPECT_FALSE(timer.armed());
  wheel.start(timer, start + 1s);
  wheel.start(timer, never);
  EXPECT_FALSE(timer.armed());
  EXPECT_EQ(wheel.armed(), 0U);
  wheel.advance(never - 1ns);
  EXPECT_EQ(timer.fired, 0);
}

TEST(TimerWheel, FiresAtTheLastMomentBeforeNever) {
  TimerWheel wheel(start);
  TimerProbe timer;
  wheel.start(timer, never - 1ns);
  EXPECT_LE(wheel.next(), never - 1ns);
  EXPECT_GT(wheel.next(), start);
  wheel.advance(start + std::chrono::hours(24) * 365 * 200);
  EXPECT_EQ(timer.fired, 0);
  wheel.advance(never - 1ns);
  EXPECT_EQ(timer.fired, 1);
}

TEST(TimerWheel, RestartMovesATimerBothWays) {
  TimerWheel wheel(start);
  TimerProbe timer;
  wheel.start(timer, start + 1s);
  wheel.start(timer, start + 2s);
  EXPECT_EQ(wheel.armed(), 1U);
  wheel.advance(start + 1s);
  EXPECT_EQ(timer.fired, 0);
  wheel.start(timer, start + 1500ms);
  wheel.advance(start + 1500ms);
  EXPECT_EQ(timer.fired, 1);
}

TEST(TimerWheel, CancelAndDestroyDisarm) {
  TimerWheel wheel(start);
  TimerProbe kept;
  {
    TimerProbe dropped;
    wheel.start(dropped, start + 1ms);
    wheel.start(kept, start + 1h);
    EXPECT_EQ(wheel.armed(), 2U);
  }
  EXPECT_EQ(wheel.armed(), 1U);
  kept.cancel();
  kept.cancel();
  EXPECT_EQ(wheel.armed(), 0U);
  EXPECT_EQ(wheel.next(), never);
  wheel.advance(start + 2h);
  EXPECT_EQ(kept.fired, 0);
}

TEST(TimerWheel, TimersMayOutliveTheWheel) {
  TimerProbe near, far, due;
  {
    TimerWheel wheel(start);
    wheel.start(near, start + 1us);
    wheel.start(far, start + 1h);
    wheel.start(due, start - 1h);
  }
  EXPECT_FALSE(near.armed() || far.armed() || due.armed());
}

TEST(TimerWheel, FiresInTheOrderOfDeadlinesThenOfStarts) {
  TimerWheel wheel(start);
  std::vector<int> order;
  std::vector<std::unique_ptr<TimerProbe>> timers;
  const auto add = [&](Duration length) {
    const int number = static_cast<int>(timers.size());
    timers.push_back(std::make_unique<TimerProbe>());
    timers.back()->then = [&order, number] { order.push_back(number); };
    wheel.start(*timers.back(), start + length);
  };
  for (const Duration length : std::initializer_list<Duration>{3us, 1us, 2us, 1us, 1s, 70us, 1s}) {
    add(length);
  }
  wheel.advance(start + 2s);
  EXPECT_EQ(order, (std::vector<int>{1, 3, 2, 0, 5, 4, 6}));
}

// A sort that ignores the order of the starts keeps it for a few timers only.
TEST(TimerWheel, ManyTimersOfOneMomentFireInTheOrderOfTheirStarts) {
  constexpr int count = 300;
  TimerWheel wheel(start);
  std::vector<int> order;
  std::vector<TimerProbe> timers(count);
  std::vector<int> expected;
  for (const int moment : {1, 2, 3}) {
    for (int number = 0; number < count; ++number) {
      if (1 + number * 7 % 3 == moment) expected.push_back(number);
    }
  }
  for (int number = 0; number < count; ++number) {
    TimerProbe& timer = timers[static_cast<std::size_t>(number)];
    timer.then = [&order, number] { order.push_back(number); };
    wheel.start(timer, start + 1us * (1 + number * 7 % 3));
  }
  wheel.advance(start + 10us);
  EXPECT_EQ(order, expected);
}

TEST(TimerWheel, ATimerThatStartsAgainFiresBehindTimersOfItsMoment) {
  for (const Duration length : std::initializer_list<Duration>{1us, 1ms, 1s, 1h}) {
    TimerWheel wheel(start);
    std::vector<int> order;
    std::vector<TimerProbe> timers(3);
    for (int number = 0; number < 3; ++number) {
      TimerProbe& timer = timers[static_cast<std::size_t>(number)];
      timer.then = [&order, number] { order.push_back(number); };
      wheel.start(timer, start + length);
    }
    wheel.start(timers[0], start + length);
    Instant now = start;
    advance_as_a_loop(wheel, now, start + length);
    EXPECT_EQ(order, (std::vector<int>{1, 2, 0}));
  }
}

TEST(TimerWheel, NextMovesOnToTheLaterTimersOfASlot) {
  TimerWheel wheel(start);
  TimerProbe third, first, second;
  wheel.start(third, start + 3us);
  wheel.start(first, start + 1us);
  wheel.start(second, start + 2us);
  for (const Duration length : std::initializer_list<Duration>{1us, 2us, 3us}) {
    EXPECT_EQ(wheel.next(), start + length);
    wheel.advance(start + length - 1ns);
    EXPECT_EQ(wheel.next(), start + length) << "advance() had nothing to do";
    wheel.advance(start + length);
  }
  EXPECT_EQ(first.fired + second.fired + third.fired, 3);
  EXPECT_EQ(wheel.next(), never);
}

TEST(TimerWheel, AFiringTimerMayDestroyItself) {
  struct Owned : Timer {
    explicit Owned(std::unique_ptr<Owned>& its_owner)
        : Timer([](Timer& self) { static_cast<Owned&>(self).owner.reset(); }), owner(its_owner) {}
    std::unique_ptr<Owned>& owner;
  };
  TimerWheel wheel(start);
  std::unique_ptr<Owned> owned;
  owned = std::make_unique<Owned>(owned);
  TimerProbe behind;
  wheel.start(*owned, start + 1us);
  wheel.start(behind, start + 1us);
  wheel.advance(start + 1us);
  EXPECT_EQ(owned, nullptr);
  EXPECT_EQ(behind.fired, 1);
  EXPECT_EQ(wheel.armed(), 0U);
}

TEST(TimerWheel, AFiringTimerMayStartItselfAndOthers) {
  TimerWheel wheel(start);
  TimerProbe timer, other;
  timer.then = [&] {
    EXPECT_FALSE(timer.armed());
    if (timer.fired < 3) wheel.start(timer, timer.deadline() + 1ms);
    if (timer.fired == 1) wheel.start(other, start);
  };
  wheel.start(timer, start + 1ms);
  wheel.advance(start + 10ms);
  EXPECT_EQ(timer.fired, 1) << "a timer started for the past fires at the next call";
  EXPECT_EQ(other.fired, 0);
  EXPECT_LE(wheel.next(), start + 10ms);
  wheel.advance(start + 10ms);
  EXPECT_EQ(timer.fired, 2);
  EXPECT_EQ(other.fired, 1);
  wheel.advance(start + 10ms);
  EXPECT_EQ(timer.fired, 3);
}

TEST(TimerWheel, AFiringTimerMayCancelDestroyAndMoveOtherDueTimers) {
  TimerWheel wheel(start);
  TimerProbe first, cancelled, moved;
  std::optional<TimerProbe> destroyed(std::in_place);
  first.then = [&] {
    cancelled.cancel();
    destroyed.reset();
    wheel.start(moved, start + 1s);
  };
  wheel.start(first, start + 1ms);
  wheel.start(cancelled, start + 1ms);
  wheel.start(*destroyed, start + 2ms);
  wheel.start(moved, start + 3ms);
  wheel.advance(start + 5ms);
  EXPECT_EQ(cancelled.fired + moved.fired, 0);
  EXPECT_EQ(wheel.armed(), 1U);
  wheel.advance(start + 1s);
  EXPECT_EQ(moved.fired, 1);
}

TEST(TimerWheel, NothingFiresWhenTimeStandsStillOrGoesBack) {
  TimerWheel wheel(start);
  TimerProbe timer;
  wheel.advance(start + 1s);
  wheel.start(timer, start + 1s + 10us);
  wheel.advance(start + 1s);
  wheel.advance(start);
  EXPECT_EQ(timer.fired, 0);
  wheel.advance(start + 1s + 10us);
  EXPECT_EQ(timer.fired, 1);
}

TEST(TimerWheel, HandlesAMillionTimers) {
  TimerWheel wheel(start);
  std::mt19937_64 random(7);
  struct Counting : Timer {
    Counting() : Timer([](Timer& self) { ++*static_cast<Counting&>(self).count; }) {}
    int* count = nullptr;
  };
  int fired = 0;
  std::vector<Counting> timers(1'000'000);
  for (Counting& timer : timers) {
    timer.count = &fired;
    wheel.start(timer, start + Duration(random() % 100'000'000'000));
  }
  EXPECT_EQ(wheel.armed(), timers.size());
  for (std::size_t i = 0; i < timers.size(); i += 2) timers[i].cancel();
  Instant now = start;
  while (wheel.armed() != 0) {
    now = std::max(now + 10ms, wheel.next());
    wheel.advance(now);
  }
  EXPECT_EQ(fired, 500'000);
  EXPECT_LE(now, start + 100s + 10ms);
}

/// Compares a wheel with a model that cannot be wrong: an ordered map of the armed timers.
class Model {
 public:
  explicit Model(std::uint64_t seed) : random_(seed), timers_(200) {
    for (std::size_t i = 0; i < timers_.size(); ++i) {
      timers_[i].then = [this, i] { fired_.push_back(i); };
    }
  }

  void step() {
    const auto chosen = static_cast<std::size_t>(below(timers_.size()));
    switch (below(8)) {
      case 0:
      case 1:
      case 2:
      case 3:
        restart(chosen, length());
        break;
      case 4:
        timers_[chosen].cancel();
        forget(chosen);
        break;
      case 5:
        advance(after(now_, Duration(below(1'000'000))));
        break;
      case 6:
        advance(std::max(now_, after(now_, length())));
        break;
      default:
        if (wheel_.next() != never) advance(std::max(now_, wheel_.next()));
    }
    check();
  }

 private:
  struct Key {
    Instant deadline;
    std::uint64_t order;
    bool operator<(const Key& other) const {
      return deadline != other.deadline ? deadline < other.deadline : order < other.order;
    }
  };

  std::int64_t below(std::uint64_t limit) { return static_cast<std::int64_t>(random_() % limit); }
  // Each magnitude from nanoseconds to a century is equally likely.
  Duration length() {
    const Duration drawn(below(std::uint64_t{2} << below(61)));
    return below(10) == 0 ? -drawn : drawn;
  }

  void restart(std::size_t chosen, Duration length) {
    const Instant deadline = after(now_, length);
    wheel_.start(timers_[chosen], deadline);
    forget(chosen);
    if (deadline == never) return;
    const Key key{deadline, ++started_};
    model_.emplace(key, chosen);
    keys_[chosen] = key;
  }
  void forget(std::size_t chosen) {
    if (const auto known = keys_.find(chosen); known != keys_.end()) {
      model_.erase(known->second);
      keys_.erase(known);
    }
  }
  void advance(Instant to) {
    if (to == never) return;
    std::vector<std::size_t> expected;
    const auto keys_before = keys_;
    while (!model_.empty() && model_.begin()->first.deadline <= to) {
      expected.push_back(model_.begin()->second);
      keys_.erase(model_.begin()->second);
      model_.erase(model_.begin());
    }
    fired_.clear();
    wheel_.advance(to);
    auto sorted = fired_;
    std::ranges::sort(sorted);
    std::ranges::sort(expected);
    ASSERT_EQ(sorted, expected);
    for (std::size_t i = 1; i < fired_.size(); ++i) {
      // Timers that were due when they were started fire first, in the order of starts.
      const Key &before = keys_before.at(fired_[i - 1]), &next = keys_before.at(fired_[i]);
      if (before.deadline > now_ && next.deadline > now_) {
        ASSERT_TRUE(before < next);
      }
    }
    now_ = to;
  }
  void check() {
    ASSERT_EQ(wheel_.armed(), model_.size());
    const Instant next = wheel_.next();
    if (model_.empty()) {
      ASSERT_EQ(next, never);
      return;
    }
    ASSERT_LE(next, model_.begin()->first.deadline);
    for (std::size_t i = 0; i < timers_.size(); ++i) {
      ASSERT_EQ(timers_[i].armed(), keys_.contains(i));
    }
  }

  std::mt19937_64 random_;
  Instant now_ = start;
  TimerWheel wheel_{start};
  std::vector<TimerProbe> timers_;
  std::map<Key, std::size_t> model_;
  std::map<std::size_t, Key> keys_;
  std::vector<std::size_t> fired_;
  std::uint64_t started_ = 0;
};

TEST(TimerWheel, AgreesWithAnOrderedMap) {
  const std::uint64_t first = std::random_device{}();
  for (std::uint64_t seed = first; seed < first + 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Model model(seed);
    for (int i = 0; i < 1000 && !HasFatalFailure(); ++i) model.step();
    if (HasFatalFailure()) return;
  }
}

}  // namespace

namespace {

TEST(HierarchicalBitset, BehavesLikeAnOrderedSet) {
  std::mt19937 random(3);
  HierarchicalBitset slots;
  std::set<unsigned> expected;
  for (int step = 0; step < 20000; ++step) {
    const unsigned slot = random() % HierarchicalBitset::size;
    // Grows and then shrinks the set: it becomes nearly full and nearly empty.
    if (random() % 100 < (step / 5000 % 2 == 0 ? 80U : 20U)) {
      slots.insert(slot);
      expected.insert(slot);
    } else {
      slots.erase(slot);
      expected.erase(slot);
    }
    ASSERT_EQ(slots.contains(slot), expected.contains(slot));
    ASSERT_EQ(slots.empty(), expected.empty());
    if (!expected.empty()) {
      ASSERT_EQ(slots.first(), *expected.begin());
    }
  }
}

}  // namespace
}  // namespace weir::loop::timers_test
