// Tests of a datagram socket on io_uring. The tests complete its polls, also those that report
// nothing.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/loop/detail/uring/requests.hpp"
#include "weir/loop/test/uring_context.hpp"
#include "weir/os/detail/io/fd.hpp"

namespace weir::loop::uring::datagrams_test {
namespace {

using Operations = std::vector<int>;

/// A receive of one datagram.
struct Receive : Recorded<ReceiveDatagramsOperation> {
  Receive() {
    target = {&slot, 1};
    bytes_max = 100;
  }
  std::string text() const { return std::string(slot.buffer.text()); }
  Datagram slot;
};

/// A send of one datagram.
struct Send : Recorded<SendDatagramsOperation> {
  explicit Send(std::string_view text) : datagram{to_bytes(text), {}} {
    datagrams = {&datagram, 1};
  }
  OutgoingDatagram datagram;
};

class UringDatagramsTest : public UringContextTest {
 protected:
  void SetUp() override {
    UringContextTest::SetUp();
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    ours_ = os::Fd(ends[0]);
    theirs_ = os::Fd(ends[1]);
    socket_.emplace(ours_.get());
    context_.sockets.push_back(*socket_);
  }
  /// Reports that the poll has ended, for whatever reason.
  void complete(Tag tag) { socket_->completed(context_, {&*socket_, tag, POLLERR, 0}); }
  void peer_sends(std::string_view text) {
    ASSERT_EQ(::send(theirs_.get(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
  }
  /// Reads all datagrams of the peer. Returns the last one.
  std::string peer_reads_all() {
    std::string last;
    std::array<char, 100> room{};
    for (ssize_t size = 0; size >= 0; size = ::recv(theirs_.get(), room.data(), room.size(), 0)) {
      last.assign(room.data(), static_cast<std::size_t>(size));
    }
    return last;
  }
  void fill_the_peer() {
    while (::send(ours_.get(), "x", 1, 0) == 1) {
    }
  }
  /// Starts an operation that waits, and cancels it.
  template <class Op>
  void start_and_cancel(Op& operation) {
    EXPECT_FALSE(start(operation));
    socket_->cancel(context_, operation);
    EXPECT_EQ(run_ready(), 1);
    EXPECT_EQ(operation.error(), Errc::cancelled);
  }
  bool start(Receive& receive) { return socket_->receive(context_, receive); }
  bool start(Send& send) { return socket_->send(context_, send); }

  os::Fd ours_;
  os::Fd theirs_;
  std::optional<Datagrams> socket_;
};

TEST_F(UringDatagramsTest, PollsOnceForEachOperationThatWaits) {
  Receive receive;
  EXPECT_FALSE(start(receive));
  const auto receiving = recorded();
  ASSERT_EQ(receiving.size(), 1U);
  EXPECT_EQ(receiving[0].opcode, IORING_OP_POLL_ADD);
  EXPECT_EQ(receiving[0].fd, ours_.get());
  EXPECT_EQ(receiving[0].poll32_events, static_cast<unsigned>(POLLIN));
  EXPECT_EQ(receiving[0].len, 0U) << "it is reported once";
  fill_the_peer();
  Send send("text");
  EXPECT_FALSE(start(send));
  const auto sending = recorded();
  ASSERT_EQ(sending.size(), 1U);
  EXPECT_EQ(sending[0].opcode, IORING_OP_POLL_ADD);
  EXPECT_EQ(sending[0].poll32_events, static_cast<unsigned>(POLLOUT));
  EXPECT_EQ(socket_->in_flight, 2);
  peer_reads_all();
  complete(Tag::send);
  EXPECT_EQ(send.sent, 1U);
  EXPECT_EQ(receive.state(), Operation::State::pending);
  peer_sends("answer");
  complete(Tag::receive);
  EXPECT_EQ(receive.text(), "answer");
  EXPECT_EQ(run_ready(), 2);
  EXPECT_EQ(peer_reads_all(), "text");
  EXPECT_TRUE(recorded().empty());
  EXPECT_EQ(socket_->in_flight, 0);
}

// A datagram with a wrong checksum wakes a poll, and the call then finds nothing.
TEST_F(UringDatagramsTest, AReportWithoutADatagramKeepsTheReceiveWaiting) {
  Receive receive;
  EXPECT_FALSE(start(receive));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(recorded_operations(), Operations{IORING_OP_POLL_ADD});
    complete(Tag::receive);
    EXPECT_EQ(receive.state(), Operation::State::pending);
    EXPECT_EQ(socket_->in_flight, 1);
  }
  recorded();
  peer_sends("hello");
  complete(Tag::receive);
  EXPECT_EQ(run_ready(), 1);
  EXPECT_EQ(receive.text(), "hello");
  EXPECT_TRUE(recorded().empty());
}

TEST_F(UringDatagramsTest, AReportWithoutRoomKeepsTheSendWaiting) {
  fill_the_peer();
  Send send("last");
  EXPECT_FALSE(start(send));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(recorded_operations(), Operations{IORING_OP_POLL_ADD});
    complete(Tag::send);
    EXPECT_EQ(send.state(), Operation::State::pending);
    EXPECT_EQ(socket_->in_flight, 1);
  }
  recorded();
  peer_reads_all();
  complete(Tag::send);
  EXPECT_EQ(run_ready(), 1);
  EXPECT_FALSE(send.error());
  EXPECT_EQ(peer_reads_all(), "last");
  EXPECT_TRUE(recorded().empty());
}

TEST_F(UringDatagramsTest, ThePollOfACancelledOperationServesTheNext) {
  fill_the_peer();
  Receive cancelled_receive;
  Send cancelled_send("never");
  start_and_cancel(cancelled_receive);
  start_and_cancel(cancelled_send);
  EXPECT_EQ(recorded_operations(), (Operations{IORING_OP_POLL_ADD, IORING_OP_POLL_ADD}));
  Receive receive;
  Send send("text");
  EXPECT_FALSE(start(receive));
  EXPECT_FALSE(start(send));
  EXPECT_TRUE(recorded().empty()) << "both polls are still armed";
  socket_->cancel(context_, cancelled_receive);
  EXPECT_EQ(receive.state(), Operation::State::pending) << "the other one is not pending";
  peer_reads_all();
  peer_sends("hello");
  complete(Tag::receive);
  complete(Tag::send);
  EXPECT_EQ(run_ready(), 2);
  EXPECT_EQ(receive.text(), "hello");
  EXPECT_EQ(peer_reads_all(), "text");
}

TEST_F(UringDatagramsTest, AReportForNoOperationLetsTheNextOneTryImmediately) {
  fill_the_peer();
  Receive cancelled_receive;
  Send cancelled_send("never");
  start_and_cancel(cancelled_receive);
  start_and_cancel(cancelled_send);
  recorded();
  peer_reads_all();
  peer_sends("early");
  complete(Tag::receive);
  complete(Tag::send);
  EXPECT_EQ(socket_->in_flight, 0);
  Receive receive;
  Send send("text");
  EXPECT_TRUE(start(receive));
  EXPECT_TRUE(start(send));
  EXPECT_EQ(receive.text(), "early");
  EXPECT_EQ(peer_reads_all(), "text");
  EXPECT_TRUE(recorded().empty());
  EXPECT_EQ(run_ready(), 0) << "an operation that finishes immediately is not queued";
}

TEST_F(UringDatagramsTest, ClosingCancelsTheArmedPollsAndServesNothing) {
  socket_->stop(context_);
  EXPECT_TRUE(recorded().empty()) << "nothing is armed";
  fill_the_peer();
  Receive receive;
  Send send("never");
  start_and_cancel(receive);
  start_and_cancel(send);
  const auto polls = recorded();
  ASSERT_EQ(polls.size(), 2U);
  socket_->stop(context_);
  const auto cancellations = recorded();
  ASSERT_EQ(cancellations.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(cancellations[i].opcode, IORING_OP_ASYNC_CANCEL);
    EXPECT_EQ(cancellations[i].addr, polls[i].user_data);
  }
  socket_->closing = true;
  complete(Tag::receive);
  complete(Tag::send);
  EXPECT_EQ(socket_->in_flight, 0);
  EXPECT_TRUE(recorded().empty());
  EXPECT_EQ(run_ready(), 0);
}

}  // namespace
}  // namespace weir::loop::uring::datagrams_test
