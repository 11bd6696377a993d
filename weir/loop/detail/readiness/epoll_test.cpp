// What the contract test cannot see of epoll: how little it asks of the kernel.
#include "weir/loop/epoll.hpp"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <thread>

#include "weir/loop/test/readiness_fixture.hpp"

namespace weir {
namespace {

class EpollTest : public testing::Test {
 protected:
  std::uint64_t system_calls() { return peers_.backend().counters().system_calls.value(); }

  void answer_once(ReadinessPeers::Pair& pair) {
    Recorded<ReceiveOperation> receive;
    ASSERT_FALSE(peers_.backend().receive(*pair.ours, receive));
    ASSERT_EQ(::send(pair.theirs.get(), "ping", 4, 0), 4);
    peers_.finish(receive);
    ASSERT_EQ(receive.buffer.text(), "ping");
    Recorded<SendOperation> send;
    const std::array<Bytes, 1> pieces{receive.buffer};
    send.pieces = pieces;
    ASSERT_TRUE(peers_.backend().send(*pair.ours, send));
    std::array<char, 8> answer{};
    ASSERT_EQ(::recv(pair.theirs.get(), answer.data(), answer.size(), 0), 4);
  }

  ReadinessPeers peers_{BackendChoice::epoll};
};

TEST_F(EpollTest, ARequestCostsOneReceiveOneSendAndOneWait) {
  auto pair = peers_.connect_tcp();
  Recorded<ReceiveOperation> first;  // a new socket is tried at once
  ASSERT_FALSE(peers_.backend().receive(*pair.ours, first));
  peers_.backend().cancel(first);
  peers_.turn(Duration(0));
  ASSERT_NO_FATAL_FAILURE(answer_once(pair));
  const std::uint64_t before = system_calls();
  for (int round = 0; round < 100; ++round) ASSERT_NO_FATAL_FAILURE(answer_once(pair));
  EXPECT_EQ(system_calls() - before, 300u);
  peers_.backend().close(*pair.ours);
}

TEST_F(EpollTest, ManyReadyConnectionsShareOneWait) {
  constexpr std::size_t count = 100;
  std::array<ReadinessPeers::Pair, count> pairs;
  std::array<Recorded<ReceiveOperation>, count> receives;
  for (auto& pair : pairs) pair = peers_.connect_tcp();
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_FALSE(peers_.backend().receive(*pairs[i].ours, receives[i]));
  }
  peers_.turn(Duration(0));
  for (auto& pair : pairs) ASSERT_EQ(::send(pair.theirs.get(), "x", 1, 0), 1);
  const std::uint64_t before = system_calls();
  peers_.turn();
  EXPECT_EQ(system_calls() - before, count + 1);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(receives[i].runs, 1);
    peers_.backend().close(*pairs[i].ours);
  }
}

TEST_F(EpollTest, APendingReceiveHoldsNoBuffer) {
  auto pair = peers_.connect_tcp();
  Recorded<ReceiveOperation> receive;
  ASSERT_FALSE(peers_.backend().receive(*pair.ours, receive));
  EXPECT_EQ(peers_.pool().blocks_in_use(), 0u);
  peers_.backend().cancel(receive);
  peers_.backend().close(*pair.ours);
}

// A short read stops at TCP's urgent mark although more has arrived, and no edge is to come.
TEST_F(EpollTest, UrgentDataDoesNotHideWhatFollows) {
  auto pair = peers_.connect_tcp();
  Recorded<ReceiveOperation> first;
  ASSERT_FALSE(peers_.backend().receive(*pair.ours, first));
  ASSERT_EQ(::send(pair.theirs.get(), "ab!", 3, MSG_OOB), 3);
  ASSERT_EQ(::send(pair.theirs.get(), "cd", 2, 0), 2);
  std::string all;
  peers_.finish(first);
  all += first.buffer.text();
  while (all.size() < 4) {
    Recorded<ReceiveOperation> next;
    if (!peers_.backend().receive(*pair.ours, next)) {
      peers_.turn(std::chrono::seconds(2));
      ASSERT_EQ(next.runs, 1) << "stalled behind \"" << all << '"';
    }
    all += next.buffer.text();
  }
  EXPECT_EQ(all, "abcd");
  peers_.backend().close(*pair.ours);
}

// While a forked child holds a descriptor that was closed here, the kernel goes on reporting it.
TEST_F(EpollTest, ReportsOfAClosedSocketDoNotReachItsSuccessor) {
  auto old = peers_.connect_tcp();
  RecordedHangup gone;
  peers_.backend().watch(*old.ours, &gone);  // from here on the kernel reports it
  peers_.turn(Duration(0));
  auto held = os::duplicate(old.ours->descriptor);
  ASSERT_TRUE(held.has_value());
  Socket* const memory = old.ours;
  peers_.backend().close(*old.ours);
  auto pair = peers_.connect_tcp();
  ASSERT_EQ(pair.ours, memory) << "the test needs the successor in the same place";
  RecordedHangup hangup;
  peers_.backend().watch(*pair.ours, &hangup);
  peers_.turn(Duration(0));
  ASSERT_TRUE(os::set_linger(old.theirs.get(), std::chrono::seconds(0)).has_value());
  old.theirs.close();  // a reset
  const Instant before = peers_.host().now();
  peers_.turn();
  EXPECT_LT(peers_.host().now() - before, std::chrono::seconds(9)) << "the test needs the report";
  EXPECT_EQ(gone.calls + hangup.calls, 0);
  peers_.backend().close(*pair.ours);
}

TEST_F(EpollTest, WakeUpsAreNotLostAndNotRepeated) {
  peers_.backend().wake();
  peers_.backend().wake();
  const Instant start = peers_.host().now();
  peers_.turn();
  EXPECT_LT(peers_.host().now() - start, std::chrono::seconds(5));
  const Instant before = peers_.host().now();
  peers_.turn(std::chrono::milliseconds(5));
  EXPECT_GE(peers_.host().now() - before, std::chrono::milliseconds(5));
  std::thread other([this] { peers_.backend().wake(); });
  peers_.turn();
  EXPECT_LT(peers_.host().now() - before, std::chrono::seconds(5));
  other.join();
}

TEST_F(EpollTest, AWaitIsExactToTheMicrosecondNotTheMillisecond) {
  if (::epoll_pwait2(-1, nullptr, 0, nullptr, nullptr) < 0 && errno != EBADF && errno != EINVAL) {
    GTEST_SKIP() << "this kernel has no epoll_pwait2";
  }
  // One that is rounded to milliseconds takes one at least, always; a busy machine only at times.
  const Instant end = after(peers_.host().now(), std::chrono::seconds(30));
  Duration shortest = Duration::max();
  while (shortest >= std::chrono::milliseconds(1) && peers_.host().now() < end) {
    const Instant start = peers_.host().now();
    peers_.turn(std::chrono::microseconds(200));
    const Duration waited = peers_.host().now() - start;
    EXPECT_GE(waited, std::chrono::microseconds(200));
    shortest = std::min(shortest, waited);
  }
  EXPECT_LT(shortest, std::chrono::milliseconds(1));
}

}  // namespace
}  // namespace weir
