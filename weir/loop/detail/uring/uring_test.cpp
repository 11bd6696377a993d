// Tests of the io_uring backend: threads, limits, late completions, refusal by the kernel.
#include "weir/loop/detail/uring/uring.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <liburing.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weir/loop/test/readiness_fixture.hpp"
#include "weir/loop/test/stopped_clock_platform.hpp"
#include "weir/os/detail/io/datagram_socket.hpp"
#include "weir/os/test/io_uring_refusal.hpp"

namespace weir::loop::uring_test {
namespace {

using Receive = Recorded<ReceiveOperation>;
using Send = Recorded<SendOperation>;
using Accept = Recorded<AcceptOperation>;

bool io_uring_works() {
  return os::io_uring_refusal().empty();
}

class UringTest : public testing::TestWithParam<BackendChoice> {
 protected:
  void SetUp() override {
    if (!io_uring_works()) GTEST_SKIP() << "this machine refuses io_uring";
    fixture_ = std::make_unique<ReadinessFixture>(GetParam());
  }
  Backend& backend() { return fixture_->backend(); }
  void turn_now() { fixture_->turn(Duration(0)); }

  std::error_code receive(Socket& socket, std::string& text) {
    Receive received;
    if (!backend().receive(socket, received)) fixture_->finish(received);
    text += received.buffer.text();
    return received.error();
  }
  std::string receive_all(Socket& socket) {
    std::string text;
    std::error_code error;
    while (!error) error = receive(socket, text);
    EXPECT_EQ(error, Errc::end_of_stream);
    return text;
  }
  /// Lets the kernel read ahead while no operation waits.
  void read_ahead(Socket& socket) {
    Receive receive;
    ASSERT_FALSE(backend().receive(socket, receive));
    backend().cancel(receive);
    fixture_->finish(receive);
    EXPECT_EQ(receive.error(), Errc::cancelled);
  }
  /// Sends as many bytes as the connection takes without waiting.
  static std::size_t send_what_fits(const os::Fd& from, std::string_view text) {
    std::size_t sent = 0;
    for (;;) {
      const auto count =
          ::send(from.get(), text.data() + sent, text.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count <= 0) return sent;
      sent += static_cast<std::size_t>(count);
    }
  }
  static void send_all(const os::Fd& from, std::string_view text) {
    ASSERT_EQ(::send(from.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  static void reset(os::Fd& peer) {
    ASSERT_TRUE(os::set_linger(peer.get(), std::chrono::seconds(0)).has_value());
    peer.close();
  }
  /// Returns true if the peer sees that the connection is over. Does not wait.
  static bool sees_the_end(const os::Fd& peer) {
    char byte = 0;
    const auto count = ::recv(peer.get(), &byte, 1, MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno == ECONNRESET);
  }
  ReadinessFixture::Pair connect_with(SocketOptions options) {
    auto listener = os::open_listener(os::Address::loopback(0));
    auto theirs = os::open_stream(os::AddressFamily::ipv4);
    EXPECT_TRUE(os::start_connect(theirs->get(), *os::local_address(listener->get())).has_value());
    auto ours = backend().adopt(Descriptor(fixture_->platform(), accept_from(*listener).release()),
                                options);
    return {*ours, std::move(*theirs)};
  }

  std::unique_ptr<ReadinessFixture> fixture_;
};

std::string letters(std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i % 23);
  return text;
}

TEST_P(UringTest, ReportsItsName) {
  EXPECT_EQ(backend().name(), GetParam() == BackendChoice::uring ? "uring" : "uring:6.1");
}

// A runtime makes a backend here, runs it on another thread and destroys it here.
TEST_P(UringTest, BelongsToTheThreadThatWaitsFirst) {
  OsPlatform platform;
  RunQueue ready;
  auto made = platform.make_backend(GetParam(), ready);
  ASSERT_TRUE(made.has_value());
  auto sockets = os::open_socket_pair();
  auto socket = made->backend->adopt(Descriptor(platform, sockets->first.release()), {});
  Receive receive;
  ASSERT_FALSE(made->backend->receive(**socket, receive));
  std::thread runner([&] {
    send_all(sockets->second, "hello");
    while (receive.runs == 0) {
      made->backend->wait(never);
      while (Runnable* runnable = ready.pop()) runnable->run();
    }
  });
  runner.join();
  EXPECT_EQ(receive.buffer.text(), "hello");
  made->backend.reset();
  EXPECT_TRUE(sees_the_end(sockets->second));
}

TEST_P(UringTest, ClosesItsSocketsIfItNeverRan) {
  OsPlatform platform;
  RunQueue ready;
  auto made = platform.make_backend(GetParam(), ready);
  auto pairs = std::array{os::open_socket_pair(), os::open_socket_pair()};
  auto open = made->backend->adopt(Descriptor(platform, pairs[0]->first.release()), {});
  auto closed = made->backend->adopt(Descriptor(platform, pairs[1]->first.release()), {});
  RecordedHangup observer;
  made->backend->observe_hangup(**open, &observer);
  made->backend->observe_hangup(**closed, &observer);
  made->backend->close(**closed);
  EXPECT_FALSE(sees_the_end(pairs[1]->second));  // nothing has been submitted yet
  made->backend.reset();
  EXPECT_TRUE(sees_the_end(pairs[0]->second));
  EXPECT_TRUE(sees_the_end(pairs[1]->second));
}

std::size_t mapped_pages() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

TEST_P(UringTest, UnmapsTheMemoryThatItSharesWithTheKernel) {
  constexpr std::size_t backends = 200;
  fixture_.reset();
  const std::size_t before = mapped_pages();
  for (std::size_t made = 0; made < backends; ++made) ReadinessFixture each(GetParam());
  EXPECT_LT(mapped_pages(), before + backends / 2);
}

TEST_P(UringTest, ClosesUntakenConnectionsWhenDestroyedOnAnotherThread) {
  OsPlatform platform;
  RunQueue ready;
  auto made = platform.make_backend(GetParam(), ready);
  auto listener = os::open_listener(os::Address::loopback(0));
  const auto address = *os::local_address(listener->get());
  auto socket = made->backend->adopt(Descriptor(platform, listener->release()),
                                     {.role = SocketRole::listener});
  std::array<os::Fd, 3> clients;
  for (auto& client : clients) {
    client = std::move(*os::open_stream(os::AddressFamily::ipv4));
    ASSERT_TRUE(os::start_connect(client.get(), address).has_value());
  }
  Accept accept;
  std::thread runner([&] {
    ASSERT_FALSE(made->backend->accept(**socket, accept));
    while (ready.empty()) made->backend->wait(never);
    ready.pop()->run();
  });
  runner.join();
  EXPECT_FALSE(sees_the_end(clients[2]));
  made->backend.reset();
  EXPECT_FALSE(sees_the_end(clients[0]));  // its connection belongs to `accept`
  EXPECT_TRUE(sees_the_end(clients[1]));
  EXPECT_TRUE(sees_the_end(clients[2]));
}

// An armed receive holds the file: the peer would not notice the close of the descriptor alone.
TEST_P(UringTest, ClosingNotifiesThePeerInTheSameTurn) {
  auto pair = fixture_->connect_tcp();
  ASSERT_NO_FATAL_FAILURE(read_ahead(*pair.ours));
  turn_now();
  backend().close(*pair.ours);
  turn_now();
  EXPECT_TRUE(sees_the_end(pair.theirs));
}

bool is_open(int descriptor) {
  return ::fcntl(descriptor, F_GETFD) >= 0;
}

// The port of such a socket is free immediately.
TEST_P(UringTest, ClosesASocketWithoutRequestsImmediately) {
  for (const SocketRole role : {SocketRole::listener, SocketRole::datagrams}) {
    const bool listens = role == SocketRole::listener;
    auto opened = listens ? os::open_listener(os::Address::loopback(0))
                          : os::open_datagram_socket({.local = os::Address::loopback(0)});
    Socket* socket = fixture_->adopt(std::move(*opened), role);
    const int descriptor = socket->descriptor;
    EXPECT_TRUE(is_open(descriptor));
    backend().close(*socket);
    EXPECT_FALSE(is_open(descriptor));
  }
}

TEST_P(UringTest, ClosesASocketWithRequestsInTheNextWait) {
  auto pair = fixture_->connect_tcp();
  auto listener = os::open_listener(os::Address::loopback(0));
  Socket* listening = fixture_->adopt(std::move(*listener), SocketRole::listener);
  ASSERT_NO_FATAL_FAILURE(read_ahead(*pair.ours));
  Accept accept;
  ASSERT_FALSE(backend().accept(*listening, accept));
  backend().cancel(accept);
  turn_now();
  for (Socket* socket : {pair.ours, listening}) {
    const int descriptor = socket->descriptor;
    backend().close(*socket);
    EXPECT_TRUE(is_open(descriptor));
    // The completions of the closed socket concern no operation and do not end the wait.
    const Instant until = after(fixture_->platform().now(), std::chrono::milliseconds(5));
    backend().wait(until);
    EXPECT_GE(fixture_->platform().now(), until);
    EXPECT_FALSE(is_open(descriptor));
  }
}

TEST_P(UringTest, SocketsLeftOpenAreClosedWithTheBackend) {
  auto pair = fixture_->connect_tcp();
  ASSERT_NO_FATAL_FAILURE(read_ahead(*pair.ours));
  auto listener = os::open_listener(os::Address::loopback(0));
  const auto address = *os::local_address(listener->get());
  Socket* listening = fixture_->adopt(std::move(*listener), SocketRole::listener);
  Accept accept;
  ASSERT_FALSE(backend().accept(*listening, accept));
  backend().cancel(accept);
  auto client = os::open_stream(os::AddressFamily::ipv4);
  ASSERT_TRUE(os::start_connect(client->get(), address));
  turn_now();
  auto datagrams = os::open_datagram_socket({.local = os::Address::loopback(0)});
  Socket* socket = fixture_->adopt(std::move(*datagrams), SocketRole::datagrams);
  const std::array descriptors{pair.ours->descriptor, listening->descriptor, socket->descriptor};
  EXPECT_FALSE(sees_the_end(pair.theirs));
  fixture_.reset();
  EXPECT_TRUE(sees_the_end(pair.theirs));
  EXPECT_TRUE(sees_the_end(*client)) << "no operation took this connection";
  for (const int each : descriptors) EXPECT_FALSE(is_open(each));
}

TEST_P(UringTest, ClosesTheConnectionsThatNoOperationTook) {
  auto listener = os::open_listener(os::Address::loopback(0));
  const auto address = *os::local_address(listener->get());
  Socket* socket = fixture_->adopt(std::move(*listener), SocketRole::listener);
  Accept accept;
  ASSERT_FALSE(backend().accept(*socket, accept));
  std::array<os::Fd, 3> clients;
  for (os::Fd& each : clients) {
    each = std::move(*os::open_stream(os::AddressFamily::ipv4));
    ASSERT_TRUE(os::start_connect(each.get(), address));
  }
  fixture_->finish(accept);
  turn_now();
  backend().close(*socket);
  turn_now();
  EXPECT_FALSE(sees_the_end(clients[0]));
  EXPECT_TRUE(sees_the_end(clients[1]));
  EXPECT_TRUE(sees_the_end(clients[2]));
}

// Another loop or process serves the socket from then on.
TEST_P(UringTest, AClosedListenerOfASharedSocketAcceptsNoMore) {
  auto listener = os::open_listener(os::Address::loopback(0));
  const os::Fd shared = os::duplicate(listener->get()).value();
  const auto address = *os::local_address(shared.get());
  const SocketOptions options{.role = SocketRole::listener, .shared = true};
  auto socket =
      backend().adopt(Descriptor(fixture_->platform(), listener->release()), options).value();
  Accept accept;
  ASSERT_FALSE(backend().accept(*socket, accept));
  backend().cancel(accept);
  fixture_->finish(accept);
  turn_now();
  backend().close(*socket);
  turn_now();
  auto client = os::open_stream(os::AddressFamily::ipv4);
  ASSERT_TRUE(os::start_connect(client->get(), address));
  turn_now();
  pollfd waiting{shared.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 10'000), 1) << "the closed listener took the connection";
}

TEST_P(UringTest, ASharedListenerStaysOpenIfItsBackendIsDestroyedOnAnotherThread) {
  OsPlatform platform;
  RunQueue ready;
  auto made = platform.make_backend(GetParam(), ready);
  auto listener = os::open_listener(os::Address::loopback(0));
  const os::Fd shared = os::duplicate(listener->get()).value();
  const SocketOptions options{.role = SocketRole::listener, .shared = true};
  ASSERT_TRUE(made->backend->adopt(Descriptor(platform, listener->release()), options));
  std::thread([&] { made->backend->wait(Instant::min()); }).join();
  made->backend.reset();
  auto client = os::open_stream(os::AddressFamily::ipv4);
  ASSERT_TRUE(os::start_connect(client->get(), *os::local_address(shared.get())));
  pollfd waiting{shared.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 10'000), 1);
}

// The ring closes the descriptor only in the next wait.
TEST_P(UringTest, AClosedListenerRefusesConnectionsImmediately) {
  auto listener = os::open_listener(os::Address::loopback(0));
  const auto address = *os::local_address(listener->get());
  Socket* socket = fixture_->adopt(std::move(*listener), SocketRole::listener);
  Accept accept;
  ASSERT_FALSE(backend().accept(*socket, accept));
  backend().cancel(accept);
  fixture_->finish(accept);
  const int descriptor = socket->descriptor;
  backend().close(*socket);
  ASSERT_TRUE(is_open(descriptor));
  auto client = os::open_stream(os::AddressFamily::ipv4);
  const auto started = os::start_connect(client->get(), address);
  std::error_code error;
  if (started) {
    pollfd ended{client->get(), POLLOUT, 0};
    ASSERT_EQ(::poll(&ended, 1, 10'000), 1);
    if (const auto connected = os::take_error(client->get()); !connected) error = connected.error();
  } else {
    error = started.error();
  }
  EXPECT_EQ(error, system_error(ECONNREFUSED));
  turn_now();
}

TEST_P(UringTest, AHangupEndsTheWait) {
  auto pair = fixture_->connect_tcp();
  RecordedHangup hangup;
  backend().observe_hangup(*pair.ours, &hangup);
  turn_now();
  ASSERT_NO_FATAL_FAILURE(reset(pair.theirs));
  backend().wait(never);
  EXPECT_EQ(hangup.calls, 1);
  backend().close(*pair.ours);
}

TEST_P(UringTest, LateCompletionsOfAClosedSocketDoNotReachTheNextOne) {
  for (int round = 0; round < 300; ++round) {
    auto next = os::open_socket_pair();
    auto old = fixture_->connect_tcp();
    RecordedHangup hangup;
    backend().observe_hangup(*old.ours, &hangup);
    if (round % 2 == 0) turn_now();
    const int number = old.ours->descriptor;
    send_all(old.theirs, "for the old one");
    if (round % 3 == 0) reset(old.theirs);
    backend().close(*old.ours);
    turn_now();
    Socket* ours = fixture_->adopt(os::Fd(::fcntl(next->first.get(), F_DUPFD_CLOEXEC, number)));
    ASSERT_EQ(ours->descriptor, number) << "it is still open";
    next->first.close();
    send_all(next->second, "new");
    std::string text;
    EXPECT_EQ(receive(*ours, text), std::error_code());
    EXPECT_EQ(text, "new");
    EXPECT_EQ(hangup.calls, 0);
    backend().close(*ours);
  }
}

TEST_P(UringTest, ReadingAheadStopsAtTheLimitAndResumes) {
  constexpr std::size_t unread_max = 32 * 1024;
  auto pair = connect_with({.unread_max = unread_max});
  const std::string text = letters(3'000'000);
  ASSERT_NO_FATAL_FAILURE(read_ahead(*pair.ours));
  turn_now();
  std::size_t sent = send_what_fits(pair.theirs, text);
  ASSERT_GT(sent, 4 * unread_max);
  for (int i = 0; i < 20; ++i) {
    turn_now();
    sent += send_what_fits(pair.theirs, std::string_view(text).substr(sent));
  }
  const std::uint64_t ahead = backend().counters().bytes_received.value();
  EXPECT_GE(ahead, unread_max / 2);
  EXPECT_LE(ahead, unread_max + Buffer::default_capacity);
  std::string got;
  while (got.size() < text.size()) {
    sent += send_what_fits(pair.theirs, std::string_view(text).substr(sent));
    ASSERT_EQ(receive(*pair.ours, got), std::error_code());
  }
  EXPECT_TRUE(got == text);
  backend().close(*pair.ours);
}

TEST_P(UringTest, SmallArrivalsDoNotPinReadBuffers) {
  auto pair = fixture_->connect_tcp();
  ASSERT_NO_FATAL_FAILURE(read_ahead(*pair.ours));
  turn_now();
  const std::size_t before = fixture_->pool().blocks_in_use();
  const std::string text = letters(3000);
  for (const char byte : text) {
    send_all(pair.theirs, {&byte, 1});
    turn_now();
  }
  EXPECT_LE(fixture_->pool().blocks_in_use() - before, 10u);
  ASSERT_TRUE(os::shut_down_sending(pair.theirs.get()).has_value());
  EXPECT_EQ(receive_all(*pair.ours), text);
  backend().close(*pair.ours);
  turn_now();
  EXPECT_LE(fixture_->pool().blocks_in_use(), before);
}

TEST_P(UringTest, AResetIsSeenWhileReadingIsPaused) {
  auto pair = connect_with({.unread_max = 1000});
  RecordedHangup hangup;
  backend().observe_hangup(*pair.ours, &hangup);
  turn_now();
  send_all(pair.theirs, letters(5000));
  for (int i = 0; i < 5; ++i) turn_now();
  EXPECT_EQ(hangup.calls, 0);
  ASSERT_NO_FATAL_FAILURE(reset(pair.theirs));
  fixture_->turn();
  EXPECT_EQ(hangup.calls, 1);
  std::string text;
  std::error_code error;
  while (!error) error = receive(*pair.ours, text);
  EXPECT_EQ(error, system_error(ECONNRESET));
  EXPECT_EQ(text, letters(5000).substr(0, text.size()));
  EXPECT_GE(text.size(), 1000u);
  backend().close(*pair.ours);
}

TEST_P(UringTest, AResetIsSeenAfterTheEndOfTheStream) {
  auto pair = fixture_->connect_tcp();
  RecordedHangup hangup;
  backend().observe_hangup(*pair.ours, &hangup);
  ASSERT_TRUE(os::shut_down_sending(pair.theirs.get()).has_value());
  std::string text;
  EXPECT_EQ(receive(*pair.ours, text), Errc::end_of_stream);
  turn_now();
  EXPECT_EQ(hangup.calls, 0);
  ASSERT_NO_FATAL_FAILURE(reset(pair.theirs));
  fixture_->turn();
  EXPECT_EQ(hangup.calls, 1);
  backend().close(*pair.ours);
}

/// Returns the number of requests of a kind that the rings of this process have armed, as the
/// kernel shows them.
std::size_t armed(io_uring_op kind) {
  const std::string prefix = "  op=" + std::to_string(kind) + ",";
  std::size_t count = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream lines(each.path());
    for (std::string line; std::getline(lines, line);) count += line.starts_with(prefix);
  }
  return count;
}

/// A stream whose receive stays armed after data has arrived, if the kernel supports that.
class UringHangupCheckTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!io_uring_works()) GTEST_SKIP() << "this machine refuses io_uring";
    backend_ = std::move(*make_uring_backend(platform_, ready_));
    auto listener = os::open_listener(os::Address::loopback(0));
    theirs_ = std::move(*os::open_stream(os::AddressFamily::ipv4));
    ASSERT_TRUE(os::start_connect(theirs_.get(), *os::local_address(listener->get())));
    ours_ = backend_->adopt(Descriptor(platform_, accept_from(*listener).release()), {}).value();
    submit();
    polls_ = armed(IORING_OP_POLL_ADD);
    if (polls_ == 0) GTEST_SKIP() << "the kernel does not show what is armed";
    for (int arrival = 0; arrival < 2; ++arrival) {
      Receive receive;
      ASSERT_FALSE(backend_->receive(*ours_, receive));
      ASSERT_EQ(::send(theirs_.get(), "data", 4, MSG_NOSIGNAL), 4);
      while (ready_.empty()) backend_->wait(never);
      while (Runnable* runnable = ready_.pop()) runnable->run();
      ASSERT_EQ(receive.buffer.text(), "data");
    }
    receives_ = armed(IORING_OP_RECV);
    submit();
  }
  void TearDown() override {
    if (ours_ != nullptr) backend_->close(*ours_);
  }
  void submit() {
    for (int wait = 0; wait < 2; ++wait) backend_->wait(Instant::min());
  }

  StoppedClockPlatform platform_;
  BlockPool pool_;
  ScopedBlockPool use_{pool_};
  RunQueue ready_;
  std::unique_ptr<Backend> backend_;
  os::Fd theirs_;
  Socket* ours_ = nullptr;
  std::size_t polls_ = 0;
  std::size_t receives_ = 0;
};

TEST_F(UringHangupCheckTest, AnArmedReceiveGetsAPollRequestExactlyAfterASecond) {
  EXPECT_EQ(armed(IORING_OP_POLL_ADD), polls_);
  platform_.moment += std::chrono::seconds(1) - std::chrono::nanoseconds(1);
  submit();
  EXPECT_EQ(armed(IORING_OP_POLL_ADD), polls_) << "one nanosecond too early";
  platform_.moment += std::chrono::nanoseconds(1);
  submit();
  EXPECT_EQ(armed(IORING_OP_POLL_ADD), polls_ + receives_);
}

// A wait that ignored the time of the check would last until the next event.
TEST_F(UringHangupCheckTest, AWaitWithoutALimitMakesTheCheckInTime) {
  platform_.moment += std::chrono::seconds(1);
  bool checked = false;
  std::thread waker([&] {
    for (int tries = 0; !checked && tries < 1000; ++tries) {
      checked = armed(IORING_OP_POLL_ADD) == polls_ + receives_;
      if (!checked) ::poll(nullptr, 0, 10);
    }
    backend_->wake();
  });
  backend_->wait(never);
  waker.join();
  EXPECT_TRUE(checked);
}

TEST_P(UringTest, AReceiveThatFoundNoMemoryForABufferTriesAgain) {
  auto pair = fixture_->connect_tcp();
  send_all(pair.theirs, "hello");
  fixture_->pool().fail_after(0);
  Receive receive;
  ASSERT_FALSE(backend().receive(*pair.ours, receive));
  EXPECT_FALSE(fixture_->pool().will_fail());
  ASSERT_NO_FATAL_FAILURE(fixture_->finish(receive));
  EXPECT_EQ(receive.buffer.text(), "hello");
  backend().close(*pair.ours);
}

// The operations are more than the submission queue holds, and their arrivals are more than the
// buffers.
TEST_P(UringTest, ManyOperationsAtTheSameTimeAllFinish) {
  constexpr std::size_t count = 1500;
  if (fixture_->platform().descriptor_limit().descriptors_max < 3 * count)
    GTEST_SKIP() << "the limit of descriptors is too low";
  std::vector<os::Fd> theirs;
  std::vector<Socket*> ours;
  std::vector<std::unique_ptr<Receive>> receives;
  for (std::size_t i = 0; i < count; ++i) {
    auto pair = os::open_socket_pair();
    theirs.push_back(std::move(pair->second));
    send_all(theirs.back(), std::to_string(i));
    ours.push_back(fixture_->adopt(std::move(pair->first)));
    receives.push_back(std::make_unique<Receive>());
    ASSERT_FALSE(backend().receive(*ours.back(), *receives.back()));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (receives[i]->runs == 0) fixture_->finish(*receives[i]);
    EXPECT_EQ(receives[i]->buffer.text(), std::to_string(i));
  }
  for (Socket* each : ours) backend().close(*each);
  // Newer kernels release some in each turn, not all at the same time.
  for (std::size_t i = 0; i < count; i += 16) turn_now();
  for (const os::Fd& each : theirs) EXPECT_TRUE(sees_the_end(each));
}

/// Returns the number of requests that the rings of this process have submitted, as the kernel
/// shows it; 0 if it does not.
std::size_t submitted() {
  const std::string prefix = "CachedSqHead:";
  std::size_t count = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream lines(each.path());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(prefix)) count += std::stoul(line.substr(prefix.size()));
    }
  }
  return count;
}

// The data of more than two thirds of the streams finds no buffer at first.
TEST_P(UringTest, NoMoreStreamsTryAgainThanThereAreBuffers) {
  constexpr std::size_t buffers = 256;
  constexpr std::size_t count = 3 * buffers;
  turn_now();
  const std::size_t before = submitted();
  const std::uint64_t calls_before = backend().counters().system_calls.value();
  if (before == 0) GTEST_SKIP() << "the kernel does not show what was submitted";
  if (fixture_->platform().descriptor_limit().descriptors_max < 3 * count)
    GTEST_SKIP() << "the limit of descriptors is too low";
  std::vector<os::Fd> theirs;
  std::vector<Socket*> ours;
  std::vector<std::unique_ptr<Receive>> receives;
  for (std::size_t i = 0; i < count; ++i) {
    auto pair = os::open_socket_pair();
    theirs.push_back(std::move(pair->second));
    send_all(theirs.back(), "x");
    ours.push_back(fixture_->adopt(std::move(pair->first)));
    receives.push_back(std::make_unique<Receive>());
    ASSERT_FALSE(backend().receive(*ours.back(), *receives.back()));
  }
  for (const auto& each : receives) {
    if (each->runs == 0) fixture_->finish(*each);
  }
  const std::size_t attempts = submitted() - before;
  EXPECT_GT(attempts, count) << "the test needs streams that find no buffer";
  EXPECT_LE(attempts, count + (count - buffers)) << "a second attempt failed again";
  EXPECT_LT(backend().counters().system_calls.value() - calls_before, buffers)
      << "one stream for each buffer tries again in a turn";
  for (Socket* each : ours) backend().close(*each);
}

// The kernel keeps completions for which the queue has no room.
TEST_P(UringTest, MoreCompletionsThanTheQueueHoldsAreNotLost) {
  constexpr std::size_t count = 9000;  // the queue has 8192
  if (fixture_->platform().descriptor_limit().descriptors_max < count + 100) {
    GTEST_SKIP() << "needs " << count << " descriptors";
  }
  std::vector<Socket*> sockets;
  std::vector<std::unique_ptr<Send>> sends;
  const std::array<Bytes, 1> pieces{to_bytes("x")};
  for (std::size_t i = 0; i < count / 2; ++i) {
    auto pair = os::open_socket_pair();
    ASSERT_TRUE(pair.has_value());
    sockets.push_back(fixture_->adopt(std::move(pair->first)));
    sockets.push_back(fixture_->adopt(std::move(pair->second)));
  }
  for (Socket* each : sockets) {
    sends.push_back(std::make_unique<Send>());
    sends.back()->pieces = pieces;
    ASSERT_FALSE(backend().send(*each, *sends.back()));
  }
  for (const auto& each : sends) {
    if (each->runs == 0) fixture_->finish(*each);
    EXPECT_EQ(each->error(), std::error_code());
  }
  for (Socket* each : sockets) backend().close(*each);
}

TEST_P(UringTest, ConnectionsAcceptedAheadAreBoundedAndNotLost) {
  constexpr std::size_t count = 200;
  auto listener = os::open_listener(os::Address::loopback(0));
  const auto address = *os::local_address(listener->get());
  Socket* socket = fixture_->adopt(std::move(*listener), SocketRole::listener);
  Accept cancelled;
  ASSERT_FALSE(backend().accept(*socket, cancelled));
  backend().cancel(cancelled);
  fixture_->finish(cancelled);
  std::vector<os::Fd> clients;
  for (std::size_t i = 0; i < count; ++i) {
    clients.push_back(std::move(*os::open_stream(os::AddressFamily::ipv4)));
    ASSERT_TRUE(os::start_connect(clients.back().get(), address).has_value());
    turn_now();
  }
  pollfd waiting{socket->descriptor, POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 0), 1) << "the listener has accepted more than its limit";
  std::vector<Descriptor> accepted;
  while (accepted.size() < count) {
    Accept accept;
    if (!backend().accept(*socket, accept)) fixture_->finish(accept);
    ASSERT_EQ(accept.error(), std::error_code());
    accepted.push_back(std::move(accept.accepted));
  }
  backend().close(*socket);
}

TEST_P(UringTest, BusyConnectionsShareOneEntryIntoTheKernel) {
  constexpr int count = 64;
  constexpr int rounds = 50;
  struct Echo {
    Socket* socket = nullptr;
    os::Fd theirs;
    Receive receive;
    Send send;
    std::array<Bytes, 1> pieces;
  };
  std::vector<std::unique_ptr<Echo>> echoes;
  for (int i = 0; i < count; ++i) {
    auto pair = fixture_->connect_tcp();
    echoes.push_back(std::make_unique<Echo>());
    echoes.back()->socket = pair.ours;
    echoes.back()->theirs = std::move(pair.theirs);
  }
  const std::uint64_t before = backend().counters().system_calls.value();
  for (int round = 0; round < rounds; ++round) {
    for (auto& each : echoes) {
      each->receive.runs = 0;
      send_all(each->theirs, "ping");
      ASSERT_FALSE(backend().receive(*each->socket, each->receive));
    }
    for (auto& each : echoes) {
      if (each->receive.runs == 0) fixture_->finish(each->receive);
      each->pieces = {each->receive.buffer.bytes()};
      each->send.pieces = each->pieces;
      each->send.runs = 0;
      ASSERT_FALSE(backend().send(*each->socket, each->send));
    }
    for (auto& each : echoes) {
      if (each->send.runs == 0) fixture_->finish(each->send);
      std::array<char, 8> bytes;
      ASSERT_EQ(::recv(each->theirs.get(), bytes.data(), bytes.size(), 0), 4);
    }
  }
  const std::uint64_t calls = backend().counters().system_calls.value() - before;
  EXPECT_LE(calls * 10, std::uint64_t{count} * rounds) << "at most one for ten requests";
  for (auto& each : echoes) backend().close(*each->socket);
}

TEST_P(UringTest, WakesAreNeverLost) {
  constexpr int rounds = 2000;
  std::atomic<int> asked{0};
  std::atomic<int> seen{0};
  std::thread waker([&] {
    for (int i = 1; i <= rounds; ++i) {
      asked.store(i);
      backend().wake();
      while (seen.load() < i) std::this_thread::yield();
    }
  });
  while (seen.load() < rounds) {
    backend().wait(never);
    seen.store(asked.load());
  }
  waker.join();
  // Two wake-ups before the wait: it returns once.
  backend().wake();
  backend().wake();
  backend().wait(never);
  const Instant until = after(fixture_->platform().now(), std::chrono::milliseconds(5));
  backend().wait(until);
  EXPECT_GE(fixture_->platform().now(), until);
}

/// Makes a system call fail with EPERM for the rest of this thread's life, as the profiles of
/// container runtimes do.
void refuse_system_call(int number) {
  std::array<sock_filter, 4> program = {
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{program.size(), program.data()};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

TEST(UringRefusedTest, ReportsTheError) {
  for (const int number : {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register}) {
    if (number != SYS_io_uring_setup && !io_uring_works()) continue;
    std::thread([number] {
      ASSERT_NO_FATAL_FAILURE(refuse_system_call(number));
      OsPlatform platform;
      RunQueue ready;
      const auto made = make_uring_backend(platform, ready);
      ASSERT_FALSE(made.has_value());
      EXPECT_EQ(made.error(), system_error(EPERM)) << "call " << number;
    }).join();
  }
}

INSTANTIATE_TEST_SUITE_P(Each, UringTest,
                         testing::Values(BackendChoice::uring, BackendChoice::uring_6_1),
                         [](const auto& instance) {
                           return instance.param == BackendChoice::uring ? "uring" : "uring_6_1";
                         });

}  // namespace
}  // namespace weir::loop::uring_test
