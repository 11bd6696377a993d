// Tests of a listener on io_uring: its queue, its pauses, its end. The tests complete its
// requests.
#include "weir/loop/detail/uring/requests.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "weir/loop/test/uring_context.hpp"

// The address sanitizer counts the bytes; other builds have no such function.
extern "C" [[gnu::weak]] std::size_t __sanitizer_get_current_allocated_bytes();

namespace weir::loop::uring::listener_test {
namespace {

using namespace std::chrono_literals;
using Accept = Recorded<AcceptOperation>;
using Operations = std::vector<int>;

class UringListenerTest : public UringContextTest {
 protected:
  void SetUp() override {
    UringContextTest::SetUp();
    listener_.emplace(3, false);
    context_.sockets.push_back(*listener_);
  }
  /// Completes the armed request with `result`. It stays armed if `more` is true.
  void complete(int result, bool more = true) {
    listener_->completed(context_,
                         {&*listener_, Tag::accept, result, more ? IORING_CQE_F_MORE : 0U});
  }
  /// Accepts a connection that is queued already.
  int accept_queued() {
    Accept accept;
    EXPECT_TRUE(listener_->accept(context_, accept));
    EXPECT_FALSE(accept.error());
    return accept.accepted.release();
  }
  /// Arms the listener without a pending operation.
  void arm() {
    Accept accept;
    EXPECT_FALSE(listener_->accept(context_, accept));
    listener_->cancel(context_, accept);
    EXPECT_EQ(accept.error(), Errc::cancelled);
    EXPECT_EQ(run_ready(), 1);
    EXPECT_EQ(recorded_operations(), Operations{IORING_OP_ACCEPT});
  }
  bool is_waiting() { return context_.waiting.front() == &*listener_; }

  std::optional<Listener> listener_;
};

TEST_F(UringListenerTest, GivesConnectionsOutInTheOrderOfTheirArrival) {
  Accept accept;
  EXPECT_FALSE(listener_->accept(context_, accept));
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_ACCEPT});
  EXPECT_EQ(listener_->in_flight, 1);
  complete(0);  // a valid descriptor
  EXPECT_EQ(run_ready(), 1);
  EXPECT_EQ(accept.runs, 1);
  EXPECT_FALSE(accept.error());
  EXPECT_EQ(accept.accepted.release(), 0);
  for (int round = 0; round < 2; ++round) {
    for (const int connection : {11, 12, 13}) complete(connection);
    for (const int connection : {11, 12, 13}) EXPECT_EQ(accept_queued(), connection);
  }
  EXPECT_EQ(counters_.accepts.value(), 7U);
  Accept next;
  EXPECT_FALSE(listener_->accept(context_, next)) << "the queue is empty";
  EXPECT_TRUE(recorded().empty()) << "the request is still armed";
  listener_->cancel(context_, accept);  // not pending
  EXPECT_EQ(next.state(), Operation::State::pending);
  complete(14, false);
  EXPECT_EQ(run_ready(), 1);
  EXPECT_EQ(next.accepted.release(), 14);
  EXPECT_EQ(listener_->in_flight, 0);
  EXPECT_TRUE(recorded().empty()) << "no operation waits";
}

TEST_F(UringListenerTest, QueuesAtMost64Connections) {
  ASSERT_NO_FATAL_FAILURE(arm());
  for (int connection = 100; connection < 110; ++connection) complete(connection);
  for (int connection = 100; connection < 105; ++connection) {
    EXPECT_EQ(accept_queued(), connection);
  }
  for (int connection = 110; connection < 168; ++connection) complete(connection);
  EXPECT_TRUE(recorded().empty()) << "63 connections wait";
  complete(168);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_ASYNC_CANCEL});
  complete(169);  // arrived before the cancellation
  EXPECT_TRUE(recorded().empty()) << "cancelled once";
  complete(-ECANCELED, false);
  EXPECT_TRUE(recorded().empty());
  for (int connection = 105; connection < 170; ++connection) {
    EXPECT_EQ(accept_queued(), connection);
  }
  ASSERT_NO_FATAL_FAILURE(arm());
  for (int connection = 1; connection < 64; ++connection) complete(connection);
  EXPECT_TRUE(recorded().empty());
  complete(64);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_ASYNC_CANCEL}) << "the limit holds again";
}

/// Returns the bytes in use. It is always 0 in a build that cannot count them.
std::size_t allocated_bytes() {
  return &__sanitizer_get_current_allocated_bytes == nullptr
             ? 0
             : __sanitizer_get_current_allocated_bytes();
}

TEST_F(UringListenerTest, AQueueThatIsNeverEmptyKeepsItsOrderAndItsMemory) {
  arm();
  int arrived = 0;
  int accepted = 0;
  const auto queue_and_accept = [&](int connections) {
    for (const int end = arrived + connections; arrived < end;) {
      complete(arrived++);
      ASSERT_EQ(accept_queued(), accepted++);
    }
  };
  complete(arrived++);
  queue_and_accept(200);
  const std::size_t before = allocated_bytes();
  queue_and_accept(20'000);
  EXPECT_EQ(allocated_bytes(), before);
  EXPECT_EQ(accept_queued(), accepted);
}

TEST_F(UringListenerTest, ArmsItsRequestAgainForAWaitingOperation) {
  Accept accept;
  EXPECT_FALSE(listener_->accept(context_, accept));
  for (const int error : {ECONNABORTED, EAGAIN, EPROTO, ECANCELED}) {
    EXPECT_EQ(recorded_operations(), Operations{IORING_OP_ACCEPT});
    complete(-error, false);
    EXPECT_EQ(listener_->in_flight, 1);
    EXPECT_EQ(accept.state(), Operation::State::pending);
  }
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_ACCEPT});
  complete(7, false);
  EXPECT_EQ(accept.accepted.release(), 7);
  EXPECT_EQ(counters_.accepts.value(), 1U);
  run_ready();
}

TEST_F(UringListenerTest, ReportsThatItIsBroken) {
  Accept accept;
  EXPECT_FALSE(listener_->accept(context_, accept));
  complete(-EBADF, false);
  EXPECT_EQ(accept.error(), system_error(EBADF));
  EXPECT_EQ(run_ready(), 1);
  EXPECT_EQ(counters_.accept_pauses.value(), 0U);
}

TEST_F(UringListenerTest, PausesForLongerWhileDescriptorsAreExhausted) {
  Accept accept;
  EXPECT_FALSE(listener_->accept(context_, accept));
  for (const Duration pause : {10ms, 20ms, 40ms}) {
    EXPECT_EQ(recorded_operations(), Operations{IORING_OP_ACCEPT});
    complete(-EMFILE, false);
    EXPECT_TRUE(recorded().empty()) << "it does not try again yet";
    EXPECT_TRUE(is_waiting());
    EXPECT_EQ(listener_->resume_at(), platform_.now() + pause);
    platform_.clock().move_to(listener_->resume_at());
    listener_->resume(context_);
    EXPECT_FALSE(is_waiting());
  }
  EXPECT_EQ(counters_.accept_pauses.value(), 3U);
  complete(5, false);
  EXPECT_EQ(accept.accepted.release(), 5);
  run_ready();
  recorded();
  Accept next;
  EXPECT_FALSE(listener_->accept(context_, next));
  complete(-ENOBUFS, false);
  EXPECT_EQ(listener_->resume_at(), platform_.now() + 10ms) << "a success ends the row";
  listener_->cancel(context_, next);
  run_ready();
  recorded();
  listener_->resume(context_);
  EXPECT_TRUE(recorded().empty()) << "no operation waits";
}

TEST_F(UringListenerTest, AnAcceptDuringThePauseWaits) {
  ASSERT_NO_FATAL_FAILURE(arm());
  complete(-EMFILE, false);
  Accept accept;
  EXPECT_FALSE(listener_->accept(context_, accept));
  EXPECT_TRUE(recorded().empty());
  listener_->resume(context_);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_ACCEPT});
  listener_->cancel(context_, accept);
  run_ready();
}

TEST_F(UringListenerTest, StopAcceptingEndsAPendingAccept) {
  Accept accept;
  EXPECT_FALSE(listener_->accept(context_, accept));
  recorded();
  listener_->stop_accepting(context_);
  listener_->stop_accepting(context_);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_ASYNC_CANCEL});
  EXPECT_EQ(accept.state(), Operation::State::pending) << "a connection may still arrive";
  complete(-ECANCELED, false);
  EXPECT_EQ(accept.error(), Errc::closed);
  EXPECT_EQ(run_ready(), 1);
  Accept late;
  EXPECT_TRUE(listener_->accept(context_, late));
  EXPECT_EQ(late.error(), Errc::closed);
  EXPECT_TRUE(recorded().empty());
}

TEST_F(UringListenerTest, StopAcceptingKeepsTheConnectionsTakenBefore) {
  ASSERT_NO_FATAL_FAILURE(arm());
  complete(21);
  listener_->stop_accepting(context_);
  complete(22);  // before the cancellation
  EXPECT_EQ(accept_queued(), 21);
  EXPECT_EQ(accept_queued(), 22);
  Accept waiting;
  EXPECT_FALSE(listener_->accept(context_, waiting)) << "the kernel may accept one more";
  complete(23);
  EXPECT_EQ(waiting.accepted.release(), 23);
  complete(-ECANCELED, false);
  Accept late;
  EXPECT_TRUE(listener_->accept(context_, late));
  EXPECT_EQ(late.error(), Errc::closed);
  run_ready();
}

TEST_F(UringListenerTest, StopAcceptingEndsAPause) {
  Accept accept;
  EXPECT_FALSE(listener_->accept(context_, accept));
  complete(-EMFILE, false);
  ASSERT_TRUE(is_waiting());
  recorded();
  listener_->stop_accepting(context_);
  EXPECT_FALSE(is_waiting());
  EXPECT_EQ(accept.error(), Errc::closed);
  EXPECT_EQ(run_ready(), 1);
  EXPECT_TRUE(recorded().empty()) << "nothing is armed";
}

TEST_F(UringListenerTest, AnExhaustedListenerThatStopsDoesNotPause) {
  Accept accept;
  EXPECT_FALSE(listener_->accept(context_, accept));
  listener_->stop_accepting(context_);
  complete(-EMFILE, false);
  EXPECT_FALSE(is_waiting());
  EXPECT_EQ(counters_.accept_pauses.value(), 0U);
  EXPECT_EQ(accept.error(), Errc::closed);
  run_ready();
}

TEST_F(UringListenerTest, ClosesTheConnectionsThatNoOperationTook) {
  ASSERT_NO_FATAL_FAILURE(arm());
  for (const int connection : {31, 32, 33}) complete(connection);
  EXPECT_EQ(accept_queued(), 31);
  listener_->stop(context_);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_ASYNC_CANCEL});
  EXPECT_EQ(platform_.closed, (std::vector<int>{32, 33}));
  listener_->closing = true;
  complete(0);
  complete(34);
  complete(-ECANCELED, false);
  EXPECT_EQ(platform_.closed, (std::vector<int>{32, 33, 0, 34}));
  EXPECT_EQ(listener_->in_flight, 0);
}

TEST_F(UringListenerTest, ClosingAPausedListenerEndsThePause) {
  ASSERT_NO_FATAL_FAILURE(arm());
  complete(-EMFILE, false);
  ASSERT_TRUE(is_waiting());
  listener_->stop(context_);
  EXPECT_FALSE(is_waiting());
  EXPECT_TRUE(recorded().empty());
}

TEST_F(UringListenerTest, CancelsTheRequestThatItHasArmed) {
  const std::vector<std::function<void()>> ways = {
      [&] { listener_->stop_accepting(context_); },
      [&] { listener_->stop(context_); },
      [&] {  // until its queue is full
        for (int connection = 1; connection <= 64; ++connection) complete(connection);
      },
  };
  for (const auto& cancel : ways) {
    listener_.emplace(3, false);
    context_.sockets.push_back(*listener_);
    Accept accept;
    EXPECT_FALSE(listener_->accept(context_, accept));
    const auto armed = recorded();
    ASSERT_EQ(armed.size(), 1U);
    listener_->cancel(context_, accept);
    EXPECT_EQ(run_ready(), 1);
    cancel();
    const auto cancellation = recorded();
    ASSERT_EQ(cancellation.size(), 1U);
    EXPECT_EQ(cancellation[0].opcode, IORING_OP_ASYNC_CANCEL);
    EXPECT_EQ(cancellation[0].addr, armed[0].user_data);
  }
}

TEST_F(UringListenerTest, KnowsIfItsSocketIsShared) {
  EXPECT_FALSE(listener_->shared());
  EXPECT_TRUE(Listener(4, true).shared());
  EXPECT_EQ(listener_->role, SocketRole::listener);
}

}  // namespace
}  // namespace weir::loop::uring::listener_test
