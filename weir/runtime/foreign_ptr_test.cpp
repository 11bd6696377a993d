#include "weir/runtime/foreign_ptr.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <thread>
#include <vector>

#include "weir/runtime/messaging/mailbox.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/runtime/test/runtime_fixture.hpp"

namespace weir::foreign_ptr_test {
namespace {

/// Records the loop in whose turn it was destroyed.
struct Witness {
  Witness(std::vector<const Loop*>& to, int of) : ends(&to), number(of) {}
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  ~Witness() { ends->push_back(Loop::current()); }
  std::vector<const Loop*>* ends;
  int number;
};

class ForeignPtrTest : public MultiCoreTest {
 protected:
  template <class Body>
  void run_on_first(Body body) {
    ByCore scenario({body});
    run(scenario);
  }
  std::size_t blocks(std::size_t core) { return loop(core).blocks().blocks_in_use(); }
  std::vector<const Loop*> ends_;
};

TEST_F(ForeignPtrTest, DroppedOnItsOwnerItIsDestroyedImmediately) {
  run_on_first([this]() -> Task<> {
    auto foreign = make_foreign<Witness>(loop(0), ends_, 7);
    EXPECT_EQ(foreign->number, 7);
    EXPECT_EQ((*foreign).number, 7);
    auto moved = std::move(foreign);
    EXPECT_FALSE(foreign);
    EXPECT_TRUE(ends_.empty());
    const std::size_t before = blocks(0);
    moved.reset();
    EXPECT_EQ(ends_, std::vector<const Loop*>{&loop(0)});
    EXPECT_EQ(blocks(0), before - 1);
    co_return;
  });
}

TEST_F(ForeignPtrTest, DroppedOnAnotherCoreItReturnsToItsOwner) {
  run_on_first([this]() -> Task<> {
    auto foreign = make_foreign<Witness>(loop(0), ends_, 7);
    const auto drop = [this](ForeignPtr<Witness> value) {
      EXPECT_EQ(Loop::current(), &loop(1));
      value.reset();
      EXPECT_TRUE(ends_.empty());
    };
    const std::size_t before = blocks(0);
    co_await on_core(1, drop, std::move(foreign));
    EXPECT_EQ(ends_, std::vector<const Loop*>{&loop(0)}) << "it was sent before the reply";
    EXPECT_EQ(blocks(0), before - 1) << "its memory is free without collect()";
  });
}

TEST_F(ForeignPtrTest, DroppedOutsideLoopsItReturnsToItsOwner) {
  auto foreign = make_foreign<Witness>(loop(2), ends_, 7);
  foreign.reset();
  EXPECT_TRUE(ends_.empty());
  platform_.run_until_idle(loops());
  EXPECT_EQ(ends_, std::vector<const Loop*>{&loop(2)});
}

TEST_F(ForeignPtrTest, AssigningAPointerDestroysTheObjectThatItOwned) {
  run_on_first([this]() -> Task<> {
    auto foreign = make_foreign<Witness>(loop(0), ends_, 1);
    const std::size_t one_block = blocks(0);
    auto other = make_foreign<Witness>(loop(0), ends_, 2);
    foreign = std::move(other);
    EXPECT_EQ(ends_, std::vector<const Loop*>{&loop(0)});
    EXPECT_EQ(blocks(0), one_block);
    EXPECT_EQ(foreign->number, 2);
    EXPECT_EQ(other.get(), nullptr);
    ForeignPtr<Witness>& self = foreign;
    foreign = std::move(self);
    EXPECT_EQ(ends_.size(), 1U);
    EXPECT_EQ(foreign->number, 2);
    foreign = ForeignPtr<Witness>();
    EXPECT_EQ(ends_.size(), 2U);
    EXPECT_EQ(blocks(0), one_block - 1);
    co_return;
  });
}

TEST_F(ForeignPtrTest, ManyReturnTogetherOldestFirst) {
  std::vector<int> order;
  struct Numbered {
    Numbered(std::vector<int>& of, int at) : ends(of), number(at) {}
    ~Numbered() { ends.push_back(number); }
    std::vector<int>& ends;
    int number;
  };
  constexpr int count = 5000;
  {
    std::vector<ForeignPtr<Numbered>> many;
    for (int i = 0; i < count; ++i) many.push_back(make_foreign<Numbered>(loop(1), order, i));
    for (auto& each : many) each.reset();
  }
  platform_.run_until_idle(loops());
  ASSERT_EQ(order.size(), static_cast<std::size_t>(count));
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_EQ(loop(1).counters().received.value(), 1U) << "one wake-up for all";
  EXPECT_GT(loop(1).counters().turns.value(), count / 1024U) << "each turn takes at most 1024";
}

/// Counts destroyed members by the turn of their loop.
struct ByTurn {
  struct Member {
    explicit Member(ByTurn& its_all) noexcept : all(its_all) {}
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
    ~Member() { ++all.destroyed[all.owner_loop.counters().turns.value()]; }
    ByTurn& all;
  };
  explicit ByTurn(Loop& its_owner_loop) noexcept : owner_loop(its_owner_loop) {}
  std::vector<ForeignPtr<Member>> make(int count) {
    std::vector<ForeignPtr<Member>> made;
    for (int i = 0; i < count; ++i) made.push_back(make_foreign<Member>(owner_loop, *this));
    return made;
  }
  int total() const {
    int sum = 0;
    for (const auto& [turn, count] : destroyed) sum += count;
    return sum;
  }
  Loop& owner_loop;
  std::map<std::uint64_t, int> destroyed;
};

TEST_F(ForeignPtrTest, ABusyOwnerDestroysALimitedNumberInATurn) {
  constexpr int count = 5000;
  ByTurn all(loop(0));
  const auto stay_busy = [&]() -> Task<> {
    while (all.total() < count) co_await yield();
  };
  const auto drop = [](std::vector<ForeignPtr<ByTurn::Member>> values) { values.clear(); };
  const auto body = [&](Scope& scope) -> Task<> {
    for (int i = 0; i < 100; ++i) scope.spawn(stay_busy());
    auto many = all.make(count);
    co_await on_core(1, drop, std::move(many));
  };
  run_on_first([&]() -> Task<> { EXPECT_TRUE(co_await with_scope(body)); });
  EXPECT_EQ(all.total(), count);
  for (const auto& [turn, destroyed] : all.destroyed) EXPECT_LE(destroyed, 1024) << turn;
}

TEST_F(ForeignPtrTest, RepeatedWakeUpsInATurnDoNotRaiseTheLimit) {
  ByTurn all(loop(0));
  run_on_first([&]() -> Task<> {
    const std::uint64_t turn = loop(0).counters().turns.value();
    for (int batch = 0; batch < 3; ++batch) {
      auto some = all.make(700);
      std::thread([&some] { some.clear(); }).join();
      for (int i = 0; i < 100; ++i) co_await yield();  // the loop reads its inbox meanwhile
    }
    EXPECT_EQ(loop(0).counters().turns.value(), turn);
    EXPECT_EQ(all.total(), 1024);
  });
  platform_.run_until_idle(loops());
  EXPECT_EQ(all.total(), 2100);
}

TEST_F(ForeignPtrTest, NestedPointersReturnToTheirOwnOwners) {
  struct Outer {
    ForeignPtr<Witness> inner;
    ForeignPtr<Witness> own;
  };
  run_on_first([this]() -> Task<> {
    auto outer = make_foreign<Outer>(loop(0));
    outer->own = make_foreign<Witness>(loop(0), ends_, 1);
    outer->inner = make_foreign<Witness>(loop(1), ends_, 2);
    const auto drop = [](ForeignPtr<Outer>) {};
    co_await on_core(2, drop, std::move(outer));
    EXPECT_EQ(ends_, std::vector<const Loop*>{&loop(0)});
  });
  platform_.run_until_idle(loops());
  EXPECT_EQ(ends_, (std::vector<const Loop*>{&loop(0), &loop(1)}));
}

TEST_F(ForeignPtrTest, AThrowingConstructorLeaksNothing) {
  struct Broken {
    Broken() { throw std::runtime_error("broken"); }
  };
  const ScopedBlockPool current(loop(0).blocks());
  EXPECT_THROW(static_cast<void>(make_foreign<Broken>(loop(0))), std::runtime_error);
  EXPECT_EQ(blocks(0), 0U);
}

TEST(ForeignPtrWithoutGroup, ObjectsInTransitAreDestroyedWithTheLoop) {
  MemoryPlatform platform;
  std::vector<const Loop*> ends;
  auto loop = Loop::make(platform, {}).value();
  make_foreign<Witness>(*loop, ends, 1).reset();
  auto late = make_foreign<Witness>(*loop, ends, 2);
  loop.reset();
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_NE(ends[0], nullptr) << "destroyed as if in a turn of its loop";
  late.reset();
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(ends[1], nullptr) << "its owner has ended";
}

/// Values pass between the cores; a cancelled task drops its values.
struct Passing {
  explicit Passing(CancelInjector& of) : injector(of) {}

  Task<> on(unsigned core) { return injector.as_target(core, pass(core)); }
  Task<> pass(unsigned core) {
    if (core == 0) {
      owner_loop = Loop::current();
      for (int i = 0; i < values; ++i) {
        auto value = make_foreign<Witness>(*Loop::current(), ends, i);
        injector.checkpoint();
        std::ignore = co_await boxes[1].send(std::move(value));
      }
      boxes[1].close();
      co_return;
    }
    while (auto value = co_await boxes[core].receive()) {
      injector.checkpoint();
      if (core == 1) std::ignore = co_await boxes[2].send(std::move(*value));
    }
    boxes[core].close();
    boxes[2].close();
    while (boxes[core].try_receive()) {
    }
  }
  bool outside() const { return false; }
  void check() const { EXPECT_EQ(ends, std::vector<const Loop*>(values, owner_loop)); }

  static constexpr int values = 3;
  CancelInjector& injector;
  std::vector<const Loop*> ends;
  const Loop* owner_loop = nullptr;
  std::array<Mailbox<ForeignPtr<Witness>>, 3> boxes{Mailbox<ForeignPtr<Witness>>({.capacity = 1}),
                                                    Mailbox<ForeignPtr<Witness>>({.capacity = 1}),
                                                    Mailbox<ForeignPtr<Witness>>({.capacity = 1})};
};

TEST_F(ForeignPtrTest, AllReturnWhenCancelledAtEveryStep) {
  EXPECT_GT(sweep<Passing>(3), 30U);
}

}  // namespace
}  // namespace weir::foreign_ptr_test
