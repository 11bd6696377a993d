// Tests of the datagram calls, over Unix sockets if order and room matter: those lose and delay
// nothing, and get full.
#include "weir/loop/detail/readiness/datagram_calls.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "weir/loop/test/readiness_fixture.hpp"
#include "weir/os/detail/io/datagram_socket.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir::loop::datagram_calls_test {
namespace {

using Receiving = Recorded<ReceiveDatagramsOperation>;
using Sending = Recorded<SendDatagramsOperation>;

struct Ends {
  os::Fd ours;
  os::Fd theirs;
};

Ends unix_pair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  const int small = 65'536;
  for (const int end : ends) {
    EXPECT_EQ(::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
  }
  return {os::Fd(ends[0]), os::Fd(ends[1])};
}

/// Texts and their datagrams, all to one peer.
struct Mail {
  Mail(std::vector<std::string> its_texts, const os::Address& peer = {})
      : texts(std::move(its_texts)) {
    for (const std::string& text : texts) datagrams.push_back({to_bytes(text), peer});
  }
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;

  std::vector<std::string> texts;
  std::vector<OutgoingDatagram> datagrams;
};

/// Returns texts of rising length, so that no two are sent as one message.
std::vector<std::string> rising(std::size_t count) {
  std::vector<std::string> texts;
  for (std::size_t size = 1; size <= count; ++size) {
    texts.push_back(std::string(size, static_cast<char>('a' + size % 26)));
  }
  return texts;
}

/// Reads the datagrams of a socket until `count` have arrived.
std::multiset<std::string> read_texts(int descriptor, std::size_t count) {
  std::multiset<std::string> texts;
  std::array<char, 2000> room;
  while (texts.size() < count) {
    pollfd wanted{descriptor, POLLIN, 0};
    if (::poll(&wanted, 1, 10'000) != 1) break;
    const ssize_t size = ::recv(descriptor, room.data(), room.size(), 0);
    if (size >= 0) texts.insert(std::string(room.data(), static_cast<std::size_t>(size)));
  }
  return texts;
}

std::multiset<std::string> as_set(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

TEST(DatagramCalls, ReceiveAllWaitingDatagramsInOneCall) {
  const Ends ends = unix_pair();
  BackendCounters counters;
  const Mail mail(rising(6));
  Sending sending;
  sending.datagrams = mail.datagrams;
  ASSERT_TRUE(try_send(ends.theirs.get(), sending, counters).finished);
  EXPECT_EQ(counters.system_calls.value(), 1u);
  EXPECT_EQ(counters.bytes_sent.value(), 21u);

  std::array<Datagram, 4> slots;
  Receiving receiving;
  receiving.target = slots;
  const DatagramTryResult first = try_receive(ends.ours.get(), receiving, counters);
  EXPECT_TRUE(first.finished);
  EXPECT_TRUE(first.may_continue) << "all slots are used: there may be more";
  ASSERT_EQ(receiving.count, 4u);
  EXPECT_EQ(counters.system_calls.value(), 2u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(slots[i].buffer.text(), mail.texts[i]);

  const DatagramTryResult second = try_receive(ends.ours.get(), receiving, counters);
  EXPECT_TRUE(second.finished);
  EXPECT_FALSE(second.may_continue) << "nothing else was there";
  ASSERT_EQ(receiving.count, 2u);
  EXPECT_EQ(slots[1].buffer.text(), mail.texts[5]);
  EXPECT_EQ(counters.bytes_received.value(), 21u);
}

TEST(DatagramCalls, ReuseBuffersAndReleaseThem) {
  const Ends ends = unix_pair();
  BackendCounters counters;
  std::array<Datagram, 2> slots;
  Receiving receiving;
  receiving.target = slots;
  ASSERT_EQ(::send(ends.theirs.get(), "one", 3, 0), 3);
  ASSERT_TRUE(try_receive(ends.ours.get(), receiving, counters).finished);
  const std::byte* const first = slots[0].buffer.data();
  const std::byte* const spare = slots[1].buffer.data();
  ASSERT_EQ(::send(ends.theirs.get(), "two", 3, 0), 3);
  ASSERT_EQ(::send(ends.theirs.get(), "more", 4, 0), 4);
  ASSERT_TRUE(try_receive(ends.ours.get(), receiving, counters).finished);
  EXPECT_EQ(slots[0].buffer.data(), first);
  EXPECT_EQ(slots[1].buffer.data(), spare);
  EXPECT_EQ(slots[0].buffer.text(), "two");
  EXPECT_EQ(slots[1].buffer.text(), "more");
  // A buffer that is too small is not reused.
  receiving.bytes_max = 60'000;
  ASSERT_EQ(::send(ends.theirs.get(), "large", 5, 0), 5);
  ASSERT_TRUE(try_receive(ends.ours.get(), receiving, counters).finished);
  EXPECT_GE(slots[0].buffer.capacity(), 60'000u);
  EXPECT_EQ(slots[0].buffer.text(), "large");

  EXPECT_FALSE(try_receive(ends.ours.get(), receiving, counters).finished);
  for (const Datagram& each : slots) EXPECT_FALSE(each.buffer.owns_memory());
}

TEST(DatagramCalls, StopWhenThereIsNoRoomAndContinueFromThere) {
  const Ends ends = unix_pair();
  BackendCounters counters;
  const Mail mail(rising(1500));
  Sending sending;
  sending.datagrams = mail.datagrams;
  std::multiset<std::string> arrived;
  int waited = 0;
  for (;;) {
    const std::size_t before = sending.sent;
    const DatagramTryResult tried = try_send(ends.theirs.get(), sending, counters);
    if (tried.finished) break;
    ASSERT_FALSE(tried.may_continue);
    ASSERT_GT(sending.sent, before);
    ++waited;
    arrived.merge(read_texts(ends.ours.get(), sending.sent - before));
  }
  EXPECT_FALSE(sending.error());
  EXPECT_GT(waited, 0) << "the socket never ran out of room";
  arrived.merge(read_texts(ends.ours.get(), mail.texts.size() - arrived.size()));
  EXPECT_TRUE(arrived == as_set(mail.texts));
}

os::Fd udp_socket(bool joined = false) {
  auto socket = os::open_datagram_socket({.local = os::Address::loopback(0), .gro = joined});
  EXPECT_TRUE(socket);
  return std::move(*socket);
}

TEST(DatagramCalls, SendDatagramsOfOneSizeInOneCall) {
  const os::Fd server = udp_socket();
  const os::Fd client = udp_socket();
  BackendCounters counters;
  std::vector<std::string> texts;
  for (char each = 'A'; each < 'A' + 60; ++each) texts.push_back(std::string(100, each));
  texts.push_back("and a shorter one");
  const Mail mail(texts, os::local_address(server.get()).value());
  Sending sending;
  sending.datagrams = mail.datagrams;
  ASSERT_TRUE(try_send(client.get(), sending, counters).finished);
  EXPECT_FALSE(sending.error()) << sending.error().message();
  EXPECT_EQ(sending.sent, texts.size());
  EXPECT_EQ(counters.system_calls.value(), 1u);
  EXPECT_EQ(counters.bytes_sent.value(), 6017u);
  EXPECT_TRUE(read_texts(server.get(), texts.size()) == as_set(texts));
}

/// Returns the number of system calls that send `texts` over UDP.
std::uint64_t calls_to_send(const std::vector<std::string>& texts) {
  const os::Fd server = udp_socket();
  const os::Fd client = udp_socket();
  BackendCounters counters;
  const Mail mail(texts, os::local_address(server.get()).value());
  Sending sending;
  sending.datagrams = mail.datagrams;
  EXPECT_TRUE(try_send(client.get(), sending, counters).finished);
  EXPECT_FALSE(sending.error()) << sending.error().message();
  EXPECT_EQ(sending.sent, texts.size());
  // A receiver without room drops datagrams.
  constexpr std::size_t room = 100;
  if (texts.size() <= room) {
    EXPECT_TRUE(read_texts(server.get(), texts.size()) == as_set(texts));
  }
  return counters.system_calls.value();
}

TEST(DatagramCalls, OneCallSendsAtMost32MessagesAnd256Pieces) {
  EXPECT_EQ(calls_to_send(rising(1)), 1U);
  EXPECT_EQ(calls_to_send(rising(32)), 1U);
  EXPECT_EQ(calls_to_send(rising(33)), 2U);
  const auto equal = [](std::size_t count) { return std::vector<std::string>(count, "equal"); };
  EXPECT_EQ(calls_to_send(equal(65)), 1U) << "a message has at most 64 segments";
  EXPECT_EQ(calls_to_send(equal(256)), 1U);
  EXPECT_EQ(calls_to_send(equal(257)), 2U);
}

// The kernel would reject 47 segments of this size, because they do not fit into an IP packet.
TEST(DatagramCalls, AMessageHasNoMoreSegmentsThanFitIntoAPacket) {
  EXPECT_EQ(calls_to_send(std::vector<std::string>(47, std::string(1400, 'x'))), 1U);
}

TEST(DatagramCalls, OneCallReceivesAtMost32Datagrams) {
  const Ends ends = unix_pair();
  for (const std::size_t count : {32U, 33U}) {
    const Mail mail(rising(count));
    for (const OutgoingDatagram& each : mail.datagrams) {
      ASSERT_EQ(::send(ends.theirs.get(), each.bytes.data(), each.bytes.size(), 0),
                static_cast<ssize_t>(each.bytes.size()));
    }
    BackendCounters counters;
    std::array<Datagram, 40> slots;
    Receiving receiving;
    receiving.target = slots;
    const DatagramTryResult first = try_receive(ends.ours.get(), receiving, counters);
    EXPECT_TRUE(first.finished && first.may_continue);
    EXPECT_EQ(receiving.count, 32U);
    EXPECT_EQ(counters.system_calls.value(), 1U);
    for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(slots[i].buffer.text(), mail.texts[i]);
    const DatagramTryResult second = try_receive(ends.ours.get(), receiving, counters);
    EXPECT_EQ(second.finished, count == 33);
    EXPECT_FALSE(second.may_continue);
    EXPECT_EQ(receiving.count, count - 32);
    EXPECT_EQ(counters.system_calls.value(), 2U);
  }
}

TEST(DatagramCalls, ReportTheLostBytesOfEachDatagram) {
  const Ends ends = unix_pair();
  for (const std::size_t slots_count : {1U, 3U}) {
    for (const char* text : {"0123456789", "01234567", "012345678"}) {
      ASSERT_GT(::send(ends.theirs.get(), text, std::strlen(text), 0), 0);
    }
    BackendCounters counters;
    std::vector<Datagram> slots(slots_count);
    slots[0].segment_size = 7;  // of an earlier use
    Receiving receiving;
    receiving.target = slots;
    receiving.bytes_max = 8;
    std::vector<std::size_t> lost;
    while (lost.size() < 3) {
      ASSERT_TRUE(try_receive(ends.ours.get(), receiving, counters).finished);
      for (const Datagram& each : receiving.target.first(receiving.count)) {
        EXPECT_EQ(each.buffer.text(), "01234567");
        EXPECT_EQ(each.segment_size, 0U);
        lost.push_back(each.truncated_bytes);
      }
    }
    EXPECT_EQ(lost, (std::vector<std::size_t>{2, 0, 1}));
    EXPECT_EQ(counters.bytes_received.value(), 24U);
  }
}

TEST(DatagramCalls, ReportAnErrorOfTheSocket) {
  for (const std::size_t count : {1U, 2U}) {
    BackendCounters counters;
    std::vector<Datagram> slots(count);
    Receiving receiving;
    receiving.target = slots;
    const DatagramTryResult received = try_receive(-1, receiving, counters);
    EXPECT_TRUE(received.finished && received.may_continue);
    EXPECT_EQ(receiving.error(), system_error(EBADF));
    EXPECT_EQ(receiving.count, 0U);
    for (const Datagram& each : slots) EXPECT_FALSE(each.buffer.owns_memory());
    const Mail mail(rising(count));
    Sending sending;
    sending.datagrams = mail.datagrams;
    const DatagramTryResult sent = try_send(-1, sending, counters);
    EXPECT_TRUE(sent.finished && sent.may_continue);
    EXPECT_EQ(sending.error(), system_error(EBADF));
    EXPECT_EQ(sending.sent, 0U);
    EXPECT_EQ(counters.bytes_sent.value(), 0U);
    EXPECT_EQ(counters.system_calls.value(), 2U);
  }
}

TEST(DatagramCalls, ASingleDatagramWaitsForRoomToo) {
  const Ends ends = unix_pair();
  BackendCounters counters;
  const Mail mail({std::string(1000, 'x')});
  std::size_t sent = 0;
  for (;; ++sent) {
    Sending sending;
    sending.datagrams = mail.datagrams;
    const DatagramTryResult tried = try_send(ends.theirs.get(), sending, counters);
    if (!tried.finished) {
      EXPECT_FALSE(tried.may_continue);
      EXPECT_EQ(sending.sent, 0U);
      break;
    }
    ASSERT_FALSE(sending.error());
    EXPECT_EQ(sending.sent, 1U);
  }
  EXPECT_GT(sent, 0U);
  EXPECT_EQ(counters.bytes_sent.value(), 1000 * sent);
  Datagram slot;
  Receiving receiving;
  receiving.target = {&slot, 1};
  for (; sent > 0; --sent) {
    ASSERT_TRUE(try_receive(ends.ours.get(), receiving, counters).finished);
    EXPECT_EQ(slot.buffer.size(), 1000U);
  }
  const DatagramTryResult none = try_receive(ends.ours.get(), receiving, counters);
  EXPECT_FALSE(none.finished || none.may_continue);
  EXPECT_FALSE(slot.buffer.owns_memory());
}

TEST(DatagramCalls, SplitJoinedDatagramsOnArrival) {
  const os::Fd server = udp_socket(true);
  const os::Fd client = udp_socket();
  BackendCounters counters;
  std::vector<std::string> texts;
  for (char each = 'A'; each < 'A' + 50; ++each) texts.push_back(std::string(100, each));
  texts.push_back("and a shorter one");
  const Mail mail(texts, os::local_address(server.get()).value());
  Sending sending;
  sending.datagrams = mail.datagrams;
  ASSERT_TRUE(try_send(client.get(), sending, counters).finished);
  std::array<Datagram, 4> slots;
  Receiving receiving;
  receiving.target = slots;
  receiving.bytes_max = 65'535;
  receiving.gro = true;
  pollfd wanted{server.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&wanted, 1, 20'000), 1);
  ASSERT_TRUE(try_receive(server.get(), receiving, counters).finished);
  ASSERT_EQ(receiving.count, 1U);
  EXPECT_EQ(slots[0].segment_size, 100U);
  EXPECT_EQ(slots[0].truncated_bytes, 0U);
  EXPECT_EQ(slots[0].buffer.size(), 5'017U);
  std::vector<std::string> received;
  slots[0].for_each([&](Bytes each) { received.emplace_back(to_text(each)); });
  EXPECT_EQ(received, texts);
}

TEST(DatagramCalls, ForEachVisitsSingleAndEmptyDatagrams) {
  Datagram datagram;
  std::vector<std::size_t> sizes;
  const auto collect = [&](Bytes each) { sizes.push_back(each.size()); };
  datagram.for_each(collect);
  datagram.buffer = Buffer::with_capacity(16);
  datagram.buffer.commit(7);
  datagram.for_each(collect);
  datagram.segment_size = 3;
  datagram.for_each(collect);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{0, 7, 3, 3, 1}));
}

// The kernel cuts no segments for a socket that sends without checksums.
TEST(DatagramCalls, SendOneByOneWhenTheKernelCutsNoSegments) {
  const os::Fd server = udp_socket();
  const os::Fd client = udp_socket();
  const int on = 1;
  ASSERT_EQ(::setsockopt(client.get(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);
  BackendCounters counters;
  const std::vector<std::string> texts(50, std::string(100, 'x'));
  const Mail mail(texts, os::local_address(server.get()).value());
  Sending sending;
  sending.datagrams = mail.datagrams;
  ASSERT_TRUE(try_send(client.get(), sending, counters).finished);
  EXPECT_FALSE(sending.error()) << sending.error().message();
  EXPECT_EQ(sending.sent, 50u);
  EXPECT_EQ(counters.system_calls.value(), 3u) << "one that fails, then two of at most 32";
  EXPECT_TRUE(read_texts(server.get(), texts.size()) == as_set(texts));
}

// --- On each backend
// -----------------------------------------------------------------------------

struct Choice {
  const char* name;
  BackendChoice choice;
  friend void PrintTo(const Choice& each, std::ostream* out) { *out << each.name; }
};

class DatagramBackends : public ::testing::TestWithParam<Choice> {
 protected:
  void SetUp() override {
    OsPlatform platform;
    RunQueue ready;
    const auto made = platform.make_backend(GetParam().choice, ready);
    if (!made) GTEST_SKIP() << "not available here: " << made.error().message();
  }
};

INSTANTIATE_TEST_SUITE_P(On, DatagramBackends,
                         ::testing::Values(Choice{"uring", BackendChoice::uring},
                                           Choice{"uring_6_1", BackendChoice::uring_6_1},
                                           Choice{"epoll", BackendChoice::epoll},
                                           Choice{"poll", BackendChoice::poll}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(DatagramBackends, ASendWaitsForRoom) {
  ReadinessFixture peers(GetParam().choice);
  Ends ends = unix_pair();
  Socket& socket = *peers.adopt(std::move(ends.ours), SocketRole::datagrams);
  const Mail mail(rising(1500));
  Sending sending;
  sending.datagrams = mail.datagrams;
  ASSERT_FALSE(peers.backend().send_datagrams(socket, sending));
  peers.turn(Duration(0));
  EXPECT_EQ(sending.runs, 0);
  std::multiset<std::string> arrived;
  // A send may still wait if there is room for some datagrams, but not for all.
  const Instant end = after(peers.platform().now(), std::chrono::seconds(20));
  while (sending.runs == 0 && peers.platform().now() < end) {
    arrived.merge(read_texts(ends.theirs.get(), sending.sent - arrived.size()));
    peers.turn(std::chrono::milliseconds(1));
  }
  ASSERT_EQ(sending.runs, 1);
  EXPECT_FALSE(sending.error());
  arrived.merge(read_texts(ends.theirs.get(), mail.texts.size() - arrived.size()));
  EXPECT_TRUE(arrived == as_set(mail.texts));
  peers.backend().close(socket);
}

TEST_P(DatagramBackends, ASendThatWaitsCanBeCancelled) {
  ReadinessFixture peers(GetParam().choice);
  Ends ends = unix_pair();
  Socket& socket = *peers.adopt(std::move(ends.ours), SocketRole::datagrams);
  const Mail mail(rising(1500));
  Sending sending;
  sending.datagrams = mail.datagrams;
  ASSERT_FALSE(peers.backend().send_datagrams(socket, sending));
  peers.turn(Duration(0));
  peers.backend().cancel(sending);
  peers.finish(sending);
  EXPECT_EQ(sending.error(), Errc::cancelled);
  EXPECT_GT(sending.sent, 0u);
  EXPECT_LT(sending.sent, mail.texts.size());
  EXPECT_EQ(read_texts(ends.theirs.get(), sending.sent).size(), sending.sent);
  // The next send succeeds.
  const Mail more({"more"});
  Sending again;
  again.datagrams = more.datagrams;
  if (!peers.backend().send_datagrams(socket, again)) peers.finish(again);
  EXPECT_FALSE(again.error());
  EXPECT_EQ(read_texts(ends.theirs.get(), 1), as_set({"more"}));
  peers.backend().close(socket);
}

TEST_P(DatagramBackends, ASendOfNothingNeedsNoRoom) {
  ReadinessFixture peers(GetParam().choice);
  Ends ends = unix_pair();
  Socket& socket = *peers.adopt(std::move(ends.ours), SocketRole::datagrams);
  const Mail mail(rising(1500));
  Sending full;
  full.datagrams = mail.datagrams;
  ASSERT_FALSE(peers.backend().send_datagrams(socket, full));
  peers.turn(Duration(0));
  peers.backend().cancel(full);
  peers.finish(full);
  Sending nothing;
  EXPECT_TRUE(peers.backend().send_datagrams(socket, nothing));
  EXPECT_FALSE(nothing.error());
  EXPECT_EQ(nothing.sent, 0U);
  EXPECT_EQ(nothing.runs, 0);
  peers.backend().close(socket);
}

}  // namespace
}  // namespace weir::loop::datagram_calls_test
