// Tests of the epoll backend: the number of its system calls, edges, wake-ups, precision.
#include "weir/loop/detail/readiness/backends.hpp"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

#include "weir/loop/test/readiness_fixture.hpp"
#include "weir/os/detail/io/datagram_socket.hpp"
#include "weir/os/test/denied_call.hpp"

namespace weir::loop::epoll_test {
namespace {

class EpollTest : public testing::Test {
 protected:
  std::uint64_t system_calls() { return fixture_.backend().counters().system_calls.value(); }

  void answer_once(ReadinessFixture::Pair& pair) {
    Recorded<ReceiveOperation> receive;
    ASSERT_FALSE(fixture_.backend().receive(*pair.ours, receive));
    ASSERT_EQ(::send(pair.theirs.get(), "ping", 4, 0), 4);
    fixture_.finish(receive);
    ASSERT_EQ(receive.buffer.text(), "ping");
    Recorded<SendOperation> send;
    const std::array<Bytes, 1> pieces{receive.buffer};
    send.pieces = pieces;
    ASSERT_TRUE(fixture_.backend().send(*pair.ours, send));
    std::array<char, 8> answer{};
    ASSERT_EQ(::recv(pair.theirs.get(), answer.data(), answer.size(), 0), 4);
  }

  ReadinessFixture fixture_{BackendChoice::epoll};
};

TEST_F(EpollTest, ARequestCostsOneReceiveOneSendAndOneWait) {
  auto pair = fixture_.connect_tcp();
  Recorded<ReceiveOperation> first;  // a new socket is tried immediately
  ASSERT_FALSE(fixture_.backend().receive(*pair.ours, first));
  fixture_.backend().cancel(first);
  fixture_.turn(Duration(0));
  ASSERT_NO_FATAL_FAILURE(answer_once(pair));
  const std::uint64_t before = system_calls();
  for (int round = 0; round < 100; ++round) ASSERT_NO_FATAL_FAILURE(answer_once(pair));
  EXPECT_EQ(system_calls() - before, 300u);
  fixture_.backend().close(*pair.ours);
}

TEST_F(EpollTest, ManyReadyConnectionsShareOneWait) {
  constexpr std::size_t count = 100;
  std::array<ReadinessFixture::Pair, count> pairs;
  std::array<Recorded<ReceiveOperation>, count> receives;
  for (auto& pair : pairs) pair = fixture_.connect_tcp();
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_FALSE(fixture_.backend().receive(*pairs[i].ours, receives[i]));
  }
  fixture_.turn(Duration(0));
  for (auto& pair : pairs) ASSERT_EQ(::send(pair.theirs.get(), "x", 1, 0), 1);
  const std::uint64_t before = system_calls();
  fixture_.turn();
  EXPECT_EQ(system_calls() - before, count + 1);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(receives[i].runs, 1);
    fixture_.backend().close(*pairs[i].ours);
  }
}

TEST_F(EpollTest, APendingReceiveHoldsNoBuffer) {
  auto pair = fixture_.connect_tcp();
  Recorded<ReceiveOperation> receive;
  ASSERT_FALSE(fixture_.backend().receive(*pair.ours, receive));
  EXPECT_EQ(fixture_.pool().blocks_in_use(), 0u);
  fixture_.backend().cancel(receive);
  fixture_.backend().close(*pair.ours);
}

// A short read stops at TCP's urgent mark although more bytes have arrived, and no further edge
// comes.
TEST_F(EpollTest, UrgentDataDoesNotHideLaterBytes) {
  auto pair = fixture_.connect_tcp();
  Recorded<ReceiveOperation> first;
  ASSERT_FALSE(fixture_.backend().receive(*pair.ours, first));
  ASSERT_EQ(::send(pair.theirs.get(), "ab!", 3, MSG_OOB), 3);
  ASSERT_EQ(::send(pair.theirs.get(), "cd", 2, 0), 2);
  std::string all;
  fixture_.finish(first);
  all += first.buffer.text();
  while (all.size() < 4) {
    Recorded<ReceiveOperation> next;
    if (!fixture_.backend().receive(*pair.ours, next)) {
      fixture_.turn(std::chrono::seconds(2));
      ASSERT_EQ(next.runs, 1) << "stalled behind \"" << all << '"';
    }
    all += next.buffer.text();
  }
  EXPECT_EQ(all, "abcd");
  fixture_.backend().close(*pair.ours);
}

// The kernel keeps reporting a closed descriptor while a forked child holds it open.
TEST_F(EpollTest, ReportsOfAClosedSocketDoNotReachItsSuccessor) {
  auto old = fixture_.connect_tcp();
  RecordedHangup gone;
  // The kernel reports the socket from here on.
  fixture_.backend().observe_hangup(*old.ours, &gone);
  fixture_.turn(Duration(0));
  auto held = os::duplicate(old.ours->descriptor);
  ASSERT_TRUE(held.has_value());
  Socket* const memory = old.ours;
  fixture_.backend().close(*old.ours);
  auto pair = fixture_.connect_tcp();
  ASSERT_EQ(pair.ours, memory) << "the test needs the successor in the same memory";
  RecordedHangup hangup;
  fixture_.backend().observe_hangup(*pair.ours, &hangup);
  fixture_.turn(Duration(0));
  ASSERT_TRUE(os::set_linger(old.theirs.get(), std::chrono::seconds(0)).has_value());
  old.theirs.close();  // a reset
  const Instant before = fixture_.platform().now();
  fixture_.turn();
  EXPECT_LT(fixture_.platform().now() - before, std::chrono::seconds(9))
      << "the test needs the report";
  EXPECT_EQ(gone.calls + hangup.calls, 0);
  fixture_.backend().close(*pair.ours);
}

// A UDP socket reports room whenever a peer has read a datagram.
TEST_F(EpollTest, SentDatagramsDoNotWakeTheLoop) {
  auto ours = os::open_datagram_socket({.local = os::Address::loopback(0)});
  auto theirs = os::open_datagram_socket({.peer = os::local_address(ours->get()).value()});
  Socket* const socket = fixture_.adopt(std::move(*ours), SocketRole::datagrams);
  Recorded<ReceiveDatagramsOperation> receive;
  Datagram arrived;
  receive.target = {&arrived, 1};
  ASSERT_FALSE(fixture_.backend().receive_datagrams(*socket, receive));
  fixture_.turn(Duration(0));
  const OutgoingDatagram question{to_bytes("?"), os::local_address(theirs->get()).value()};
  Recorded<SendDatagramsOperation> send;
  send.datagrams = {&question, 1};
  ASSERT_TRUE(fixture_.backend().send_datagrams(*socket, send));
  std::array<char, 8> room{};
  ASSERT_EQ(::recv(theirs->get(), room.data(), room.size(), 0), 1);
  const Instant before = fixture_.platform().now();
  fixture_.turn(std::chrono::milliseconds(5));
  EXPECT_GE(fixture_.platform().now() - before, std::chrono::milliseconds(5));
  EXPECT_EQ(receive.runs, 0);
  ASSERT_EQ(::send(theirs->get(), "!", 1, 0), 1);
  fixture_.finish(receive);
  fixture_.backend().close(*socket);
}

TEST_F(EpollTest, WakeUpsAreNotLostAndNotRepeated) {
  fixture_.backend().wake();
  fixture_.backend().wake();
  const Instant start = fixture_.platform().now();
  fixture_.turn();
  EXPECT_LT(fixture_.platform().now() - start, std::chrono::seconds(5));
  const Instant before = fixture_.platform().now();
  fixture_.turn(std::chrono::milliseconds(5));
  EXPECT_GE(fixture_.platform().now() - before, std::chrono::milliseconds(5));
  std::thread other([this] { fixture_.backend().wake(); });
  fixture_.turn();
  EXPECT_LT(fixture_.platform().now() - before, std::chrono::seconds(5));
  other.join();
}

TEST_F(EpollTest, WaitsWithMicrosecondPrecision) {
  if (::epoll_pwait2(-1, nullptr, 0, nullptr, nullptr) < 0 && errno != EBADF && errno != EINVAL) {
    GTEST_SKIP() << "this kernel has no epoll_pwait2";
  }
  // A wait that is rounded to milliseconds always takes at least one; an exact wait does so only
  // on a busy machine.
  const Instant end = after(fixture_.platform().now(), std::chrono::seconds(30));
  Duration shortest = Duration::max();
  while (shortest >= std::chrono::milliseconds(1) && fixture_.platform().now() < end) {
    const Instant start = fixture_.platform().now();
    fixture_.turn(std::chrono::microseconds(200));
    const Duration waited = fixture_.platform().now() - start;
    EXPECT_GE(waited, std::chrono::microseconds(200));
    shortest = std::min(shortest, waited);
  }
  EXPECT_LT(shortest, std::chrono::milliseconds(1));
}

/// Waits on a kernel that refuses epoll_pwait2(2), and ends the process.
[[noreturn]] void wait_without_nanoseconds(int refusal) {
  // The last argument of the call is a signal mask, which is not used.
  constexpr std::uint32_t mask_argument = 4;
  if (!os::deny({SYS_epoll_pwait2, mask_argument, 0}, refusal)) std::_Exit(2);
  ReadinessFixture fixture{BackendChoice::epoll};
  for (const Duration longest : {Duration(0), Duration(1), Duration(1'500'000)}) {
    const Instant start = fixture.platform().now();
    fixture.turn(longest);
    if (fixture.platform().now() - start < longest) std::_Exit(1);
  }
  fixture.backend().wake();
  fixture.backend().wait(never);
  std::_Exit(0);
}

// Old kernels do not have the call, and old sandboxes do not list it. A wait is then rounded up to
// milliseconds.
TEST(EpollDeathTest, WaitsEndInTimeOnAKernelWithoutNanoseconds) {
  for (const int refusal : {ENOSYS, EPERM}) {
    EXPECT_EXIT(wait_without_nanoseconds(refusal), testing::ExitedWithCode(0), "");
  }
}

/// Uses sockets that the kernel does not watch. Returns false if this machine cannot refuse that.
bool use_unwatched_sockets() {
  ReadinessFixture fixture{BackendChoice::epoll};
  Backend& backend = fixture.backend();
  auto pair = fixture.connect_tcp();
  auto other = fixture.connect_tcp();
  Socket* listener =
      fixture.adopt(*os::open_listener(os::Address::loopback(0)), SocketRole::listener);
  constexpr std::uint32_t operation_argument = 1;
  if (!os::deny({SYS_epoll_ctl, operation_argument, EPOLL_CTL_ADD}, ENOSPC)) return false;
  const std::error_code refused = system_error(ENOSPC);
  for (int round = 0; round < 2; ++round) {
    Recorded<ReceiveOperation> receive;
    EXPECT_TRUE(backend.receive(*pair.ours, receive));
    EXPECT_EQ(receive.error(), refused);
    Recorded<AcceptOperation> accept;
    EXPECT_TRUE(backend.accept(*listener, accept));
    EXPECT_EQ(accept.error(), refused);
    Recorded<SendOperation> send;
    const std::array<Bytes, 1> pieces{to_bytes("x")};
    send.pieces = pieces;
    EXPECT_TRUE(backend.send(*pair.ours, send));
    EXPECT_FALSE(send.error()) << "it does not have to wait";
  }
  RecordedHangup hangup;
  backend.observe_hangup(*other.ours, &hangup);
  EXPECT_EQ(hangup.calls, 1) << "it could not be reported later";
  fixture.turn(Duration(0));
  EXPECT_EQ(hangup.calls, 1);
  for (Socket* each : {pair.ours, other.ours, listener}) backend.close(*each);
  return true;
}

// The kernel limits the number of sockets that a user may watch.
TEST(EpollRefusedTest, AnOperationThatHasToWaitFailsIfTheKernelDoesNotWatchItsSocket) {
  bool refused = false;
  std::thread([&] { refused = use_unwatched_sockets(); }).join();
  if (!refused) GTEST_SKIP() << "this machine cannot refuse system calls";
}

}  // namespace
}  // namespace weir::loop::epoll_test
