// Tests of the requests of a stream on io_uring, and of their errors. The tests complete its
// requests.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/loop/detail/uring/stream.hpp"
#include "weir/loop/test/uring_context.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir::loop::uring::stream_output_test {
namespace {

using Receive = Recorded<ReceiveOperation>;
using Send = Recorded<SendOperation>;
using Connect = Recorded<ConnectOperation>;
using Operations = std::vector<int>;

class UringRequestsTest : public UringContextTest {
 protected:
  void SetUp() override {
    UringContextTest::SetUp();
    auto ends = os::open_socket_pair().value();
    ours_ = std::move(ends.first);
    theirs_ = std::move(ends.second);
    stream_.emplace(ours_.get(), std::size_t{16} * 1024);
    context_.sockets.push_back(*stream_);
  }
  void complete(Tag tag, int result, std::uint32_t flags = 0) {
    stream_->completed(context_, {&*stream_, tag, result, flags});
  }
  /// Completes a receive with `size` bytes in buffer `id`.
  void arrive(std::uint16_t id, int size, bool more = false) {
    context_.buffers.replace_taken();
    complete(Tag::receive, size,
             IORING_CQE_F_BUFFER | std::uint32_t{id} << IORING_CQE_BUFFER_SHIFT |
                 (more ? IORING_CQE_F_MORE : 0U));
  }
  /// Starts a send of "hello" + " " + "world".
  void start_send() {
    send_.pieces = pieces_;
    send_.runs = 0;
    ASSERT_FALSE(stream_->send(context_, send_));
  }
  void expect_sent(std::error_code error, std::size_t bytes) {
    EXPECT_EQ(run_ready(), 1);
    EXPECT_EQ(send_.runs, 1);
    EXPECT_EQ(send_.error(), error);
    EXPECT_EQ(send_.sent, bytes);
  }
  std::error_code receive_now() {
    Receive receive;
    EXPECT_TRUE(stream_->receive(context_, receive));
    return receive.error();
  }

  os::Fd ours_;
  os::Fd theirs_;
  std::optional<Stream> stream_;
  const std::array<Bytes, 4> pieces_{to_bytes("hello"), Bytes(), to_bytes(" "), to_bytes("world")};
  Send send_;
};

TEST_F(UringRequestsTest, AnEmptySendFinishesImmediately) {
  Send empty;
  EXPECT_TRUE(stream_->send(context_, empty));
  const std::array<Bytes, 2> nothing{};
  empty.pieces = nothing;
  EXPECT_TRUE(stream_->send(context_, empty));
  EXPECT_FALSE(empty.error());
  EXPECT_TRUE(recorded().empty());
}

TEST_F(UringRequestsTest, LastSendWaitsForTheEndOfTheStream) {
  for (const std::size_t count : {1U, 4U}) {
    for (const bool last : {false, true}) {
      Send send;
      send.pieces = std::span(pieces_).first(count);
      send.last = last;
      ASSERT_FALSE(stream_->send(context_, send));
      const auto requests = recorded();
      ASSERT_EQ(requests.size(), 1U);
      EXPECT_EQ(requests[0].msg_flags,
                static_cast<unsigned>(MSG_NOSIGNAL | MSG_DONTWAIT | (last ? MSG_MORE : 0)));
      complete(Tag::send, count == 1 ? 5 : 11);
      EXPECT_EQ(run_ready(), 1);
      EXPECT_EQ(send.runs, 1);
    }
  }
}

TEST_F(UringRequestsTest, ASendContinuesAfterThePartThatWasTaken) {
  ASSERT_NO_FATAL_FAILURE(start_send());
  const auto bytes_of = [](const io_uring_sqe& entry) {
    const auto* const header = reinterpret_cast<const msghdr*>(entry.addr);
    std::string text;
    for (std::size_t i = 0; i < header->msg_iovlen; ++i) {
      const iovec& each = header->msg_iov[i];
      text.append(static_cast<const char*>(each.iov_base), each.iov_len);
    }
    return text;
  };
  auto requests = recorded();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].opcode, IORING_OP_SENDMSG);
  EXPECT_EQ(bytes_of(requests[0]), "hello world");
  complete(Tag::send, 2);
  EXPECT_EQ(send_.sent, 2U);
  requests = recorded();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(bytes_of(requests[0]), "llo world");
  complete(Tag::send, 4);
  requests = recorded();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].opcode, IORING_OP_SEND) << "a single piece is left";
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(requests[0].addr), requests[0].len), "world");
  complete(Tag::send, -EINTR);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_SEND}) << "it tries again";
  EXPECT_EQ(stream_->in_flight, 1);
  complete(Tag::send, 5);
  expect_sent({}, 11);
  EXPECT_EQ(counters_.bytes_sent.value(), 11U);
  EXPECT_EQ(stream_->in_flight, 0);
  EXPECT_TRUE(recorded().empty());
}

TEST_F(UringRequestsTest, ACancelledSendReportsThePartThatWasTaken) {
  for (const int taken : {0, 3}) {
    ASSERT_NO_FATAL_FAILURE(start_send());
    stream_->cancel(context_, send_);
    stream_->cancel(context_, send_);
    EXPECT_EQ(recorded_operations(), Operations{IORING_OP_SENDMSG}) << "it does not wait there";
    complete(Tag::send, taken == 0 ? -EAGAIN : taken);
    expect_sent(make_error_code(Errc::cancelled), static_cast<std::size_t>(taken));
    EXPECT_TRUE(recorded().empty());
  }
  ASSERT_NO_FATAL_FAILURE(start_send());
  stream_->cancel(context_, send_);
  complete(Tag::send, 11);
  expect_sent({}, 11);
  recorded();
  ASSERT_NO_FATAL_FAILURE(start_send());
  complete(Tag::send, -EINTR);
  EXPECT_EQ(recorded_operations(), (Operations{IORING_OP_SENDMSG, IORING_OP_SENDMSG}))
      << "an earlier cancellation has no effect";
  complete(Tag::send, 11);
  expect_sent({}, 11);
}

TEST_F(UringRequestsTest, ASendWithoutRoomWaitsForAPollThatStaysArmed) {
  ASSERT_NO_FATAL_FAILURE(start_send());
  recorded();
  complete(Tag::send, -EAGAIN);
  const auto requests = recorded();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].opcode, IORING_OP_POLL_ADD);
  EXPECT_EQ(requests[0].poll32_events, static_cast<std::uint32_t>(POLLOUT));
  for (const int events : {POLLRDHUP, POLLOUT}) {
    complete(Tag::sendable, events, IORING_CQE_F_MORE);
    EXPECT_EQ(recorded_operations(), Operations{IORING_OP_SENDMSG});
    complete(Tag::send, -EAGAIN);
    EXPECT_TRUE(recorded().empty()) << "the poll is armed";
  }
  complete(Tag::sendable, POLLOUT, IORING_CQE_F_MORE);
  recorded();
  complete(Tag::sendable, POLLOUT);
  EXPECT_TRUE(recorded().empty()) << "the send has not ended yet";
  complete(Tag::send, -EAGAIN);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_POLL_ADD}) << "the poll had ended";
  complete(Tag::sendable, POLLOUT, IORING_CQE_F_MORE);
  complete(Tag::send, 11);
  expect_sent({}, 11);
  recorded();
  complete(Tag::sendable, POLLOUT, IORING_CQE_F_MORE);
  stream_->stop(context_);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_ASYNC_CANCEL});
  complete(Tag::sendable, -ECANCELED);
  EXPECT_EQ(stream_->in_flight, 0);
}

TEST_F(UringRequestsTest, ASendThatWaitsForRoomIsCancelledImmediately) {
  ASSERT_NO_FATAL_FAILURE(start_send());
  complete(Tag::send, 3);
  complete(Tag::send, -EAGAIN);
  recorded();
  stream_->cancel(context_, send_);
  expect_sent(make_error_code(Errc::cancelled), 3);
  complete(Tag::sendable, POLLOUT, IORING_CQE_F_MORE);
  EXPECT_TRUE(recorded().empty());
}

TEST_F(UringRequestsTest, AFailedSendReportsAResetToReceives) {
  for (const int error : {ECONNRESET, ETIMEDOUT, EPIPE}) {
    stream_.reset();
    stream_.emplace(ours_.get(), std::size_t{16} * 1024);
    context_.sockets.push_back(*stream_);
    RecordedHangup observer;
    stream_->observe_hangup(context_, &observer);
    ASSERT_NO_FATAL_FAILURE(start_send());
    complete(Tag::send, -error);
    expect_sent(system_error(error), 0);
    EXPECT_EQ(observer.calls, 1);
    complete(Tag::receive, 0);  // the kernel reports an orderly end
    EXPECT_EQ(receive_now(), system_error(ECONNRESET));
    EXPECT_EQ(observer.calls, 1);
  }
}

TEST_F(UringRequestsTest, ASendAfterTheOwnEndFailsWithoutAReset) {
  RecordedHangup observer;
  stream_->observe_hangup(context_, &observer);
  ASSERT_TRUE(stream_->shut_down_sending(context_));
  EXPECT_EQ(counters_.system_calls.value(), 1U);
  ASSERT_NO_FATAL_FAILURE(start_send());
  complete(Tag::send, -EPIPE);
  expect_sent(system_error(EPIPE), 0);
  EXPECT_EQ(observer.calls, 0) << "the peer may still send";
  complete(Tag::receive, 0);
  EXPECT_EQ(receive_now(), Errc::end_of_stream);
}

TEST_F(UringRequestsTest, AnOrdinaryErrorOfASendIsNoReset) {
  RecordedHangup observer;
  stream_->observe_hangup(context_, &observer);
  ASSERT_NO_FATAL_FAILURE(start_send());
  complete(Tag::send, -ENOMEM);
  expect_sent(system_error(ENOMEM), 0);
  EXPECT_EQ(observer.calls, 0);
}

TEST_F(UringRequestsTest, AConnectFinishesWithItsResult) {
  Connect connect;
  connect.peer = os::Address::loopback(80);
  const auto start_connect = [&] {
    connect.runs = 0;
    EXPECT_FALSE(stream_->connect(context_, connect));
    EXPECT_EQ(recorded_operations(), Operations{IORING_OP_CONNECT});
  };
  start_connect();
  complete(Tag::connect, -EINTR);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_CONNECT}) << "it tries again";
  complete(Tag::connect, -ECONNREFUSED);
  EXPECT_EQ(run_ready(), 1);
  EXPECT_EQ(connect.error(), system_error(ECONNREFUSED));
  for (const int error : {ECANCELED, EINTR}) {
    start_connect();
    stream_->cancel(context_, connect);
    EXPECT_EQ(recorded_operations(), Operations{IORING_OP_ASYNC_CANCEL});
    complete(Tag::connect, -error);
    EXPECT_EQ(run_ready(), 1);
    EXPECT_EQ(connect.error(), Errc::cancelled);
  }
  start_connect();
  stream_->cancel(context_, connect);
  recorded();
  complete(Tag::connect, 0);
  EXPECT_EQ(run_ready(), 1);
  EXPECT_FALSE(connect.error()) << "a completion beats a cancellation";
  start_connect();
  complete(Tag::connect, -EINTR);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_CONNECT});
  complete(Tag::connect, 0);
  EXPECT_EQ(run_ready(), 1);
  EXPECT_EQ(stream_->in_flight, 0);
}

TEST_F(UringRequestsTest, ReceivesAfterAConnectAlthoughAnEarlierReceiveFailed) {
  RecordedHangup observer;
  stream_->observe_hangup(context_, &observer);
  recorded();
  complete(Tag::receive, -ENOTCONN);
  EXPECT_EQ(receive_now(), system_error(ENOTCONN));
  EXPECT_EQ(observer.calls, 0) << "an unconnected stream is not dead";
  Connect connect;
  connect.peer = os::Address::loopback(80);
  EXPECT_FALSE(stream_->connect(context_, connect));
  recorded();
  complete(Tag::connect, 0);
  EXPECT_EQ(run_ready(), 1);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_RECV});
  Receive receive;
  EXPECT_FALSE(stream_->receive(context_, receive));
  arrive(0, 3);
  EXPECT_EQ(run_ready(), 1);
  EXPECT_EQ(receive.buffer.size(), 3U);
}

TEST_F(UringRequestsTest, AReceiveTriesAgainAfterAnInterruption) {
  Receive receive;
  EXPECT_FALSE(stream_->receive(context_, receive));
  for (const int error : {EINTR, EAGAIN, ECANCELED}) {
    EXPECT_EQ(recorded_operations(), Operations{IORING_OP_RECV});
    complete(Tag::receive, -error);
    EXPECT_EQ(receive.state(), Operation::State::pending);
  }
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_RECV});
  complete(Tag::receive, 0);
  EXPECT_EQ(run_ready(), 1);
  EXPECT_EQ(receive.error(), Errc::end_of_stream);
  EXPECT_EQ(receive_now(), Errc::end_of_stream);
  EXPECT_TRUE(recorded().empty());
}

TEST_F(UringRequestsTest, AnErrorEndsEveryReceiveAndIsAHangup) {
  RecordedHangup observer;
  Receive receive;
  EXPECT_FALSE(stream_->receive(context_, receive));
  stream_->observe_hangup(context_, &observer);
  complete(Tag::receive, -ECONNRESET);
  EXPECT_EQ(run_ready(), 1);
  EXPECT_EQ(receive.error(), system_error(ECONNRESET));
  EXPECT_EQ(observer.calls, 1);
  EXPECT_EQ(receive_now(), system_error(ECONNRESET));
  RecordedHangup late;
  stream_->observe_hangup(context_, &late);
  EXPECT_EQ(late.calls, 1) << "the stream is known to be dead";
}

TEST_F(UringRequestsTest, OnlyTheFirstTwoReceivesAreForASingleArrival) {
  context_.features.limited_multishot = true;
  for (int round = 0; round < 4; ++round) {
    Receive receive;
    EXPECT_FALSE(stream_->receive(context_, receive));
    const auto requests = recorded();
    if (round < 3) {
      ASSERT_EQ(requests.size(), 1U);
      EXPECT_EQ(requests[0].opcode, IORING_OP_RECV);
      EXPECT_EQ((requests[0].ioprio & IORING_RECV_MULTISHOT) != 0, round == 2);
      EXPECT_EQ(requests[0].file_index, round == 2 ? 16'384U : 0U) << "the limit of unread bytes";
    } else {
      EXPECT_TRUE(requests.empty()) << "it is still armed";
    }
    arrive(static_cast<std::uint16_t>(round), 5, round > 1);
    EXPECT_EQ(run_ready(), 1);
    EXPECT_EQ(receive.buffer.size(), 5U);
  }
  EXPECT_EQ(counters_.bytes_received.value(), 20U);
  EXPECT_EQ(stream_->in_flight, 1);
}

TEST_F(UringRequestsTest, AKernelWithoutLimitedReceivesIsAskedOnce) {
  context_.features.limited_multishot = true;
  for (std::uint16_t id = 0; id < 2; ++id) {
    Receive single;
    EXPECT_FALSE(stream_->receive(context_, single));
    arrive(id, 5);
    run_ready();
  }
  recorded();
  Receive third;
  EXPECT_FALSE(stream_->receive(context_, third));
  EXPECT_NE(recorded().at(0).ioprio & IORING_RECV_MULTISHOT, 0U);
  complete(Tag::receive, -EINVAL);
  EXPECT_FALSE(context_.features.limited_multishot);
  const auto requests = recorded();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].ioprio & IORING_RECV_MULTISHOT, 0U);
  complete(Tag::receive, -EINVAL);
  EXPECT_EQ(run_ready(), 1);
  EXPECT_EQ(third.error(), system_error(EINVAL)) << "of an ordinary receive";
}

TEST_F(UringRequestsTest, AStreamWithoutABufferWaitsForOne) {
  Receive receive;
  EXPECT_FALSE(stream_->receive(context_, receive));
  recorded();
  complete(Tag::receive, -ENOBUFS);
  EXPECT_TRUE(recorded().empty());
  EXPECT_EQ(context_.waiting_for_buffer.front(), &*stream_);
  EXPECT_EQ(receive.state(), Operation::State::pending);
  stream_->cancel(context_, receive);
  run_ready();
  Receive next;
  EXPECT_FALSE(stream_->receive(context_, next));
  EXPECT_TRUE(recorded().empty()) << "it still waits for a buffer";
  stream_->resume(context_);
  EXPECT_EQ(context_.waiting_for_buffer.front(), nullptr);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_RECV});
  arrive(0, 4);
  EXPECT_EQ(run_ready(), 1);
  EXPECT_EQ(next.buffer.size(), 4U);
}

TEST_F(UringRequestsTest, AStreamWaitsIfThereIsNoMemoryForAnyBuffer) {
  Receive receive;
  pool_.fail_after(0);
  EXPECT_FALSE(stream_->receive(context_, receive));
  EXPECT_TRUE(recorded().empty());
  EXPECT_EQ(context_.waiting.front(), &*stream_);
  EXPECT_EQ(receive.state(), Operation::State::pending);
  EXPECT_EQ(stream_->in_flight, 0);
  stream_->resume(context_);
  EXPECT_EQ(context_.waiting.front(), nullptr);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_RECV});
  arrive(0, 3);
  EXPECT_EQ(run_ready(), 1);
  EXPECT_EQ(receive.buffer.size(), 3U);
}

TEST_F(UringRequestsTest, ReadingAheadPausesAndResumesAtHalfOfTheLimit) {
  RecordedHangup observer;
  stream_->observe_hangup(context_, &observer);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_RECV});
  arrive(0, 16'000);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_POLL_ADD}) << "only hang-ups are watched";
  Receive receive;
  EXPECT_TRUE(stream_->receive(context_, receive));
  EXPECT_EQ(receive.buffer.size(), 16'000U);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_RECV});
  EXPECT_EQ(observer.calls, 0);
  complete(Tag::hangup, POLLHUP | POLLRDHUP);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_ASYNC_CANCEL})
      << "the receive may have missed the end";
  EXPECT_EQ(observer.calls, 1);
}

TEST_F(UringRequestsTest, ACheckForAHangupWatchesOnlyAnArmedReceive) {
  context_.features.limited_multishot = true;
  for (const bool ends : {false, true}) {
    SCOPED_TRACE(ends);
    stream_.emplace(ours_.get(), std::size_t{16} * 1024);
    context_.sockets.push_back(*stream_);
    for (std::uint16_t id = 0; id < 3; ++id) {
      Receive receive;
      EXPECT_FALSE(stream_->receive(context_, receive));
      arrive(id, 5, id == 2);
      EXPECT_EQ(run_ready(), 1);
    }
    EXPECT_EQ(context_.hangup_unconfirmed.front(), &*stream_);
    if (ends) complete(Tag::receive, 0);
    recorded();
    stream_->check_hangup(context_);
    EXPECT_EQ(context_.hangup_unconfirmed.front(), nullptr);
    EXPECT_EQ(recorded_operations(), ends ? Operations{} : Operations{IORING_OP_POLL_ADD});
  }
}

class LimitedReceiveTest : public UringRequestsTest {
 protected:
  /// Returns the limit of the receive that reads ahead after 16,000 bytes have arrived.
  std::size_t limit_after_16000(std::size_t unread_max) {
    context_.features.limited_multishot = true;
    stream_.emplace(ours_.get(), unread_max);
    context_.sockets.push_back(*stream_);
    Receive first;
    EXPECT_FALSE(stream_->receive(context_, first));
    arrive(0, 5);
    run_ready();
    recorded();
    RecordedHangup observer;
    stream_->observe_hangup(context_, &observer);
    EXPECT_EQ(recorded_operations(), Operations{IORING_OP_RECV});
    arrive(1, 16'000);
    const auto requests = recorded();
    stream_->observe_hangup(context_, nullptr);
    EXPECT_EQ(requests.size(), 1U);
    if (requests.size() != 1) return 0;
    EXPECT_EQ(requests[0].opcode, IORING_OP_RECV) << "it reads ahead";
    return requests[0].file_index;
  }
};

TEST_F(LimitedReceiveTest, MayOnlyFillTheRestOfTheUnreadBytes) {
  const std::size_t limit = limit_after_16000(100'000);
  EXPECT_LE(limit, 84'000U);
  EXPECT_GE(limit, 50'000U);
}

// A field of 32 bits holds the limit.
TEST_F(LimitedReceiveTest, AVeryLargeLimitOfUnreadBytesStaysLarge) {
  constexpr std::size_t four_gib = std::size_t{4} * 1024 * 1024 * 1024;
  for (const std::size_t unread_max : {four_gib - 1, four_gib, four_gib + 1}) {
    EXPECT_GE(limit_after_16000(unread_max), 1'000'000'000U) << unread_max;
  }
}

TEST_F(UringRequestsTest, AnEndThatAPollReportsIsNoHangup) {
  RecordedHangup observer;
  stream_->observe_hangup(context_, &observer);
  arrive(0, 16'000);
  Receive receive;
  EXPECT_TRUE(stream_->receive(context_, receive));
  recorded();
  complete(Tag::hangup, POLLRDHUP, IORING_CQE_F_MORE);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_ASYNC_CANCEL});
  EXPECT_EQ(observer.calls, 0);
  complete(Tag::receive, -ECANCELED);
  EXPECT_EQ(recorded_operations(), Operations{IORING_OP_RECV}) << "it then sees the end";
  complete(Tag::receive, 0);
  EXPECT_EQ(receive_now(), Errc::end_of_stream);
  EXPECT_EQ(observer.calls, 0);
}

TEST_F(UringRequestsTest, ALongArrivalForAShortTargetIsQueued) {
  std::array<std::byte, 10> room{};
  Receive receive;
  receive.target = room;
  EXPECT_FALSE(stream_->receive(context_, receive));
  arrive(0, 25);
  EXPECT_EQ(run_ready(), 1);
  EXPECT_EQ(receive.count, 10U);
  Receive next;
  EXPECT_TRUE(stream_->receive(context_, next));
  EXPECT_EQ(next.buffer.size(), 15U);
  Receive exact;
  exact.target = room;
  EXPECT_FALSE(stream_->receive(context_, exact));
  arrive(1, 10);
  EXPECT_EQ(run_ready(), 1);
  EXPECT_EQ(exact.count, 10U);
  Receive none;
  EXPECT_FALSE(stream_->receive(context_, none)) << "nothing is left";
  stream_->cancel(context_, none);
  run_ready();
}

TEST_F(UringRequestsTest, ClosingCancelsWhatIsArmed) {
  RecordedHangup observer;
  stream_->observe_hangup(context_, &observer);
  arrive(0, 16'000);
  Receive receive;
  EXPECT_TRUE(stream_->receive(context_, receive));
  recorded();
  stream_->stop(context_);
  EXPECT_EQ(recorded_operations(), (Operations{IORING_OP_ASYNC_CANCEL, IORING_OP_ASYNC_CANCEL}));
  stream_->closing = true;
  complete(Tag::hangup, -ECANCELED);
  arrive(1, 5);
  EXPECT_EQ(observer.calls, 0);
  EXPECT_EQ(stream_->in_flight, 0);
  EXPECT_TRUE(recorded().empty());
}

TEST_F(UringRequestsTest, CancellationsOfInputNameTheArmedRequests) {
  RecordedHangup observer;
  stream_->observe_hangup(context_, &observer);
  arrive(0, 16'000);
  Receive receive;
  EXPECT_TRUE(stream_->receive(context_, receive));
  std::uint64_t receiving = 0;
  std::uint64_t watching = 0;
  for (const io_uring_sqe& each : recorded()) {
    (each.opcode == IORING_OP_POLL_ADD ? watching : receiving) = each.user_data;
  }
  ASSERT_TRUE(receiving != 0 && watching != 0);
  complete(Tag::hangup, POLLRDHUP, IORING_CQE_F_MORE);
  const auto missed_end = recorded();
  ASSERT_EQ(missed_end.size(), 1U);
  EXPECT_EQ(missed_end[0].addr, receiving);
  stream_->stop(context_);
  const auto stopped = recorded();
  ASSERT_EQ(stopped.size(), 2U);
  EXPECT_EQ(stopped[0].addr, receiving);
  EXPECT_EQ(stopped[1].addr, watching);
}

TEST_F(UringRequestsTest, ACancellationOfAConnectNamesItsRequestAndIsMadeOnce) {
  Connect connect;
  connect.peer = os::Address::loopback(80);
  EXPECT_FALSE(stream_->connect(context_, connect));
  const auto started = recorded();
  ASSERT_EQ(started.size(), 1U);
  for (int times = 0; times < 2; ++times) stream_->cancel(context_, connect);
  const auto cancelled = recorded();
  ASSERT_EQ(cancelled.size(), 1U);
  EXPECT_EQ(cancelled[0].opcode, IORING_OP_ASYNC_CANCEL);
  EXPECT_EQ(cancelled[0].addr, started[0].user_data);
  complete(Tag::connect, -ECANCELED);
  EXPECT_EQ(run_ready(), 1);
  EXPECT_EQ(connect.error(), Errc::cancelled);
}

// Lost bytes must not look like a complete stream.
TEST_F(UringRequestsTest, AnArrivalThatFindsNoMemoryEndsTheStream) {
  for (const int size : {100, 16'000}) {
    SCOPED_TRACE(size);
    stream_.emplace(ours_.get(), std::size_t{64} * 1024);
    context_.sockets.push_back(*stream_);
    RecordedHangup observer;
    stream_->observe_hangup(context_, &observer);
    const std::size_t buffers = context_.buffers.available();
    recorded();
    pool_.fail_after(0);
    arrive(0, size);
    EXPECT_FALSE(pool_.will_fail());
    EXPECT_TRUE(recorded().empty()) << "it receives no more";
    EXPECT_EQ(observer.calls, 1);
    EXPECT_EQ(receive_now(), system_error(ENOMEM));
    EXPECT_EQ(receive_now(), system_error(ENOMEM));
    EXPECT_EQ(context_.buffers.available(), buffers);
  }
}

class UringBuffersTest : public UringContextTest {};

TEST_F(UringBuffersTest, AddsMissingBuffersWhenThereIsMemoryAgain) {
  Buffers& buffers = context_.buffers;
  pool_.fail_after(0);
  EXPECT_FALSE(buffers.fill()) << "the kernel has none";
  EXPECT_EQ(buffers.available(), 0U);
  pool_.fail_after(1);
  EXPECT_TRUE(buffers.fill()) << "one is enough";
  EXPECT_EQ(buffers.available(), 1U);
  EXPECT_TRUE(buffers.fill());
  EXPECT_EQ(buffers.available(), 256U);
  pool_.fail_after(0);
  const Buffer taken = buffers.take(7, 5);
  EXPECT_EQ(taken.size(), 5U) << "the bytes arrive in any case";
  buffers.replace_taken();
  EXPECT_EQ(buffers.available(), 255U);
  EXPECT_TRUE(buffers.fill());
  EXPECT_EQ(buffers.available(), 256U);
  EXPECT_NE(buffers.peek(7, 5).data(), taken.data());
  EXPECT_EQ(pool_.blocks_in_use(BlockUse::buffer), 257U);
}

TEST_F(UringBuffersTest, ReplacesBuffersByTheMemoryThatHandlersReturned) {
  Buffers& buffers = context_.buffers;
  pool_.set_cache_limit(BlockPool::cached_bytes_max);
  EXPECT_TRUE(buffers.fill());
  EXPECT_EQ(pool_.cached_bytes(), 0U);
  for (std::uint16_t id = 0; id < 256; ++id) buffers.take(id, 5);
  EXPECT_EQ(pool_.blocks_in_use(), 0U);
  EXPECT_GE(pool_.cached_bytes(), 256U * Buffer::default_capacity);
  buffers.replace_taken();
  EXPECT_EQ(buffers.available(), 256U);
  EXPECT_EQ(pool_.blocks_in_use(), 256U);
  EXPECT_EQ(pool_.cached_bytes(), 0U) << "all memory is used again, and no more";
}

TEST_F(UringBuffersTest, ReplacesEachBufferThatLeavesWithData) {
  Buffers& buffers = context_.buffers;
  EXPECT_EQ(buffers.available(), 0U);
  EXPECT_TRUE(buffers.fill());
  EXPECT_EQ(buffers.available(), 256U);
  EXPECT_TRUE(buffers.fill());
  const std::byte* const data = buffers.peek(7, 5).data();
  EXPECT_EQ(buffers.peek(7, 5).size(), 5U);
  buffers.give_back(7);
  EXPECT_EQ(buffers.peek(7, 5).data(), data);
  const Buffer taken = buffers.take(7, 5);
  EXPECT_EQ(taken.size(), 5U);
  EXPECT_EQ(taken.data(), data);
  EXPECT_EQ(buffers.available(), 256U);
  EXPECT_EQ(pool_.blocks_in_use(), 256U);
  buffers.replace_taken();
  EXPECT_NE(buffers.peek(7, 5).data(), data);
  EXPECT_EQ(buffers.available(), 256U);
  EXPECT_EQ(pool_.blocks_in_use(), 257U);
}

}  // namespace
}  // namespace weir::loop::uring::stream_output_test
