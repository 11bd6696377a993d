// Tests of the queue of a mailbox in the states that only senders on other threads bring about: a
// position that is claimed but not published yet, and room that a waiting sender did not get.
#include "weir/runtime/messaging/detail/mailbox_queue.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "weir/runtime/test/lock_probe.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::detail::mailbox_queue_test {
namespace {

/// A sender that waits for room without looking for it first, as if it had just lost a race for
/// the last slot.
class LateSender final : public MailboxSender {
 public:
  LateSender(MailboxQueue& queue, std::vector<std::uint64_t>& positions, LockProbe* probe) noexcept
      : MailboxSender(queue), positions_(positions), probe_(probe) {}
  bool await_ready() const noexcept { return false; }

 private:
  void put(std::uint64_t position) noexcept override {
    positions_.push_back(position);
    if (probe_ != nullptr) probe_->probe();
  }
  std::vector<std::uint64_t>& positions_;
  LockProbe* probe_;
};

class MailboxQueueTest : public LoopTest {
 protected:
  /// Runs `body(scope)` and waits for what it spawned.
  template <class Body>
  void run_with_scope(Body body) {
    EXPECT_TRUE(run(with_scope(body)));
  }
  Task<> receive_one(MailboxQueue& queue) {
    const auto ready = co_await MailboxReadable(queue);
    outcomes_.push_back(ready ? std::error_code() : ready.error());
    if (ready) queue.release_front();
  }
  Task<> send_late(MailboxQueue& queue, LockProbe* probe = nullptr) {
    outcomes_.push_back(std::error_code());
    std::error_code& outcome = outcomes_.back();
    LateSender sender(queue, positions_, probe);
    const auto sent = co_await sender;
    if (!sent) outcome = sent.error();
    ++sent_;
  }
  static void publish_next(MailboxQueue& queue) {
    const auto position = queue.try_claim();
    ASSERT_TRUE(position);
    queue.publish(*position);
  }

  MailboxQueueTest() { outcomes_.reserve(100); }
  std::vector<std::error_code> outcomes_;
  std::vector<std::uint64_t> positions_;
  int sent_ = 0;
};

TEST_F(MailboxQueueTest, ASuspendedSenderDelaysTheValuesAfterItsOwn) {
  MailboxQueue queue(4, OverflowPolicy::reject);
  run_with_scope([&](Scope& scope) -> Task<> {
    scope.spawn(receive_one(queue));
    const auto first = queue.try_claim();
    const auto second = queue.try_claim();
    EXPECT_EQ(*first, 0U);
    EXPECT_EQ(*second, 1U);
    queue.publish(*second);
    EXPECT_TRUE(co_await sleep(1s));
    EXPECT_TRUE(outcomes_.empty()) << "the first value is not there yet";
    EXPECT_FALSE(queue.has_front());
    queue.publish(*first);
    EXPECT_TRUE(co_await sleep(1s));
    EXPECT_EQ(outcomes_.size(), 1U);
    co_await receive_one(queue);
  });
  EXPECT_EQ(outcomes_, std::vector<std::error_code>(2));
  EXPECT_EQ(queue.front(), 2U);
}

TEST_F(MailboxQueueTest, AClosedQueueEndsAfterTheValueOfASuspendedSender) {
  MailboxQueue queue(4, OverflowPolicy::reject);
  run_with_scope([&](Scope& scope) -> Task<> {
    scope.spawn(receive_one(queue));
    const auto position = queue.try_claim();
    queue.close();
    EXPECT_TRUE(queue.closed());
    EXPECT_TRUE(co_await sleep(1s));
    EXPECT_TRUE(outcomes_.empty());
    EXPECT_FALSE(queue.at_end());
    queue.publish(*position);
    EXPECT_TRUE(co_await sleep(1s));
    EXPECT_TRUE(queue.at_end());
    co_await receive_one(queue);
  });
  EXPECT_EQ(outcomes_, (std::vector<std::error_code>{{}, make_error_code(Errc::end_of_stream)}));
}

TEST_F(MailboxQueueTest, ACancelledReceiverThatWasPostedTooEarlyEnds) {
  MailboxQueue queue(4, OverflowPolicy::reject);
  CancelSource source;
  run_with_scope([&](Scope& scope) -> Task<> {
    scope.spawn(in_context({&scope.loop(), &source}, receive_one(queue)));
    const auto first = queue.try_claim();
    publish_next(queue);  // posts the receiver, which is not due
    source.cancel();
    EXPECT_TRUE(co_await sleep(1s));
    EXPECT_EQ(outcomes_, std::vector<std::error_code>{make_error_code(Errc::cancelled)});
    queue.publish(*first);
    co_await receive_one(queue);
  });
  EXPECT_EQ(outcomes_.size(), 2U);
  EXPECT_FALSE(outcomes_[1]);
}

TEST_F(MailboxQueueTest, ASenderThatWaitsTooLateFindsTheQueueClosed) {
  MailboxQueue queue(1, OverflowPolicy::wait);
  publish_next(queue);
  queue.close();
  run_with_scope([&](Scope&) { return send_late(queue); });
  EXPECT_EQ(outcomes_, std::vector<std::error_code>{make_error_code(Errc::closed)});
  EXPECT_TRUE(positions_.empty());
}

TEST_F(MailboxQueueTest, ASenderThatWaitsTooLateGetsTheRoomAndWakesTheReceiver) {
  MailboxQueue queue(1, OverflowPolicy::wait);
  run_with_scope([&](Scope& scope) -> Task<> {
    scope.spawn(receive_one(queue));
    co_await send_late(queue);
    EXPECT_EQ(positions_, std::vector<std::uint64_t>{0});
    EXPECT_TRUE(co_await sleep(1s));
    EXPECT_EQ(outcomes_.size(), 2U) << "the receiver has the value";
    EXPECT_TRUE(queue.try_claim()) << "no sender waits any more";
  });
}

// The queue rejects, so it hands no room to waiting senders: the next sender finds it.
TEST_F(MailboxQueueTest, WaitingSendersGetRoomInTheirOrder) {
  MailboxQueue queue(2, OverflowPolicy::reject);
  publish_next(queue);
  publish_next(queue);
  run_with_scope([&](Scope& scope) -> Task<> {
    scope.spawn(send_late(queue));
    EXPECT_TRUE(co_await sleep(1s));
    EXPECT_EQ(sent_, 0);
    queue.release_front();
    EXPECT_EQ(queue.try_claim().error(), Errc::limit_reached) << "it would overtake";
    queue.release_front();
    EXPECT_EQ(queue.try_claim().error(), Errc::limit_reached);
    co_await send_late(queue);
    EXPECT_EQ(positions_, (std::vector<std::uint64_t>{2, 3}));
    EXPECT_TRUE(co_await sleep(1s));
    EXPECT_EQ(sent_, 2);
    EXPECT_TRUE(queue.has_front());
    EXPECT_EQ(queue.try_claim().error(), Errc::limit_reached) << "the queue is full again";
    queue.release_front();
    EXPECT_TRUE(queue.has_front());
    queue.release_front();
    EXPECT_TRUE(queue.try_claim());
  });
}

TEST_F(MailboxQueueTest, AWaitingSenderGetsRoomThatALaterOneDoesNot) {
  MailboxQueue queue(2, OverflowPolicy::reject);
  publish_next(queue);
  publish_next(queue);
  run_with_scope([&](Scope& scope) -> Task<> {
    scope.spawn(send_late(queue));
    queue.release_front();
    scope.spawn(send_late(queue));
    EXPECT_TRUE(co_await sleep(1s));
    EXPECT_EQ(positions_, std::vector<std::uint64_t>{2});
    EXPECT_EQ(sent_, 1);
    queue.close();
  });
  EXPECT_EQ(outcomes_, (std::vector<std::error_code>{{}, make_error_code(Errc::closed)}));
}

TEST_F(MailboxQueueTest, ACloseWaitsUntilRoomIsGivenToASender) {
  for (const bool by_receiver : {true, false}) {
    MailboxQueue queue(1, OverflowPolicy::wait);
    if (by_receiver) publish_next(queue);
    LockProbe probe([&queue] { queue.close(); });
    sent_ = 0;
    run_with_scope([&](Scope& scope) -> Task<> {
      scope.spawn(send_late(queue, &probe));
      if (by_receiver) queue.release_front();
      EXPECT_TRUE(probe.was_blocked()) << by_receiver;
      co_return;
    });
    EXPECT_TRUE(queue.closed());
    EXPECT_EQ(sent_, 1);
  }
}

}  // namespace
}  // namespace weir::detail::mailbox_queue_test
