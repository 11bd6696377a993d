// Tests of FairSlots: shares, the queue between clients, and slots that are revoked.
#include "weir/task/sync/detail/fair_slots.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "weir/task/cancel.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::fair_slots_test {
namespace {

using namespace std::chrono_literals;
using detail::FairSlots;

class FairSlotsTest : public LoopTest {
 protected:
  static constexpr std::size_t waiting_max = 100;

  /// Returns a connection of a group.
  FairSlots::Client client(std::size_t index, std::uint64_t group = 0) const {
    return {group, &clients_[index]};
  }
  /// Takes slots until the client has no right to another one.
  std::size_t take_all(FairSlots& slots, const FairSlots::Client& client) {
    std::size_t count = 0;
    while (auto slot = slots.try_acquire(client)) {
      held_.push_back(std::move(*slot));
      ++count;
    }
    return count;
  }
  std::size_t take_all(FairSlots& slots, std::size_t index) {
    return take_all(slots, client(index));
  }
  /// Takes slots by new connections of a group until none has a right to another one.
  std::size_t take_by_many(FairSlots& slots, std::uint64_t group) {
    std::size_t count = 0;
    for (std::size_t index = 0; index < clients_.size(); ++index) {
      count += take_all(slots, client(index, group));
    }
    return count;
  }
  std::array<char, 64> clients_{};
  std::vector<FairSlots::Slot> held_;
};

TEST_F(FairSlotsTest, LeavesSlotsForOtherClients) {
  FairSlots slots(*loop_, {64, waiting_max});
  EXPECT_EQ(take_all(slots, 0), 32U);
  EXPECT_EQ(take_all(slots, 1), 16U);
  EXPECT_EQ(take_all(slots, 2), 8U);
  EXPECT_EQ(slots.in_use(), 56U);
  EXPECT_EQ(take_all(slots, 0), 0U);
  held_.resize(10);
  EXPECT_EQ(slots.in_use(), 10U);
  EXPECT_EQ(take_all(slots, 0), 22U);
  held_.clear();
}

TEST_F(FairSlotsTest, HasNoSharesIfThereAreFewSlots) {
  FairSlots slots(*loop_, {3, waiting_max});
  EXPECT_EQ(take_all(slots, 0), 3U);
  EXPECT_EQ(take_all(slots, 1), 0U);
  held_.clear();
  FairSlots none(*loop_, {0, waiting_max});
  EXPECT_EQ(take_all(none, 0), 0U);
}

TEST_F(FairSlotsTest, ChangesItsNumberOfSlots) {
  FairSlots slots(*loop_, {4, waiting_max});
  EXPECT_EQ(take_all(slots, 0), 4U);
  int granted = 0;
  const auto wait_for_slot = [&]() -> Task<> {
    const auto slot = co_await slots.acquire(client(1));
    if (!slot) co_return;
    ++granted;
    std::ignore = co_await sleep(1h);
  };
  const auto body = [&](Scope& scope) -> Task<> {
    for (int count = 0; count < 3; ++count) scope.spawn(wait_for_slot());
    std::ignore = co_await sleep(1ms);
    EXPECT_EQ(granted, 0);
    slots.set_slots(6);
    std::ignore = co_await sleep(1ms);
    EXPECT_EQ(granted, 2) << "a larger number grants the waits";
    slots.set_slots(2);
    held_.resize(1);
    std::ignore = co_await sleep(1ms);
    EXPECT_EQ(slots.in_use(), 3U);
    EXPECT_EQ(granted, 2) << "more are in use than there are";
    EXPECT_EQ(take_all(slots, 0), 0U);
    slots.set_slots(0);
    EXPECT_EQ(slots.slots(), 1U);
    held_.clear();
    scope.cancel();
  };
  std::ignore = run(with_scope(OnFailure::isolate, body));
}

TEST_F(FairSlotsTest, AClaimTakesOverTheSlotOfAnother) {
  FairSlots slots(*loop_, {8, waiting_max});
  std::ignore = slots.try_acquire(client(0, 2));  // two groups share the slots
  auto owner = slots.try_acquire(client(0, 1));
  auto claim = slots.try_claim(client(1, 2));
  ASSERT_TRUE(owner && claim);
  EXPECT_EQ(slots.in_use(), 1U);
  EXPECT_EQ(take_all(slots, client(1, 2)), 1U) << "the claim counts for its share";
  EXPECT_FALSE(slots.try_claim(client(1, 2)));
  EXPECT_TRUE(slots.try_claim(client(2, 3))) << "the first of its client";
  held_.clear();
  owner->hand_over(*claim);
  owner.reset();
  EXPECT_EQ(slots.in_use(), 1U);
  claim.reset();
  EXPECT_EQ(slots.in_use(), 0U);
}

TEST_F(FairSlotsTest, AnUnlimitedNumberIsForAllGroups) {
  FairSlots slots(*loop_, {std::numeric_limits<std::size_t>::max(), waiting_max});
  std::ignore = slots.try_acquire(client(0, 1));
  EXPECT_TRUE(slots.try_acquire(client(0, 2)));
}

TEST_F(FairSlotsTest, AGroupWithManyConnectionsLeavesSlotsForOtherGroups) {
  FairSlots slots(*loop_, {64, waiting_max});
  std::ignore = slots.try_acquire(client(0, 2));
  EXPECT_EQ(take_all(slots, client(0, 1)), 16U) << "half of the share of its group";
  EXPECT_EQ(take_by_many(slots, 1), 16U);
  EXPECT_EQ(take_by_many(slots, 2), 16U);
  EXPECT_EQ(take_by_many(slots, 3), 8U);
  EXPECT_EQ(take_all(slots, client(9, 4)), 2U);
  held_.clear();
}

TEST_F(FairSlotsTest, TheConnectionsOfASingleGroupDivideAllSlots) {
  FairSlots slots(*loop_, {64, waiting_max});
  const auto body = [&]() -> Task<> {
    EXPECT_EQ(take_by_many(slots, 1), 64U);
    held_.clear();
    std::ignore = slots.try_acquire(client(0, 2));
    EXPECT_EQ(take_by_many(slots, 1), 32U);
    std::ignore = co_await sleep(FairSlots::groups_time);
    EXPECT_EQ(take_by_many(slots, 1), 32U) << "no other group has come for a long time";
  };
  run(body());
  held_.clear();
}

Task<> wait_for_slot(FairSlots& slots, FairSlots::Client client, std::string name,
                     std::string& order) {
  const auto slot = co_await slots.acquire(client);
  if (slot) {
    order += name;
  } else if (slot.error() == Errc::limit_reached) {
    order += "-" + name;
  }
  co_await yield();
}

TEST_F(FairSlotsTest, ServesGroupsInTurn) {
  FairSlots slots(*loop_, {1, waiting_max});
  EXPECT_EQ(take_all(slots, 0), 1U);
  std::string order;
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(wait_for_slot(slots, client(1, 1), "a1 ", order));
    scope.spawn(wait_for_slot(slots, client(1, 1), "a2 ", order));
    scope.spawn(wait_for_slot(slots, client(2, 1), "b1 ", order));
    scope.spawn(wait_for_slot(slots, client(3, 1), "c1 ", order));
    scope.spawn(wait_for_slot(slots, client(4, 2), "x1 ", order));
    scope.spawn(wait_for_slot(slots, client(4, 2), "x2 ", order));
    co_await yield();
    held_.clear();
  };
  std::ignore = run(with_scope(OnFailure::isolate, body));
  EXPECT_EQ(order, "a1 x1 b1 x2 c1 a2 ");
}

TEST_F(FairSlotsTest, TheLargestGroupGivesWayInAFullQueue) {
  FairSlots slots(*loop_, {1, 4});
  EXPECT_EQ(take_all(slots, 0), 1U);
  std::string order;
  const auto body = [&](Scope& scope) -> Task<> {
    const auto add = [&](std::size_t connection, std::uint64_t group, const char* name) {
      scope.spawn(wait_for_slot(slots, client(connection, group), name, order));
    };
    add(1, 1, "a1 ");
    add(2, 1, "b1 ");
    add(2, 1, "b2 ");
    add(2, 1, "b3 ");
    co_await yield();
    add(3, 1, "c1 ");
    co_await yield();
    EXPECT_EQ(order, "-b3 ") << "the connection with the most waits gives way";
    add(2, 1, "b4 ");
    co_await yield();
    EXPECT_EQ(order, "-b3 -b4 ") << "a new wait of that connection is its newest";
    add(4, 2, "x1 ");
    co_await yield();
    EXPECT_EQ(order, "-b3 -b4 -b2 ");
    add(4, 2, "x2 ");
    co_await yield();
    co_await yield();
    add(4, 2, "x3 ");
    co_await yield();
    EXPECT_EQ(order.substr(12), "-c1 -x3 ") << "the groups have two waits each";
    EXPECT_EQ(slots.waiting(), 4U);
    order.clear();
    held_.clear();
  };
  std::ignore = run(with_scope(OnFailure::isolate, body));
  EXPECT_EQ(order, "a1 x1 b1 x2 ");
}

TEST_F(FairSlotsTest, NothingWaitsWithoutSlotsOrQueue) {
  FairSlots none(*loop_, {0, waiting_max});
  FairSlots full(*loop_, {1, 0});
  EXPECT_EQ(take_all(full, 0), 1U);
  std::string order;
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(wait_for_slot(none, client(1), "a ", order));
    scope.spawn(wait_for_slot(full, client(1), "b ", order));
    co_return;
  };
  std::ignore = run(with_scope(OnFailure::isolate, body));
  EXPECT_EQ(order, "-a -b ");
  held_.clear();
}

TEST_F(FairSlotsTest, ServesClientsInTurn) {
  FairSlots slots(*loop_, {1, waiting_max});
  EXPECT_EQ(take_all(slots, 0), 1U);
  std::string order;
  const auto body = [&](Scope& scope) -> Task<> {
    for (const auto* name : {"a1 ", "a2 ", "a3 "}) {
      scope.spawn(wait_for_slot(slots, client(1), name, order));
    }
    scope.spawn(wait_for_slot(slots, client(2), "b1 ", order));
    scope.spawn(wait_for_slot(slots, client(2), "b2 ", order));
    scope.spawn(wait_for_slot(slots, client(3), "c1 ", order));
    co_await yield();
    EXPECT_EQ(slots.waiting(), 6U);
    held_.clear();
  };
  std::ignore = run(with_scope(OnFailure::isolate, body));
  EXPECT_EQ(order, "a1 b1 c1 a2 b2 a3 ");
  EXPECT_EQ(slots.in_use(), 0U);
}

TEST_F(FairSlotsTest, LeavesTheQueueWhenTheWaitIsCancelled) {
  FairSlots slots(*loop_, {1, waiting_max});
  EXPECT_EQ(take_all(slots, 0), 1U);
  const auto body = [&]() -> Task<> {
    const auto late = co_await timeout(1s, slots.acquire(client(1)));
    EXPECT_EQ(late.error(), Errc::timed_out);
    EXPECT_EQ(slots.waiting(), 0U);
    held_.clear();
    const auto slot = co_await slots.acquire(client(1));
    EXPECT_TRUE(slot);
  };
  run(body());
}

/// Holds a slot while it waits for its client, until the slot is revoked.
class Holder : FairSlots::Stall {
 public:
  Holder(FairSlots::Slot& slot, Instant until, std::size_t lead = 1)
      : Stall(
            slot, until, [](Stall& self) noexcept { static_cast<Holder&>(self).revoke(); }, lead),
        held_(slot) {}
  bool revoked() const noexcept { return !held_; }
  using Stall::renew;

 private:
  void revoke() noexcept { held_.release(); }
  FairSlots::Slot& held_;
};

TEST_F(FairSlotsTest, RevokesSlotsThatWaitForTheirClients) {
  FairSlots slots(*loop_, {2, waiting_max});
  EXPECT_EQ(take_all(slots, 0), 2U);
  const Instant begin = loop_->now();
  Holder first(held_[0], begin + 2s);
  Holder second(held_[1], begin + 5s);
  const auto body = [&]() -> Task<> {
    std::ignore = co_await sleep(1s);
    EXPECT_FALSE(first.revoked()) << "no client waits";
    const auto one = co_await slots.acquire(client(1));
    EXPECT_TRUE(first.revoked());
    EXPECT_EQ(loop_->now() - begin, 2s);
    const auto own = co_await timeout(10s, slots.acquire(client(1)));
    EXPECT_EQ(own.error(), Errc::timed_out) << "the client has as many slots as the other one";
    EXPECT_FALSE(second.revoked());
    const auto other = co_await slots.acquire(client(2));
    EXPECT_TRUE(second.revoked());
  };
  run(body());
  held_.clear();
}

TEST_F(FairSlotsTest, RevokesOneSlotForEachWait) {
  FairSlots slots(*loop_, {3, waiting_max});
  EXPECT_EQ(take_all(slots, 0), 3U);
  std::vector<std::unique_ptr<Holder>> holders;
  for (FairSlots::Slot& each : held_) {
    holders.push_back(std::make_unique<Holder>(each, loop_->now()));
  }
  const auto body = [&]() -> Task<> {
    const auto slot = co_await slots.acquire(client(1));
    EXPECT_TRUE(slot);
    EXPECT_EQ(slots.in_use(), 3U);
  };
  run(body());
  EXPECT_TRUE(holders[0]->revoked());
  EXPECT_FALSE(holders[1]->revoked());
  holders.clear();
  held_.clear();
}

TEST_F(FairSlotsTest, RevokesSlotsOfTheGroupWithMoreOfThem) {
  FairSlots slots(*loop_, {8, waiting_max});
  EXPECT_EQ(take_by_many(slots, 1), 8U);
  std::vector<std::unique_ptr<Holder>> holders;
  for (FairSlots::Slot& each : held_) {
    holders.push_back(std::make_unique<Holder>(each, loop_->now()));
  }
  const auto body = [&](Scope& scope) -> Task<> {
    std::vector<FairSlots::Slot> own;
    std::string order;
    for (std::size_t count = 0; count < 20; ++count) {
      scope.spawn(wait_for_slot(slots, client(0, 1), "a ", order));
    }
    for (std::size_t index = 0; index < 4; ++index) {
      auto slot = co_await slots.acquire(client(index, 2));
      EXPECT_TRUE(slot);
      own.push_back(std::move(*slot));
    }
    const auto more = co_await timeout(1s, slots.acquire(client(4, 2)));
    EXPECT_EQ(more.error(), Errc::timed_out) << "each group has a half";
    scope.cancel();
  };
  std::ignore = run(with_scope(OnFailure::isolate, body));
  holders.clear();
  held_.clear();
}

TEST_F(FairSlotsTest, RevokesTheSlotThatIsIdleForTheLongestTime) {
  FairSlots slots(*loop_, {3, waiting_max});
  for (std::size_t index = 0; index < 3; ++index) {
    held_.push_back(slots.try_acquire(client(index, 1)).value());
  }
  std::vector<std::unique_ptr<Holder>> holders;
  for (FairSlots::Slot& each : held_) {
    holders.push_back(std::make_unique<Holder>(each, loop_->now(), 2));
  }
  holders[0]->renew();
  const auto body = [&]() -> Task<> {
    const auto same = co_await timeout(1s, slots.acquire(client(9, 1)));
    EXPECT_EQ(same.error(), Errc::timed_out) << "no connection of the group has two slots more";
    const auto one = co_await slots.acquire(client(0, 2));
    EXPECT_TRUE(one);
    EXPECT_TRUE(holders[1]->revoked());
    const auto two = co_await timeout(1s, slots.acquire(client(1, 2)));
    EXPECT_EQ(two.error(), Errc::timed_out);
    EXPECT_FALSE(holders[0]->revoked() || holders[2]->revoked());
  };
  run(body());
  holders.clear();
  held_.clear();
}

TEST_F(FairSlotsTest, RevokesASlotOfTheLargestGroupFirst) {
  FairSlots slots(*loop_, {5, waiting_max});
  std::vector<std::unique_ptr<Holder>> holders;
  held_.reserve(slots.slots());
  for (const std::uint64_t group : {1U, 1U, 2U, 2U, 2U}) {
    held_.push_back(slots.try_acquire(client(held_.size(), group)).value());
    holders.push_back(std::make_unique<Holder>(held_.back(), loop_->now()));
  }
  const auto body = [&]() -> Task<> {
    const auto slot = co_await slots.acquire(client(9, 3));
    EXPECT_TRUE(slot);
  };
  run(body());
  EXPECT_TRUE(holders[2]->revoked()) << "the oldest one of the group";
  EXPECT_FALSE(holders[0]->revoked()) << "the oldest one of all";
  holders.clear();
  held_.clear();
}

}  // namespace
}  // namespace weir::fair_slots_test
