#include "weir/runtime/foreign_ptr.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <thread>
#include <vector>

#include "weir/runtime/test/runtime_fixture.hpp"
#include "weir/runtime/messaging/mailbox.hpp"
#include "weir/runtime/on_core.hpp"

namespace weir {
namespace {

/// Notes the loop in whose turn it was destroyed.
struct Witness {
  Witness(std::vector<const Loop*>& to, int of) : ends(&to), number(of) {}
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  ~Witness() { ends->push_back(Loop::current()); }
  std::vector<const Loop*>* ends;
  int number;
};

class HomedTest : public CoresTest {
 protected:
  template <class Body>
  void run_on_first(Body body) {
    ByCore scenario({body});
    run(scenario);
  }
  std::size_t blocks(std::size_t core) { return loop(core).blocks().blocks_in_use(); }
  std::vector<const Loop*> ends_;
};

TEST_F(HomedTest, LetGoAtHomeItIsDestroyedAtOnce) {
  run_on_first([this]() -> Task<> {
    auto homed = make_homed<Witness>(loop(0), ends_, 7);
    EXPECT_EQ(homed->number, 7);
    EXPECT_EQ((*homed).number, 7);
    auto moved = std::move(homed);
    EXPECT_FALSE(homed);
    EXPECT_TRUE(ends_.empty());
    const std::size_t before = blocks(0);
    moved.reset();
    EXPECT_EQ(ends_, std::vector<const Loop*>{&loop(0)});
    EXPECT_EQ(blocks(0), before - 1);
    co_return;
  });
}

TEST_F(HomedTest, LetGoElsewhereItGoesHome) {
  run_on_first([this]() -> Task<> {
    auto homed = make_homed<Witness>(loop(0), ends_, 7);
    const auto drop = [this](Homed<Witness> value) {
      EXPECT_EQ(Loop::current(), &loop(1));
      value.reset();
      EXPECT_TRUE(ends_.empty());
    };
    const std::size_t before = blocks(0);
    co_await on_core(1, drop, std::move(homed));
    EXPECT_EQ(ends_, std::vector<const Loop*>{&loop(0)}) << "it was on its way before the answer";
    EXPECT_EQ(blocks(0), before - 1) << "its memory too, without collect()";
  });
}

TEST_F(HomedTest, FromOutsideAnyLoopItGoesHome) {
  auto homed = make_homed<Witness>(loop(2), ends_, 7);
  homed.reset();
  EXPECT_TRUE(ends_.empty());
  host_.run_until_idle(loops());
  EXPECT_EQ(ends_, std::vector<const Loop*>{&loop(2)});
}

TEST_F(HomedTest, ManyComeHomeTogetherOldestFirst) {
  std::vector<int> order;
  struct Numbered {
    Numbered(std::vector<int>& of, int at) : ends(of), number(at) {}
    ~Numbered() { ends.push_back(number); }
    std::vector<int>& ends;
    int number;
  };
  constexpr int count = 5000;
  {
    std::vector<Homed<Numbered>> many;
    for (int i = 0; i < count; ++i) many.push_back(make_homed<Numbered>(loop(1), order, i));
    for (auto& each : many) each.reset();
  }
  host_.run_until_idle(loops());
  ASSERT_EQ(order.size(), static_cast<std::size_t>(count));
  EXPECT_TRUE(std::ranges::is_sorted(order));
  const std::uint64_t posted = loop(1).counters().received.value();
  EXPECT_EQ(posted, 1U + count / 1024) << "a turn takes a part of them";
}

/// Counts those that were destroyed, by the turn of their loop.
struct ByTurn {
  struct Member {
    explicit Member(ByTurn& its_all) noexcept : all(its_all) {}
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
    ~Member() { ++all.destroyed[all.home.counters().turns.value()]; }
    ByTurn& all;
  };
  explicit ByTurn(Loop& its_home) noexcept : home(its_home) {}
  std::vector<Homed<Member>> make(int count) {
    std::vector<Homed<Member>> made;
    for (int i = 0; i < count; ++i) made.push_back(make_homed<Member>(home, *this));
    return made;
  }
  int total() const {
    int sum = 0;
    for (const auto& [turn, count] : destroyed) sum += count;
    return sum;
  }
  Loop& home;
  std::map<std::uint64_t, int> destroyed;
};

TEST_F(HomedTest, ABusyHomeTakesNoMoreInATurn) {
  constexpr int count = 5000;
  ByTurn all(loop(0));
  const auto stay_busy = [&]() -> Task<> {
    while (all.total() < count) co_await yield();
  };
  const auto drop = [](std::vector<Homed<ByTurn::Member>> values) { values.clear(); };
  const auto body = [&](Scope& scope) -> Task<> {
    for (int i = 0; i < 100; ++i) scope.spawn(stay_busy());
    auto many = all.make(count);
    co_await on_core(1, drop, std::move(many));
  };
  run_on_first([&]() -> Task<> { EXPECT_TRUE(co_await with_scope(body)); });
  EXPECT_EQ(all.total(), count);
  for (const auto& [turn, destroyed] : all.destroyed) EXPECT_LE(destroyed, 1024) << turn;
}

TEST_F(HomedTest, HoweverOftenTheBellRingsInThatTurn) {
  ByTurn all(loop(0));
  run_on_first([&]() -> Task<> {
    const std::uint64_t turn = loop(0).counters().turns.value();
    for (int batch = 0; batch < 3; ++batch) {
      auto some = all.make(700);
      std::thread([&some] { some.clear(); }).join();
      for (int i = 0; i < 100; ++i) co_await yield();  // it looks into its inbox meanwhile
    }
    EXPECT_EQ(loop(0).counters().turns.value(), turn);
    EXPECT_EQ(all.total(), 1024);
  });
  host_.run_until_idle(loops());
  EXPECT_EQ(all.total(), 2100);
}

TEST_F(HomedTest, OneInTheOther) {
  struct Outer {
    Homed<Witness> inner;
    Homed<Witness> own;
  };
  run_on_first([this]() -> Task<> {
    auto outer = make_homed<Outer>(loop(0));
    outer->own = make_homed<Witness>(loop(0), ends_, 1);
    outer->inner = make_homed<Witness>(loop(1), ends_, 2);
    const auto drop = [](Homed<Outer>) {};
    co_await on_core(2, drop, std::move(outer));
    EXPECT_EQ(ends_, std::vector<const Loop*>{&loop(0)});
  });
  host_.run_until_idle(loops());
  EXPECT_EQ(ends_, (std::vector<const Loop*>{&loop(0), &loop(1)}));
}

TEST_F(HomedTest, AConstructorThatThrowsLeavesNothing) {
  struct Broken {
    Broken() { throw std::runtime_error("broken"); }
  };
  EXPECT_THROW(static_cast<void>(make_homed<Broken>(loop(0))), std::runtime_error);
}

TEST(HomedAlone, WhatIsOnItsWayWhenTheLoopEndsDiesWithIt) {
  MemoryHost host;
  std::vector<const Loop*> ends;
  auto loop = Loop::make(host, {}).value();
  make_homed<Witness>(*loop, ends, 1).reset();
  auto late = make_homed<Witness>(*loop, ends, 2);
  loop.reset();
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_NE(ends[0], nullptr) << "it died as if in a turn of its loop";
  late.reset();
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(ends[1], nullptr) << "it has no home any more";
}

/// Values go round the cores; whoever is cancelled drops what it holds.
struct Passing {
  explicit Passing(Strike& of) : strike(of) {}

  Task<> on(unsigned core) { return strike.as_victim(core, pass(core)); }
  Task<> pass(unsigned core) {
    if (core == 0) {
      home = Loop::current();
      for (int i = 0; i < values; ++i) {
        auto value = make_homed<Witness>(*Loop::current(), ends, i);
        strike.point();
        static_cast<void>(co_await boxes[1].send(std::move(value)));
      }
      boxes[1].close();
      co_return;
    }
    while (auto value = co_await boxes[core].receive()) {
      strike.point();
      if (core == 1) static_cast<void>(co_await boxes[2].send(std::move(*value)));
    }
    boxes[core].close();
    boxes[2].close();
    while (boxes[core].try_receive()) {
    }
  }
  bool outside() const { return false; }
  void check() const { EXPECT_EQ(ends, std::vector<const Loop*>(values, home)); }

  static constexpr int values = 3;
  Strike& strike;
  std::vector<const Loop*> ends;
  const Loop* home = nullptr;
  std::array<Mailbox<Homed<Witness>>, 3> boxes{Mailbox<Homed<Witness>>({.capacity = 1}),
                                               Mailbox<Homed<Witness>>({.capacity = 1}),
                                               Mailbox<Homed<Witness>>({.capacity = 1})};
};

TEST_F(HomedTest, CancelledAtEveryStepAllComeHome) {
  EXPECT_GT(sweep<Passing>(3), 30U);
}

}  // namespace
}  // namespace weir
