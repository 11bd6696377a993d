// Tests of FairSlots: shares, the queue between clients, and slots that are revoked.
#include "weir/task/sync/detail/fair_slots.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
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
  FairSlots::Client client(std::size_t index) const { return &clients_[index]; }
  /// Takes slots until the client has no right to another one.
  std::size_t take_all(FairSlots& slots, std::size_t index) {
    std::size_t count = 0;
    while (auto slot = slots.try_acquire(client(index))) {
      held_.push_back(std::move(*slot));
      ++count;
    }
    return count;
  }
  std::array<char, 64> clients_{};
  std::vector<FairSlots::Slot> held_;
};

TEST_F(FairSlotsTest, LeavesSlotsForOtherClients) {
  FairSlots slots(*loop_, 64);
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
  FairSlots slots(*loop_, 3);
  EXPECT_EQ(take_all(slots, 0), 3U);
  EXPECT_EQ(take_all(slots, 1), 0U);
  held_.clear();
  FairSlots none(*loop_, 0);
  EXPECT_EQ(take_all(none, 0), 0U);
}

Task<> wait_for_slot(FairSlots& slots, FairSlots::Client client, std::string name,
                     std::string& order) {
  const auto slot = co_await slots.acquire(client);
  EXPECT_TRUE(slot);
  order += name;
  co_await yield();
}

TEST_F(FairSlotsTest, ServesClientsInTurn) {
  FairSlots slots(*loop_, 1);
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
  FairSlots slots(*loop_, 1);
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
  Holder(FairSlots::Slot& slot, Instant until)
      : Stall(slot, until, [](Stall& self) noexcept { static_cast<Holder&>(self).revoke(); }),
        held_(slot) {}
  bool revoked() const noexcept { return !held_; }

 private:
  void revoke() noexcept { held_.release(); }
  FairSlots::Slot& held_;
};

TEST_F(FairSlotsTest, RevokesSlotsThatWaitForTheirClients) {
  FairSlots slots(*loop_, 2);
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
  FairSlots slots(*loop_, 3);
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

}  // namespace
}  // namespace weir::fair_slots_test
