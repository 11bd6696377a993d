// Tests of the readiness backends: resets, ends, long sends, pauses, on epoll and on poll.
#include "weir/loop/detail/readiness/readiness.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weir/loop/test/readiness_fixture.hpp"
#include "weir/loop/test/stopped_clock_platform.hpp"
#include "weir/os/detail/io/clock.hpp"

namespace weir::loop::readiness_test {
namespace {

class ReadinessTest : public testing::TestWithParam<BackendChoice> {
 protected:
  Backend& backend() { return fixture_.backend(); }

  std::error_code receive_error(Socket& socket) {
    Recorded<ReceiveOperation> receive;
    if (!backend().receive(socket, receive)) fixture_.finish(receive);
    return receive.error();
  }
  std::string receive_text(Socket& socket) {
    Recorded<ReceiveOperation> receive;
    if (!backend().receive(socket, receive)) fixture_.finish(receive);
    EXPECT_EQ(receive.error(), std::error_code());
    return std::string(receive.buffer.text());
  }
  /// Closes the peer so that the kernel sends a reset.
  static void reset(os::Fd& peer) {
    ASSERT_TRUE(os::set_linger(peer.get(), std::chrono::seconds(0)).has_value());
    peer.close();
  }

  ReadinessFixture fixture_{GetParam()};
};

TEST_P(ReadinessTest, ReportsAResetAfterTheDataAndRepeatedly) {
  auto pair = fixture_.connect_tcp();
  RecordedHangup hangup;
  backend().observe_hangup(*pair.ours, &hangup);
  ASSERT_EQ(::send(pair.theirs.get(), "last words", 10, 0), 10);
  ASSERT_NO_FATAL_FAILURE(reset(pair.theirs));
  fixture_.turn();
  EXPECT_EQ(hangup.calls, 1);
  EXPECT_EQ(receive_text(*pair.ours), "last words");
  EXPECT_EQ(receive_error(*pair.ours), system_error(ECONNRESET));
  EXPECT_EQ(receive_error(*pair.ours), system_error(ECONNRESET));
  RecordedHangup late;
  backend().observe_hangup(*pair.ours, &late);
  EXPECT_EQ(late.calls, 1);
  backend().close(*pair.ours);
}

// The kernel reports the error once, here to the send. A later receive must not report an orderly
// end.
TEST_P(ReadinessTest, AResetSeenByASendIsNotAnEndOfStream) {
  auto pair = fixture_.connect_tcp();
  ASSERT_NO_FATAL_FAILURE(reset(pair.theirs));
  Recorded<SendOperation> send;
  const std::array<Bytes, 1> pieces{to_bytes("hello")};
  send.pieces = pieces;
  ASSERT_TRUE(backend().send(*pair.ours, send));
  EXPECT_EQ(send.error(), system_error(ECONNRESET));
  EXPECT_EQ(receive_error(*pair.ours), system_error(ECONNRESET));
  backend().close(*pair.ours);
}

TEST_P(ReadinessTest, AWaitContinuesAfterASignal) {
  struct sigaction interrupt{};
  struct sigaction former{};
  interrupt.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &interrupt, &former), 0);
  std::atomic<bool> ended = false;
  std::thread sender([&ended, waiting = ::pthread_self()] {
    while (!ended) {
      ::pthread_kill(waiting, SIGUSR1);
      std::this_thread::yield();
    }
  });
  const Instant until = os::monotonic_now() + std::chrono::milliseconds(20);
  backend().wait(until);
  EXPECT_GE(os::monotonic_now(), until);
  ended = true;
  sender.join();
  ASSERT_EQ(::sigaction(SIGUSR1, &former, nullptr), 0);
}

TEST_P(ReadinessTest, APeerThatFinishedSendingIsNotDead) {
  auto pair = fixture_.connect_tcp();
  RecordedHangup hangup;
  backend().observe_hangup(*pair.ours, &hangup);
  ASSERT_EQ(::send(pair.theirs.get(), "bye", 3, 0), 3);
  ASSERT_TRUE(os::shut_down_sending(pair.theirs.get()).has_value());
  EXPECT_EQ(receive_text(*pair.ours), "bye");
  EXPECT_EQ(receive_error(*pair.ours), Errc::end_of_stream);
  EXPECT_EQ(receive_error(*pair.ours), Errc::end_of_stream);
  fixture_.turn(Duration(0));
  EXPECT_EQ(hangup.calls, 0);
  ASSERT_TRUE(backend().shut_down_sending(*pair.ours).has_value());
  fixture_.turn();
  EXPECT_EQ(hangup.calls, 1);
  backend().close(*pair.ours);
}

// One report covers both; the short read of the data must not end the reading.
TEST_P(ReadinessTest, ReadsAnEndThatWasReportedWithTheData) {
  auto pair = fixture_.connect_tcp();
  ASSERT_EQ(::send(pair.theirs.get(), "bye", 3, 0), 3);
  ASSERT_TRUE(os::shut_down_sending(pair.theirs.get()).has_value());
  fixture_.turn(Duration(0));
  EXPECT_EQ(receive_text(*pair.ours), "bye");
  EXPECT_EQ(receive_error(*pair.ours), Errc::end_of_stream);
  backend().close(*pair.ours);
}

TEST_P(ReadinessTest, AnUnconnectedStreamIsNotDead) {
  auto listener = os::open_listener(os::Address::loopback(0));
  auto descriptor = os::open_stream(os::AddressFamily::ipv4);
  Socket* socket = fixture_.adopt(std::move(*descriptor));
  fixture_.turn(Duration(0));  // the kernel reports a hang-up here
  RecordedHangup hangup;
  Recorded<ConnectOperation> connect;
  connect.peer = *os::local_address(listener->get());
  if (!backend().connect(*socket, connect)) fixture_.finish(connect);
  EXPECT_EQ(connect.error(), std::error_code());
  backend().observe_hangup(*socket, &hangup);
  fixture_.turn(Duration(0));
  EXPECT_EQ(hangup.calls, 0);
  backend().close(*socket);
}

TEST_P(ReadinessTest, ConnectFailsWhenTheUnixQueueIsFull) {
  const auto name = os::Address::local("@weir-readiness-" + std::to_string(::getpid()) +
                                       std::string(backend().name()));
  auto listener = os::open_listener(*name, {.backlog = 0});
  ASSERT_TRUE(listener.has_value());
  std::vector<Socket*> sockets;
  std::error_code error;
  while (!error && sockets.size() < 100) {
    sockets.push_back(fixture_.adopt(std::move(*os::open_stream(os::AddressFamily::local))));
    Recorded<ConnectOperation> connect;
    connect.peer = *name;
    if (!backend().connect(*sockets.back(), connect)) fixture_.finish(connect);
    error = connect.error();
  }
  EXPECT_EQ(error, system_error(EAGAIN));
  for (Socket* socket : sockets) backend().close(*socket);
}

// The send has more pieces than one system call takes, and more bytes than the kernel has room
// for.
TEST_P(ReadinessTest, ALongSendContinuesAndACancelledOneReportsTheBytesSent) {
  auto pair = fixture_.connect_tcp();
  std::string text(64 * 1024, ' ');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  std::vector<Bytes> pieces(300, to_bytes(text));
  pieces[17] = {};
  const std::size_t total = 299 * text.size();
  Recorded<SendOperation> send;
  send.pieces = pieces;
  ASSERT_FALSE(backend().send(*pair.ours, send));
  std::size_t received = 0;
  std::array<char, 65536> bytes;
  const auto drain = [&] {
    for (;;) {
      const auto count = ::recv(pair.theirs.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (count <= 0) return;
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i, ++received) {
        ASSERT_EQ(bytes[i], text[received % text.size()]) << "at " << received;
      }
    }
  };
  while (send.runs == 0) {
    ASSERT_NO_FATAL_FAILURE(drain());
    fixture_.turn();
  }
  EXPECT_EQ(send.sent, total);
  EXPECT_EQ(backend().counters().bytes_sent.value(), total);
  while (received < total) ASSERT_NO_FATAL_FAILURE(drain());

  Recorded<SendOperation> cut;
  cut.pieces = pieces;
  ASSERT_FALSE(backend().send(*pair.ours, cut));
  backend().cancel(cut);
  fixture_.finish(cut);
  EXPECT_EQ(cut.error(), Errc::cancelled);
  EXPECT_GT(cut.sent, 0u);
  EXPECT_LT(cut.sent, total);
  while (received < total + cut.sent) ASSERT_NO_FATAL_FAILURE(drain());
  backend().close(*pair.ours);
}

TEST_P(ReadinessTest, LastBytesTravelWithTheEndOfTheStream) {
  std::array<char, 8> bytes{};
  const std::array pieces{to_bytes("la"), to_bytes("st")};
  for (const std::size_t count : {1U, 2U}) {
    auto pair = fixture_.connect_tcp();
    const auto receive = [&] {
      return ::recv(pair.theirs.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    };
    Recorded<SendOperation> send;
    send.pieces = std::span(pieces).first(count);
    send.last = true;
    ASSERT_TRUE(backend().send(*pair.ours, send));
    EXPECT_LT(receive(), 0) << "the kernel waits for the end";
    ASSERT_TRUE(backend().shut_down_sending(*pair.ours));
    EXPECT_EQ(receive(), static_cast<ssize_t>(2 * count));
    EXPECT_EQ(receive(), 0);
    backend().close(*pair.ours);
  }
}

/// Takes all descriptors, and gives them back when destroyed.
class DescriptorShortage {
 public:
  DescriptorShortage() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit tight = before_;
    tight.rlim_cur = 256;
    ::setrlimit(RLIMIT_NOFILE, &tight);
    for (;;) {
      const int copy = ::dup(0);
      if (copy < 0) break;
      taken_.emplace_back(copy);
    }
  }
  ~DescriptorShortage() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
  std::vector<os::Fd> taken_;
};

TEST_P(ReadinessTest, AcceptingPausesWithoutDescriptorsAndResumes) {
  auto listener = os::open_listener(os::Address::loopback(0));
  const auto address = *os::local_address(listener->get());
  Socket* socket = fixture_.adopt(std::move(*listener), SocketRole::listener);
  auto first = os::open_stream(os::AddressFamily::ipv4);
  ASSERT_TRUE(os::start_connect(first->get(), address).has_value());
  Recorded<AcceptOperation> accept;
  std::uint64_t calls_while_paused = 0;
  {
    const DescriptorShortage shortage;
    ASSERT_FALSE(backend().accept(*socket, accept));
    EXPECT_EQ(backend().counters().accept_pauses.value(), 1u);
    const std::uint64_t before = backend().counters().system_calls.value();
    while (backend().counters().accept_pauses.value() < 3) fixture_.turn();
    calls_while_paused = backend().counters().system_calls.value() - before;
  }
  EXPECT_LT(calls_while_paused, 12u) << "spins instead of waiting";
  EXPECT_EQ(accept.runs, 0);
  fixture_.finish(accept);
  EXPECT_EQ(accept.error(), std::error_code());
  EXPECT_TRUE(static_cast<bool>(accept.accepted));
  backend().close(*socket);
}

// The drain of a listener cancels its accept.
TEST_P(ReadinessTest, AnAcceptThatPausesCanBeCancelled) {
  auto listener = os::open_listener(os::Address::loopback(0));
  const auto address = *os::local_address(listener->get());
  Socket* socket = fixture_.adopt(std::move(*listener), SocketRole::listener);
  auto client = os::open_stream(os::AddressFamily::ipv4);
  ASSERT_TRUE(os::start_connect(client->get(), address));
  const DescriptorShortage shortage;
  Recorded<AcceptOperation> accept;
  ASSERT_FALSE(backend().accept(*socket, accept));
  ASSERT_EQ(backend().counters().accept_pauses.value(), 1U);
  backend().cancel(accept);
  fixture_.finish(accept);
  EXPECT_EQ(accept.error(), Errc::cancelled);
  EXPECT_EQ(accept.runs, 1);
  fixture_.turn(2s);  // the pause ends, and no accept is left to continue
  EXPECT_EQ(backend().counters().accept_pauses.value(), 1U);
  backend().close(*socket);
}

TEST_P(ReadinessTest, ThePauseGrowsWithEachFailureInARow) {
  StoppedClockPlatform platform;
  RunQueue ready;
  const auto made = platform.make_backend(GetParam(), ready);
  ASSERT_TRUE(made);
  Backend& stopped = *made->backend;
  const detail::Counter& pauses = stopped.counters().accept_pauses;
  auto listener = os::open_listener(os::Address::loopback(0));
  const auto address = *os::local_address(listener->get());
  Socket* const socket =
      *stopped.adopt(Descriptor(platform, listener->release()), {.role = SocketRole::listener});
  std::array<os::Fd, 2> clients;
  for (os::Fd& each : clients) {
    each = std::move(*os::open_stream(os::AddressFamily::ipv4));
    ASSERT_TRUE(os::start_connect(each.get(), address));
    pollfd connected{each.get(), POLLOUT, 0};
    ASSERT_EQ(::poll(&connected, 1, 10'000), 1);
  }
  const auto try_after = [&](Duration pause) {
    const std::uint64_t before = pauses.value();
    platform.moment += pause - 1ns;
    stopped.wait(Instant::min());
    EXPECT_EQ(pauses.value(), before) << "too early";
    platform.moment += 1ns;
    stopped.wait(Instant::min());
  };
  Recorded<AcceptOperation> first;
  {
    const DescriptorShortage shortage;
    ASSERT_FALSE(stopped.accept(*socket, first));
    for (const Duration pause : {10ms, 20ms, 40ms}) try_after(pause);
    EXPECT_EQ(pauses.value(), 4U);
  }
  EXPECT_EQ(first.state(), Operation::State::pending);
  try_after(80ms);
  EXPECT_TRUE(static_cast<bool>(first.accepted));
  Recorded<AcceptOperation> second;
  {
    const DescriptorShortage shortage;
    ASSERT_FALSE(stopped.accept(*socket, second));
    try_after(10ms);
    EXPECT_EQ(pauses.value(), 6U) << "a success ends the row";
  }
  stopped.cancel(second);
  while (Runnable* const runnable = ready.pop()) runnable->run();
  stopped.close(*socket);
}

TEST_P(ReadinessTest, AnAcceptThatHasWaitedPausesOnceWithoutDescriptors) {
  auto listener = os::open_listener(os::Address::loopback(0));
  const auto address = *os::local_address(listener->get());
  Socket* socket = fixture_.adopt(std::move(*listener), SocketRole::listener);
  auto client = os::open_stream(os::AddressFamily::ipv4);
  Recorded<AcceptOperation> accept;
  ASSERT_FALSE(backend().accept(*socket, accept));
  fixture_.turn(Duration(0));
  {
    const DescriptorShortage shortage;
    ASSERT_TRUE(os::start_connect(client->get(), address));
    while (backend().counters().accept_pauses.value() == 0) fixture_.turn();
  }
  EXPECT_EQ(backend().counters().accept_pauses.value(), 1u);
  EXPECT_EQ(accept.runs, 0);
  fixture_.finish(accept);
  EXPECT_FALSE(accept.error());
  EXPECT_TRUE(static_cast<bool>(accept.accepted));
  EXPECT_EQ(backend().counters().accept_pauses.value(), 1u);
  backend().close(*socket);
}

TEST_P(ReadinessTest, EachPausedListenerResumesUnlessItIsClosed) {
  std::array<Socket*, 3> sockets{};
  std::array<os::Fd, 3> clients;
  std::array<Recorded<AcceptOperation>, 3> accepts;
  Recorded<AcceptOperation> again;
  for (std::size_t i = 0; i < 3; ++i) {
    auto listener = os::open_listener(os::Address::loopback(0));
    clients[i] = std::move(*os::open_stream(os::AddressFamily::ipv4));
    ASSERT_TRUE(os::start_connect(clients[i].get(), *os::local_address(listener->get())));
    pollfd arrived{listener->get(), POLLIN, 0};
    ASSERT_EQ(::poll(&arrived, 1, 10'000), 1);
    sockets[i] = fixture_.adopt(std::move(*listener), SocketRole::listener);
  }
  {
    const DescriptorShortage shortage;
    for (std::size_t i = 0; i < 3; ++i) ASSERT_FALSE(backend().accept(*sockets[i], accepts[i]));
    EXPECT_EQ(backend().counters().accept_pauses.value(), 3u);
    backend().cancel(accepts[1]);
    ASSERT_FALSE(backend().accept(*sockets[1], again)) << "the pause has not passed";
    backend().cancel(accepts[2]);
    backend().close(*sockets[2]);
  }
  for (const auto* each : {&accepts[0], &accepts[1], &accepts[2], &again}) fixture_.finish(*each);
  for (const auto* each : {&accepts[0], &again}) {
    EXPECT_FALSE(each->error());
    EXPECT_TRUE(static_cast<bool>(each->accepted));
  }
  EXPECT_EQ(accepts[1].error(), Errc::cancelled);
  EXPECT_EQ(accepts[2].error(), Errc::cancelled);
  EXPECT_EQ(backend().counters().accept_pauses.value(), 3u);
  EXPECT_EQ(backend().counters().accepts.value(), 2u);
  for (std::size_t i = 0; i < 2; ++i) backend().close(*sockets[i]);
}

TEST_P(ReadinessTest, AnAcceptThatPausesEndsWhenAcceptingStops) {
  auto listener = os::open_listener(os::Address::loopback(0));
  const os::Fd shared = os::duplicate(listener->get()).value();
  auto client = os::open_stream(os::AddressFamily::ipv4);
  ASSERT_TRUE(os::start_connect(client->get(), *os::local_address(listener->get())));
  pollfd arrived{listener->get(), POLLIN, 0};
  ASSERT_EQ(::poll(&arrived, 1, 10'000), 1);
  Socket* socket = fixture_.adopt(std::move(*listener), SocketRole::listener);
  Recorded<AcceptOperation> accept;
  {
    const DescriptorShortage shortage;
    ASSERT_FALSE(backend().accept(*socket, accept));
    backend().stop_accepting(*socket);
    fixture_.finish(accept);
    EXPECT_EQ(accept.error(), Errc::closed);
  }
  Recorded<AcceptOperation> late;
  EXPECT_TRUE(backend().accept(*socket, late));
  EXPECT_EQ(late.error(), Errc::closed);
  backend().close(*socket);
  EXPECT_EQ(accept.runs, 1);
  EXPECT_EQ(backend().counters().accepts.value(), 0U);
  EXPECT_TRUE(os::accept_one(shared.get())) << "another process serves the connection";
}

TEST_P(ReadinessTest, ARefusingListenerAcceptsItsQueueAndThenDoesNotSpin) {
  const auto name = os::Address::local("@weir-drain-" + std::to_string(::getpid()) +
                                       std::string(backend().name()));
  auto listener = os::open_listener(*name);
  auto client = os::open_stream(os::AddressFamily::local);
  ASSERT_TRUE(os::start_connect(client->get(), *name).has_value());
  Socket* socket = fixture_.adopt(std::move(*listener), SocketRole::listener);
  ASSERT_TRUE(fixture_.platform().refuse_new_connections(socket->descriptor).has_value());
  Recorded<AcceptOperation> accept;
  if (!backend().accept(*socket, accept)) fixture_.finish(accept);
  EXPECT_EQ(accept.error(), std::error_code());
  Recorded<AcceptOperation> next;
  ASSERT_FALSE(backend().accept(*socket, next));
  const std::uint64_t before = backend().counters().system_calls.value();
  const Instant end = after(fixture_.platform().now(), std::chrono::milliseconds(50));
  while (fixture_.platform().now() < end) fixture_.turn(end - fixture_.platform().now());
  EXPECT_LT(backend().counters().system_calls.value() - before, 40u);
  EXPECT_EQ(next.runs, 0);
  EXPECT_EQ(backend().counters().accept_pauses.value(), 0u);
  backend().cancel(next);
  backend().close(*socket);
}

TEST_P(ReadinessTest, SocketsLeftOpenAreClosedWithTheBackend) {
  os::Fd theirs;
  {
    ReadinessFixture gone(GetParam());
    theirs = std::move(gone.connect_tcp().theirs);
  }
  char byte = 0;
  EXPECT_EQ(::recv(theirs.get(), &byte, 1, MSG_DONTWAIT), 0);
}

// Sockets are closed out of order while others wait.
TEST_P(ReadinessTest, ClosingSomeSocketsLeavesTheOthersAlone) {
  std::vector<ReadinessFixture::Pair> pairs;
  std::vector<std::unique_ptr<Recorded<ReceiveOperation>>> receives;
  for (int i = 0; i < 400; ++i) {
    pairs.push_back(fixture_.connect_tcp());
    receives.push_back(std::make_unique<Recorded<ReceiveOperation>>());
    ASSERT_FALSE(backend().receive(*pairs.back().ours, *receives.back()));
  }
  for (std::size_t i = 0; i < pairs.size(); i += 3) {
    backend().cancel(*receives[i]);
    fixture_.turn(Duration(0));
    backend().close(*pairs[i].ours);
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (i % 3 == 0) continue;
    const std::string text = std::to_string(i);
    ASSERT_GT(::send(pairs[i].theirs.get(), text.data(), text.size(), 0), 0);
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (i % 3 == 0) continue;
    fixture_.finish(*receives[i]);
    EXPECT_EQ(receives[i]->buffer.text(), std::to_string(i));
    backend().close(*pairs[i].ours);
  }
}

TEST(SocketSlab, ReusesTheMemoryOfReleasedSockets) {
  SocketSlab slab;
  ReadinessSocket& first = slab.allocate();
  ReadinessSocket& second = slab.allocate();
  EXPECT_NE(&first, &second);
  EXPECT_EQ(first.descriptor, -1);
  first.descriptor = 7;
  first.role = SocketRole::listener;
  first.may_send = false;
  first.stopped = true;
  slab.release(first);
  ReadinessSocket& again = slab.allocate();
  EXPECT_EQ(&again, &first);
  EXPECT_EQ(again.descriptor, -1);
  EXPECT_EQ(again.role, SocketRole::stream);
  EXPECT_TRUE(again.may_receive && again.may_send);
  EXPECT_FALSE(again.peer_finished || again.urgent || again.ended || again.dead || again.paused ||
               again.reported || again.stopped);
  EXPECT_EQ(again.error, 0);
}

TEST(SocketSlab, FindsASocketByItsTagUntilItIsReleased) {
  SocketSlab slab;
  ReadinessSocket& socket = slab.allocate();
  std::set<std::uint64_t> tags;
  for (int use = 0; use < 64; ++use) {
    const std::uint64_t tag = SocketSlab::tag(socket);
    EXPECT_NE(tag, 0U);
    EXPECT_TRUE(tags.insert(tag).second) << "each use has another tag";
    EXPECT_EQ(SocketSlab::find(tag), nullptr) << "it has no descriptor yet";
    socket.descriptor = use;
    EXPECT_EQ(SocketSlab::find(tag), &socket);
    slab.release(socket);
    EXPECT_EQ(SocketSlab::find(tag), nullptr);
    ASSERT_EQ(&slab.allocate(), &socket);
    socket.descriptor = 100;
    EXPECT_EQ(SocketSlab::find(tag), nullptr) << "the next use of the memory";
    socket.descriptor = -1;
  }
  EXPECT_TRUE(tags.contains(SocketSlab::tag(socket))) << "64 tags take turns";
}

TEST(SocketSlab, VisitsEachOpenSocket) {
  constexpr int count = 600;  // several chunks
  SocketSlab slab;
  std::set<ReadinessSocket*> sockets;
  for (int i = 0; i < count; ++i) {
    ReadinessSocket& socket = slab.allocate();
    EXPECT_TRUE(sockets.insert(&socket).second);
    socket.descriptor = i;
  }
  slab.release(**sockets.begin());
  sockets.erase(sockets.begin());
  std::set<ReadinessSocket*> visited;
  slab.for_each_open([&](ReadinessSocket& socket) { EXPECT_TRUE(visited.insert(&socket).second); });
  EXPECT_EQ(visited, sockets);
}

// A backend counts the entries into the kernel of its own thread.
TEST_P(ReadinessTest, CountsEachSystemCallOfAConnection) {
  const auto calls = [&] { return backend().counters().system_calls.value(); };
  auto pair = fixture_.connect_tcp();
  const std::uint64_t begun = calls();
  Recorded<SendOperation> send;
  const std::array<Bytes, 3> pieces{to_bytes("he"), Bytes(), to_bytes("llo")};
  send.pieces = pieces;
  ASSERT_TRUE(backend().send(*pair.ours, send));
  EXPECT_EQ(calls(), begun + 1);
  EXPECT_EQ(backend().counters().bytes_sent.value(), 5U);
  ASSERT_EQ(::send(pair.theirs.get(), "hello!", 6, 0), 6);
  pollfd arrived{pair.ours->descriptor, POLLIN, 0};
  ASSERT_EQ(::poll(&arrived, 1, 10'000), 1);
  EXPECT_EQ(receive_text(*pair.ours), "hello!");
  EXPECT_EQ(calls(), begun + 2);
  EXPECT_EQ(backend().counters().bytes_received.value(), 6U);
  ASSERT_TRUE(backend().shut_down_sending(*pair.ours));
  EXPECT_EQ(calls(), begun + 3);
  backend().close(*pair.ours);
  EXPECT_EQ(calls(), begun + 4) << "a connection that never waited is not registered";
}

TEST_P(ReadinessTest, CountsTheCallsOfAConnect) {
  const auto calls = [&] { return backend().counters().system_calls.value(); };
  auto listener = os::open_listener(os::Address::loopback(0));
  Socket* socket = fixture_.adopt(std::move(*os::open_stream(os::AddressFamily::ipv4)));
  const std::uint64_t begun = calls();
  Recorded<ConnectOperation> connect;
  connect.peer = *os::local_address(listener->get());
  const bool immediately = backend().connect(*socket, connect);
  EXPECT_GE(calls(), begun + 1);
  if (!immediately) fixture_.finish(connect);
  EXPECT_FALSE(connect.error());
  EXPECT_EQ(connect.runs, immediately ? 0 : 1);
  backend().close(*socket);
}

TEST_P(ReadinessTest, CountsAcceptedConnections) {
  auto listener = os::open_listener(os::Address::loopback(0));
  const auto address = *os::local_address(listener->get());
  Socket* socket = fixture_.adopt(std::move(*listener), SocketRole::listener);
  std::array<os::Fd, 3> clients;
  for (os::Fd& each : clients) {
    each = std::move(*os::open_stream(os::AddressFamily::ipv4));
    ASSERT_TRUE(os::start_connect(each.get(), address));
    Recorded<AcceptOperation> accept;
    if (!backend().accept(*socket, accept)) fixture_.finish(accept);
    EXPECT_FALSE(accept.error());
  }
  EXPECT_EQ(backend().counters().accepts.value(), 3U);
  backend().close(*socket);
}

// The report for a pending accept is still in the kernel when accepting stops.
TEST_P(ReadinessTest, AStoppedListenerLeavesConnectionsInTheQueue) {
  auto listener = os::open_listener(os::Address::loopback(0));
  const os::Fd shared = os::duplicate(listener->get()).value();
  const auto address = *os::local_address(listener->get());
  Socket* socket = fixture_.adopt(std::move(*listener), SocketRole::listener);
  Recorded<AcceptOperation> accept;
  ASSERT_FALSE(backend().accept(*socket, accept));
  fixture_.turn(Duration(0));
  auto client = os::open_stream(os::AddressFamily::ipv4);
  ASSERT_TRUE(os::start_connect(client->get(), address));
  pollfd arrived{shared.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&arrived, 1, 10'000), 1);
  backend().stop_accepting(*socket);
  fixture_.finish(accept);
  EXPECT_EQ(accept.error(), Errc::closed);
  EXPECT_EQ(accept.runs, 1);
  fixture_.turn(Duration(0));
  Recorded<AcceptOperation> late;
  EXPECT_TRUE(backend().accept(*socket, late));
  EXPECT_EQ(late.error(), Errc::closed);
  EXPECT_TRUE(os::accept_one(shared.get())) << "another process serves it";
  backend().close(*socket);
}

TEST_P(ReadinessTest, CancelledOperationsMakeRoomForTheNext) {
  auto pair = fixture_.connect_tcp();
  for (int round = 0; round < 3; ++round) {
    Recorded<ReceiveOperation> receive;
    ASSERT_FALSE(backend().receive(*pair.ours, receive));
    backend().cancel(receive);
    EXPECT_EQ(receive.state(), Operation::State::finished);
    EXPECT_EQ(receive.runs, 0) << "the loop runs it later";
    fixture_.finish(receive);
    EXPECT_EQ(receive.error(), Errc::cancelled);
    backend().cancel(receive);
    fixture_.turn(Duration(0));
    EXPECT_EQ(receive.runs, 1);
  }
  ASSERT_EQ(::send(pair.theirs.get(), "x", 1, 0), 1);
  EXPECT_EQ(receive_text(*pair.ours), "x");
  backend().close(*pair.ours);
}

TEST_P(ReadinessTest, AReceiveIntoASpanReportsItsCount) {
  auto pair = fixture_.connect_tcp();
  ASSERT_EQ(::send(pair.theirs.get(), "abcdef", 6, 0), 6);
  std::array<std::byte, 4> room{};
  for (const std::string_view expected : {"abcd", "ef"}) {
    Recorded<ReceiveOperation> receive;
    receive.target = room;
    if (!backend().receive(*pair.ours, receive)) fixture_.finish(receive);
    EXPECT_EQ(to_text(Bytes(room).first(receive.count)), expected);
    EXPECT_FALSE(receive.buffer.owns_memory());
  }
  backend().close(*pair.ours);
}

// Unread bytes, a hang-up that was reported and one that no observer wants must not end each wait.
TEST_P(ReadinessTest, ASocketThatNoOperationWaitsForDoesNotSpin) {
  auto unread = fixture_.connect_tcp();
  auto observed = fixture_.connect_tcp();
  auto ignored = fixture_.connect_tcp();
  for (Socket* socket : {unread.ours, observed.ours, ignored.ours}) {
    Recorded<ReceiveOperation> receive;
    ASSERT_FALSE(backend().receive(*socket, receive));
    backend().cancel(receive);
    fixture_.finish(receive);
  }
  RecordedHangup hangup;
  backend().observe_hangup(*observed.ours, &hangup);
  ASSERT_EQ(::send(unread.theirs.get(), "x", 1, 0), 1);
  ASSERT_NO_FATAL_FAILURE(reset(observed.theirs));
  ASSERT_NO_FATAL_FAILURE(reset(ignored.theirs));
  while (hangup.calls == 0) fixture_.turn();
  const std::uint64_t before = backend().counters().system_calls.value();
  const Instant end = after(fixture_.platform().now(), std::chrono::milliseconds(20));
  while (fixture_.platform().now() < end) backend().wait(end);
  EXPECT_LT(backend().counters().system_calls.value() - before, 8U);
  EXPECT_EQ(hangup.calls, 1);
  EXPECT_EQ(receive_text(*unread.ours), "x");
  EXPECT_EQ(receive_error(*ignored.ours), system_error(ECONNRESET));
  for (Socket* socket : {unread.ours, observed.ours, ignored.ours}) backend().close(*socket);
}

// A level that no operation waits for any more would end each wait too early.
TEST_P(ReadinessTest, AWaitAfterAFinishedOperationLastsUntilItsTime) {
  auto pair = fixture_.connect_tcp();
  const auto expect_full_wait = [&] {
    const Instant end = after(fixture_.platform().now(), std::chrono::milliseconds(3));
    backend().wait(end);
    EXPECT_GE(fixture_.platform().now(), end);
  };
  std::array<std::byte, 1> room{};
  Recorded<ReceiveOperation> receive;
  receive.target = room;
  ASSERT_FALSE(backend().receive(*pair.ours, receive));
  ASSERT_EQ(::send(pair.theirs.get(), "xy", 2, 0), 2);
  ASSERT_NO_FATAL_FAILURE(fixture_.finish(receive));
  EXPECT_EQ(receive.count, 1U);
  expect_full_wait();  // with an unread byte
  EXPECT_EQ(receive_text(*pair.ours), "y");

  const std::string text(std::size_t{64} * 1024, 'x');
  const std::vector<Bytes> pieces(300, to_bytes(text));
  Recorded<SendOperation> send;
  send.pieces = pieces;
  ASSERT_FALSE(backend().send(*pair.ours, send));
  std::vector<char> bytes(std::size_t{1024} * 1024);
  const auto drain = [&] {
    while (::recv(pair.theirs.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
  };
  while (send.runs == 0) {
    drain();
    fixture_.turn();
  }
  EXPECT_EQ(send.sent, 300 * text.size());
  // epoll reports new room once, which ends the next wait early. poll must not report it.
  drain();
  pollfd room_again{pair.ours->descriptor, POLLOUT, 0};
  ASSERT_EQ(::poll(&room_again, 1, 10'000), 1);
  if (GetParam() == BackendChoice::poll) expect_full_wait();
  backend().close(*pair.ours);
}

INSTANTIATE_TEST_SUITE_P(Each, ReadinessTest,
                         testing::Values(BackendChoice::epoll, BackendChoice::poll),
                         [](const auto& instance) {
                           return instance.param == BackendChoice::epoll ? "epoll" : "poll";
                         });

}  // namespace
}  // namespace weir::loop::readiness_test
