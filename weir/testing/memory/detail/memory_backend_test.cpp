// Tests of the simulated backend: the decisions that its platform makes for it, its reports, and
// its use of the clock. The contract of backends is tested elsewhere.
#include "weir/testing/memory/detail/memory_backend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/detail/block_pool.hpp"
#include "weir/testing/test/probe.hpp"
#include "weir/testing/test/scripted_platform.hpp"

namespace weir::memory_backend_test {
namespace {

using os::Address;
using testing::ElementsAre;

/// A backend without a loop: the test queues, waits and runs by hand.
class MemoryBackendTest : public testing::Test {
 protected:
  struct Connection {
    loop::Socket& client;
    loop::Socket& server;
  };

  loop::Socket& adopt(loop::Descriptor descriptor,
                      loop::SocketRole role = loop::SocketRole::stream) {
    return *backend_.adopt(std::move(descriptor), {.role = role}).value();
  }
  loop::Socket& listen(const Address& address = Address::loopback(80),
                       const ListenOptions& how = {}) {
    return adopt(platform_.listen(address, how).value(), loop::SocketRole::listener);
  }
  loop::Socket& open(const Address& peer = Address::loopback(80)) {
    return adopt(platform_.open_stream(peer).value());
  }
  loop::Socket& connected(const Address& peer = Address::loopback(80)) {
    loop::Socket& socket = open(peer);
    ConnectProbe connect;
    connect.peer = peer;
    start(backend_, socket, connect);
    wait();
    EXPECT_TRUE(connect.succeeded());
    return socket;
  }
  Connection connect(loop::Socket& listener) {
    loop::Socket& client = connected(platform_.local_address(listener.descriptor).value());
    AcceptProbe accept;
    EXPECT_TRUE(start(backend_, listener, accept));
    return {client, adopt(std::move(accept.accepted))};
  }
  /// Makes the backend look for finished operations; no time passes.
  void wait() {
    backend_.wait(platform_.now());
    run_ready();
  }
  void run_ready() {
    while (loop::Runnable* const next = ready_.pop()) next->run();
  }
  void pass(Duration length) {
    platform_.clock().move_to(after(platform_.now(), length));
    wait();
  }
  void send(loop::Socket& socket, std::string_view text) {
    const Bytes piece = to_bytes(text);
    SendProbe probe;
    probe.pieces = {&piece, 1};
    start(backend_, socket, probe);
    for (int waits = 0; waits < 100 && !probe.done(); ++waits) wait();
    EXPECT_TRUE(probe.succeeded());
  }
  void forget_records() {
    script_.begun.clear();
    script_.finished.clear();
  }

  ScriptedPlatform platform_{{.file_time = 3ms}};
  ScriptedNondeterminism& script_ = platform_.script;
  loop::RunQueue ready_;
  MemoryBackend backend_{platform_, ready_};
};

TEST_F(MemoryBackendTest, ReportsTheBeginAndTheEndOfEachOperation) {
  loop::Socket& listener = listen();
  loop::Socket& client = connected();
  AcceptProbe accept;
  start(backend_, listener, accept);
  EXPECT_THAT(script_.begun, ElementsAre("connect on a stream", "accept"));
  EXPECT_THAT(script_.finished, ElementsAre("connect 0", "accept 0"));
  forget_records();
  loop::Socket& server = adopt(std::move(accept.accepted));
  send(client, "hello");
  std::array<std::byte, 2> two{};
  ReceiveProbe some;
  some.target = two;
  ASSERT_TRUE(start(backend_, server, some));
  EXPECT_EQ(some.count, 2U);
  EXPECT_FALSE(some.buffer.owns_memory());
  ReceiveProbe rest;
  ASSERT_TRUE(start(backend_, server, rest));
  EXPECT_EQ(rest.buffer.text(), "llo");
  EXPECT_EQ(rest.count, 0U);
  EXPECT_THAT(script_.begun,
              ElementsAre("send on a stream", "receive on a stream", "receive on a stream"));
  EXPECT_THAT(script_.finished, ElementsAre("send 5", "receive 2", "receive 3"));
}

TEST_F(MemoryBackendTest, ReportsTheEndOfOperationsThatHadToWait) {
  loop::Socket& listener = listen();
  AcceptProbe accept;
  EXPECT_FALSE(start(backend_, listener, accept));
  loop::Socket& client = connected();
  ASSERT_TRUE(accept.done());
  forget_records();
  ReceiveProbe receive;
  EXPECT_FALSE(start(backend_, client, receive));
  loop::Socket& server = adopt(std::move(accept.accepted));
  send(server, "four");
  wait();
  EXPECT_EQ(receive.buffer.text(), "four");
  AcceptProbe none;
  EXPECT_FALSE(start(backend_, listener, none));
  backend_.cancel(none);
  ReceiveProbe nothing;
  EXPECT_FALSE(start(backend_, client, nothing));
  backend_.cancel(nothing);
  AcceptProbe stopped;
  EXPECT_FALSE(start(backend_, listener, stopped));
  backend_.stop_accepting(listener);
  run_ready();
  EXPECT_EQ(none.error(), Errc::cancelled);
  EXPECT_EQ(nothing.error(), Errc::cancelled);
  EXPECT_EQ(stopped.error(), Errc::closed);
  AcceptProbe late;
  EXPECT_TRUE(start(backend_, listener, late));
  EXPECT_EQ(late.error(), Errc::closed);
  const std::string cancelled = make_error_code(Errc::cancelled).message();
  const std::string closed = make_error_code(Errc::closed).message();
  EXPECT_THAT(script_.finished,
              ElementsAre("send 4", "receive 4", "accept 0, " + cancelled,
                          "receive 0, " + cancelled, "accept 0, " + closed, "accept 0, " + closed));
}

TEST_F(MemoryBackendTest, StartsEachOperationAfresh) {
  loop::Socket& listener = listen();
  const Connection pair = connect(listener);
  send(pair.client, "one");
  ReceiveProbe receive;
  std::array<std::byte, 3> room{};
  receive.target = room;
  ASSERT_TRUE(start(backend_, pair.server, receive));
  EXPECT_EQ(receive.count, 3U);
  EXPECT_FALSE(start(backend_, pair.server, receive));
  EXPECT_EQ(receive.count, 0U);
  backend_.cancel(receive);
  run_ready();
  receive.target = {};
  send(pair.client, "two");
  ASSERT_TRUE(start(backend_, pair.server, receive));
  EXPECT_EQ(receive.buffer.text(), "two");
  EXPECT_FALSE(start(backend_, pair.server, receive));
  EXPECT_FALSE(receive.buffer.owns_memory()) << "an idle socket holds no buffer";
  backend_.cancel(receive);
  run_ready();

  SendProbe send;
  const Bytes piece = to_bytes("three");
  send.pieces = {&piece, 1};
  ASSERT_TRUE(start(backend_, pair.client, send));
  ASSERT_TRUE(start(backend_, pair.client, send));
  EXPECT_EQ(send.sent, 5U);
  EXPECT_EQ(platform_.descriptors().stream(pair.server.descriptor)->unread(), 10U);

  AcceptProbe accept;
  connected();
  ASSERT_TRUE(start(backend_, listener, accept));
  EXPECT_EQ(accept.socket(), &listener);
  const std::size_t open = platform_.open_descriptors();
  EXPECT_FALSE(start(backend_, listener, accept));
  EXPECT_EQ(platform_.open_descriptors(), open - 1) << "an unused connection is closed";
  backend_.cancel(accept);
  run_ready();
}

TEST_F(MemoryBackendTest, DefersWhatCouldFinishImmediately) {
  loop::Socket& listener = listen();
  const Connection pair = connect(listener);
  connected();
  send(pair.client, "text");
  script_.immediate = false;
  AcceptProbe accept;
  ReceiveProbe receive;
  SendProbe send;
  const Bytes piece = to_bytes("answer");
  send.pieces = {&piece, 1};
  EXPECT_FALSE(start(backend_, listener, accept));
  EXPECT_FALSE(start(backend_, pair.server, receive));
  EXPECT_FALSE(start(backend_, pair.client, send));
  EXPECT_TRUE(backend_.has_work());
  for (int waits = 0; waits < 3; ++waits) wait();
  EXPECT_FALSE(accept.done());
  EXPECT_FALSE(receive.done());
  EXPECT_FALSE(send.done());
  EXPECT_TRUE(backend_.has_work()) << "the next wait continues with them";
  EXPECT_EQ(backend_.pending(), "1 accept, 1 receive, 1 send");
  script_.immediate = true;
  wait();
  EXPECT_TRUE(accept.succeeded());
  EXPECT_EQ(receive.buffer.text(), "text");
  EXPECT_EQ(send.sent, 6U);
  EXPECT_FALSE(backend_.has_work());
  EXPECT_EQ(backend_.pending(), "");
}

TEST_F(MemoryBackendTest, MovesAPartOfTheDataInOneCall) {
  const Connection pair = connect(listen());
  script_.transfer_max = 3;
  const std::array<Bytes, 3> pieces = {to_bytes("ab"), to_bytes("cdefg"), to_bytes("h")};
  SendProbe send;
  send.pieces = pieces;
  EXPECT_FALSE(start(backend_, pair.client, send));
  EXPECT_EQ(send.sent, 5U) << "a whole piece, and the first part of the next one";
  EXPECT_TRUE(backend_.has_work());
  wait();
  EXPECT_TRUE(send.succeeded());
  EXPECT_EQ(send.sent, 8U);
  std::string received;
  for (int reads = 0; reads < 2; ++reads) {
    ReceiveProbe receive;
    ASSERT_TRUE(start(backend_, pair.server, receive));
    received += std::string(receive.buffer.text()) + "|";
  }
  std::array<std::byte, 2> room{};
  ReceiveProbe last;
  last.target = room;
  ASSERT_TRUE(start(backend_, pair.server, last));
  EXPECT_EQ(received + std::string(to_text(room)), "abc|def|gh");
}

TEST_F(MemoryBackendTest, ACancelledOperationThatCouldFinishMayDoEither) {
  const Connection pair = connect(listen());
  for (const bool completes : {false, true}) {
    script_.completes_cancelled = completes;
    send(pair.client, "text");
    script_.immediate = false;
    ReceiveProbe receive;
    EXPECT_FALSE(start(backend_, pair.server, receive));
    backend_.cancel(receive);
    script_.immediate = true;
    run_ready();
    if (!completes) {
      EXPECT_EQ(receive.error(), Errc::cancelled);
      ASSERT_TRUE(start(backend_, pair.server, receive)) << "no data is lost";
    }
    EXPECT_TRUE(receive.succeeded());
    EXPECT_EQ(receive.buffer.text(), "text");
  }
}

TEST_F(MemoryBackendTest, AcceptingPausesForTenMillisecondsAfterAnError) {
  loop::Socket& listener = listen();
  connected();
  script_.next_accept_error = system_error(EMFILE);
  AcceptProbe accept;
  EXPECT_FALSE(start(backend_, listener, accept));
  EXPECT_EQ(backend_.counters().accept_pauses.value(), 1U);
  pass(10ms - 1ns);
  EXPECT_FALSE(accept.done());
  pass(1ns);
  EXPECT_TRUE(accept.succeeded());
  EXPECT_EQ(script_.accepts, 2) << "one attempt before the pause and one after it";
  EXPECT_EQ(backend_.counters().accept_pauses.value(), 1U);
  EXPECT_EQ(backend_.counters().accepts.value(), 1U);
}

TEST_F(MemoryBackendTest, EachPauseOfAcceptingCountsOnce) {
  loop::Socket& listener = listen();
  connected();
  platform_.set_descriptors_max(platform_.open_descriptors() + 1);
  AcceptProbe accept;
  loop::Socket& client = open();
  EXPECT_FALSE(start(backend_, listener, accept));
  for (int more = 0; more < 2; ++more) {
    // A connection that arrives during the pause does not end it.
    auto stream = platform_.network().open_stream();
    EXPECT_EQ(platform_.network().connect(*stream, Address::loopback(80)),
              MemoryNetwork::ConnectResult::established);
    wait();
    EXPECT_EQ(backend_.counters().accept_pauses.value(), 1U);
  }
  pass(25ms);
  pass(0ms);
  EXPECT_EQ(backend_.counters().accept_pauses.value(), 2U);
  backend_.close(client);
  pass(10ms);
  EXPECT_TRUE(accept.succeeded());
  EXPECT_EQ(backend_.counters().accept_pauses.value(), 2U);
}

// A retry that stayed scheduled would use the closed socket.
TEST_F(MemoryBackendTest, NothingIsRetriedAfterACancelOrAStop) {
  for (const bool stops : {false, true}) {
    loop::Socket& listener = listen(Address::loopback(stops ? 81 : 82));
    connected(Address::loopback(stops ? 81 : 82));
    script_.next_accept_error = system_error(ENOMEM);
    AcceptProbe accept;
    EXPECT_FALSE(start(backend_, listener, accept));
    stops ? backend_.stop_accepting(listener) : backend_.cancel(accept);
    run_ready();
    EXPECT_EQ(accept.error(), stops ? Errc::closed : Errc::cancelled);
    EXPECT_EQ(platform_.clock().next(), never) << "the retry is cancelled";
    backend_.close(listener);
  }
  loop::Socket& socket = open(Address::loopback(83));
  script_.connect_time = 1s;
  ConnectProbe connect;
  connect.peer = Address::loopback(83);
  EXPECT_FALSE(start(backend_, socket, connect));
  backend_.cancel(connect);
  run_ready();
  EXPECT_EQ(connect.error(), Errc::cancelled);
  EXPECT_EQ(platform_.clock().next(), never);
  backend_.close(socket);
  pass(10s);
}

TEST_F(MemoryBackendTest, AnIsolatedPlatformNeitherAcceptsNorConnects) {
  loop::Socket& listener = listen();
  connected();
  script_.isolated = true;
  AcceptProbe accept;
  EXPECT_FALSE(start(backend_, listener, accept));
  loop::Socket& socket = open();
  ConnectProbe connect;
  connect.peer = Address::loopback(80);
  EXPECT_FALSE(start(backend_, socket, connect));
  pass(10min);
  EXPECT_FALSE(accept.done());
  EXPECT_FALSE(connect.done());
  EXPECT_EQ(platform_.descriptors().listener(listener.descriptor)->waiting(), 1U);
  backend_.cancel(accept);
  backend_.cancel(connect);
  run_ready();
}

TEST_F(MemoryBackendTest, AConnectTakesTheTimeOfItsHandshake) {
  listen();
  loop::Socket& socket = open();
  script_.connect_time = 30ms;
  ConnectProbe connect;
  connect.peer = Address::loopback(80);
  EXPECT_FALSE(start(backend_, socket, connect));
  EXPECT_EQ(backend_.pending(), "1 connect");
  EXPECT_FALSE(backend_.has_work());
  pass(30ms - 1ns);
  EXPECT_FALSE(connect.done());
  pass(1ns);
  EXPECT_TRUE(connect.succeeded());
  EXPECT_TRUE(start(backend_, socket, connect));
  EXPECT_EQ(connect.error(), system_error(EISCONN));
}

TEST_F(MemoryBackendTest, AHandshakeIsNotShortenedByAnotherChange) {
  listen();
  loop::Socket& socket = open();
  script_.connect_time = 30ms;
  ConnectProbe connect;
  connect.peer = Address::loopback(80);
  EXPECT_FALSE(start(backend_, socket, connect));
  platform_.descriptors()
      .stream(socket.descriptor)
      ->fill_until(platform_.clock(), after(platform_.now(), 10ms));
  pass(10ms);
  EXPECT_FALSE(connect.done());
  pass(20ms);
  EXPECT_TRUE(connect.succeeded());
}

TEST_F(MemoryBackendTest, AConnectThatIsCancelledBeforeTheWaitHasNoEffect) {
  loop::Socket& listener = listen();
  loop::Socket& socket = open();
  ConnectProbe connect;
  connect.peer = Address::loopback(80);
  EXPECT_FALSE(start(backend_, socket, connect));
  backend_.cancel(connect);
  wait();
  EXPECT_EQ(connect.error(), Errc::cancelled);
  EXPECT_EQ(platform_.descriptors().listener(listener.descriptor)->waiting(), 0U);
  EXPECT_FALSE(start(backend_, socket, connect));
  wait();
  EXPECT_TRUE(connect.succeeded());
}

TEST_F(MemoryBackendTest, SocketsWithoutAnOperationAreNoWork) {
  loop::Socket& listener = listen();
  const Connection pair = connect(listener);
  connected();
  ASSERT_TRUE(platform_.descriptors().stream(pair.client.descriptor)->send(to_bytes("x")));
  EXPECT_FALSE(backend_.has_work());
  HangupProbe observer;
  backend_.observe_hangup(pair.server, &observer);
  ASSERT_TRUE(platform_.descriptors().stream(pair.client.descriptor)->send(to_bytes("y")));
  EXPECT_TRUE(backend_.has_work()) << "an observer waits";
  wait();
  EXPECT_FALSE(backend_.has_work());
  platform_.reset_connection(pair.client.descriptor);
  EXPECT_EQ(observer.calls, 0) << "it is called in the wait";
  wait();
  EXPECT_EQ(observer.calls, 1);
}

TEST_F(MemoryBackendTest, EachConnectIsTriedForTwoMinutes) {
  loop::Socket& listener = listen();
  ASSERT_TRUE(platform_.refuse_new_connections(listener.descriptor));
  loop::Socket& socket = open();
  for (int attempt = 0; attempt < 2; ++attempt) {
    ConnectProbe connect;
    connect.peer = Address::loopback(80);
    EXPECT_FALSE(start(backend_, socket, connect));
    wait();
    std::vector<Duration> retries;
    const Instant begun = platform_.now();
    while (!connect.done()) {
      const Instant next = platform_.clock().next();
      ASSERT_NE(next, never);
      retries.push_back(next - platform_.now());
      pass(next - platform_.now());
    }
    EXPECT_THAT(retries, ElementsAre(1s, 2s, 4s, 8s, 16s, 32s, 64s));
    EXPECT_EQ(connect.error(), system_error(ETIMEDOUT));
    EXPECT_EQ(platform_.now() - begun, 127s);
  }
}

TEST_F(MemoryBackendTest, AConnectToAFullUnixSocketFailsImmediately) {
  const Address path = Address::local("/run/socket").value();
  listen(path, {.backlog = 0});
  connected(path);
  loop::Socket& socket = open(path);
  ConnectProbe connect;
  connect.peer = path;
  EXPECT_FALSE(start(backend_, socket, connect));
  wait();
  EXPECT_EQ(connect.error(), system_error(EAGAIN));
}

TEST_F(MemoryBackendTest, ListsPendingOperationsAndOpenSockets) {
  EXPECT_EQ(backend_.pending(), "");
  EXPECT_EQ(backend_.open_sockets(), "");
  loop::Socket& listener = listen();
  loop::Socket& client = connected();
  loop::Socket& another = connected();
  loop::Socket& fresh = open();
  EXPECT_EQ(backend_.open_sockets(),
            "a listener, a connection with 127.0.0.1:80, a connection with 127.0.0.1:80, "
            "a stream without a connection");
  AcceptProbe accepted[2];
  for (AcceptProbe& each : accepted) ASSERT_TRUE(start(backend_, listener, each));
  AcceptProbe accept;
  ConnectProbe connect;
  ReceiveProbe receives[2];
  EXPECT_FALSE(start(backend_, listener, accept));
  connect.peer = Address::loopback(81);
  script_.connect_time = 1s;
  EXPECT_FALSE(start(backend_, fresh, connect));
  EXPECT_FALSE(start(backend_, client, receives[0]));
  EXPECT_FALSE(start(backend_, another, receives[1]));
  EXPECT_EQ(backend_.pending(), "1 accept, 1 connect, 2 receive");
  for (loop::Operation* each :
       std::initializer_list<loop::Operation*>{&accept, &connect, &receives[0], &receives[1]}) {
    backend_.cancel(*each);
  }
  run_ready();
  EXPECT_EQ(backend_.pending(), "");
}

TEST_F(MemoryBackendTest, ChoosesAmongTheFirstEightReadyConnections) {
  loop::Socket& listener = listen();
  std::vector<Connection> pairs;
  std::vector<int> order;
  std::list<ReceiveProbe> receives;
  for (int number = 0; number < 10; ++number) {
    pairs.push_back(connect(listener));
    ReceiveProbe& receive = receives.emplace_back();
    receive.then = [&order, number] { order.push_back(number); };
    EXPECT_FALSE(start(backend_, pairs.back().server, receive));
  }
  for (const Connection& each : pairs) {
    ASSERT_TRUE(platform_.descriptors().stream(each.client.descriptor)->send(to_bytes("y")));
  }
  script_.picks_last = true;
  script_.picked_from.clear();
  wait();
  EXPECT_THAT(script_.picked_from, ElementsAre(8, 8, 8, 7, 6, 5, 4, 3, 2, 1));
  EXPECT_THAT(order, ElementsAre(7, 8, 9, 6, 5, 4, 3, 2, 1, 0));
}

TEST_F(MemoryBackendTest, CountsBytesConnectionsAndWaits) {
  const Connection pair = connect(listen());
  const std::uint64_t waits = backend_.counters().system_calls.value();
  send(pair.client, "hello");
  ReceiveProbe receive;
  ASSERT_TRUE(start(backend_, pair.server, receive));
  EXPECT_EQ(backend_.counters().bytes_sent.value(), 5U);
  EXPECT_EQ(backend_.counters().bytes_received.value(), 5U);
  EXPECT_EQ(backend_.counters().accepts.value(), 1U);
  wait();
  wait();
  EXPECT_EQ(backend_.counters().system_calls.value(), waits + 2);
}

TEST_F(MemoryBackendTest, AReceiveWithoutMemoryFails) {
  BlockPool blocks;
  const ScopedBlockPool scope(blocks);
  const Connection pair = connect(listen());
  send(pair.client, "hello");
  blocks.fail_after(0);
  ReceiveProbe receive;
  EXPECT_TRUE(start(backend_, pair.server, receive));
  EXPECT_EQ(receive.error(), system_error(ENOMEM));
  ASSERT_TRUE(start(backend_, pair.server, receive));
  EXPECT_EQ(receive.buffer.text(), "hello") << "no data is lost";
  receive.buffer = {};
}

TEST_F(MemoryBackendTest, AdoptsOnlyTheRightKindOfDescriptor) {
  for (const loop::SocketRole role : {loop::SocketRole::stream, loop::SocketRole::datagrams}) {
    auto listener = platform_.listen(Address::loopback(80), {}).value();
    EXPECT_EQ(backend_.adopt(std::move(listener), {.role = role}).error(), system_error(EBADF));
    EXPECT_EQ(platform_.open_descriptors(), 0U) << "the descriptor is closed";
  }
  auto stream = platform_.open_stream(Address::loopback(80)).value();
  EXPECT_EQ(backend_.adopt(std::move(stream), {.role = loop::SocketRole::listener}).error(),
            system_error(EBADF));
  EXPECT_EQ(platform_.open_descriptors(), 0U);
}

TEST_F(MemoryBackendTest, ADestroyedBackendClosesItsSockets) {
  EXPECT_EQ(platform_.backends(), 1U);
  {
    loop::RunQueue ready;
    MemoryBackend other(platform_, ready);
    EXPECT_EQ(platform_.backends(), 2U);
    for (const loop::SocketRole role : {loop::SocketRole::listener, loop::SocketRole::datagrams}) {
      auto descriptor = role == loop::SocketRole::listener
                            ? platform_.listen(Address::loopback(90), {}).value()
                            : platform_.open_datagrams({.local = Address::loopback(90)}).value();
      ASSERT_TRUE(other.adopt(std::move(descriptor), {.role = role}));
    }
    EXPECT_EQ(platform_.open_descriptors(), 2U);
  }
  EXPECT_EQ(platform_.backends(), 1U);
  EXPECT_EQ(platform_.open_descriptors(), 0U);
  EXPECT_TRUE(platform_.listen(Address::loopback(90), {.require_unused = true}));
}

TEST_F(MemoryBackendTest, AWaitMovesTheClockToTheFirstEventThatFinishesSomething) {
  loop::Socket& listener = listen();
  AcceptProbe accept;
  EXPECT_FALSE(start(backend_, listener, accept));
  const Instant begun = platform_.now();
  std::unique_ptr<MemoryStream> stream = platform_.network().open_stream();
  platform_.at(begun + 1s, [] {});
  platform_.at(begun + 2s, [&] { platform_.network().connect(*stream, Address::loopback(80)); });
  platform_.at(begun + 3s, [] {});
  backend_.wait(begun + 10s);
  EXPECT_EQ(platform_.now(), begun + 2s);
  run_ready();
  EXPECT_TRUE(accept.succeeded());
  backend_.wait(begun + 2500ms);
  EXPECT_EQ(platform_.now(), begun + 2500ms) << "at most to the given time";
  platform_.at(begun + 4s, [&] { backend_.wake(); });
  backend_.wait(begun + 10s);
  EXPECT_EQ(platform_.now(), begun + 4s) << "a wake ends the wait";
  backend_.wake();
  backend_.wait(begun + 10s);
  EXPECT_EQ(platform_.now(), begun + 4s) << "a wake before the wait ends it too";
  backend_.wait(never);
  EXPECT_EQ(platform_.now(), begun + 4s) << "nothing to wait for";
  backend_.wait(begun + 6s);
  EXPECT_EQ(platform_.now(), begun + 6s) << "the wakes are used up";
}

TEST_F(MemoryBackendTest, AWaitWithReadyWorkLetsNoTimePass) {
  loop::Socket& listener = listen();
  AcceptProbe accept;
  EXPECT_FALSE(start(backend_, listener, accept));
  backend_.cancel(accept);
  const Instant begun = platform_.now();
  backend_.wait(begun + 1s);
  EXPECT_EQ(platform_.now(), begun);
  run_ready();
}

TEST_F(MemoryBackendTest, AWaitDoesNotMoveTheClockForSeveralBackends) {
  loop::RunQueue ready;
  const MemoryBackend other(platform_, ready);
  const Instant begun = platform_.now();
  backend_.wait(begun + 1s);
  EXPECT_EQ(platform_.now(), begun);
}

struct FileProbe : Probe<loop::FileOperation> {};

class MemoryBackendFiles : public MemoryBackendTest {
 protected:
  loop::Descriptor open_file(os::FileMode mode) {
    return platform_.files().open("/tmp/a", {mode}).value();
  }
  void begin(FileProbe& probe) {
    backend_.start_file(probe);
    probe.started(false);
  }
};

TEST_F(MemoryBackendFiles, FileOperationsTakeTheirTime) {
  EXPECT_TRUE(backend_.does_files());
  const loop::Descriptor file = open_file(os::FileMode::create_new);
  const loop::Descriptor again = open_file(os::FileMode::read);
  script_.step_time = 2ms;
  FileProbe write;
  write.action = loop::FileOperation::Action::write;
  write.file = file.value();
  write.source = to_bytes("hello");
  write.offset = 2;
  write.count = 99;
  begin(write);
  EXPECT_EQ(write.count, 0U);
  EXPECT_EQ(backend_.pending(), "1 file");
  pass(5ms - 1ns);
  EXPECT_FALSE(write.done());
  pass(1ns);
  EXPECT_TRUE(write.succeeded());
  EXPECT_EQ(write.count, 5U);
  EXPECT_EQ(backend_.pending(), "");
  std::array<std::byte, 4> room{};
  FileProbe read;
  read.action = loop::FileOperation::Action::read;
  read.file = again.value();
  read.target = room;
  read.offset = 3;
  begin(read);
  FileProbe sync;
  sync.action = loop::FileOperation::Action::sync;
  sync.file = file.value();
  begin(sync);
  EXPECT_EQ(backend_.pending(), "2 file");
  pass(5ms);
  EXPECT_EQ(read.count, 4U);
  EXPECT_EQ(to_text(room), "ello");
  EXPECT_TRUE(sync.succeeded());
  EXPECT_EQ(sync.count, 0U);
  EXPECT_THAT(script_.begun, ElementsAre("file", "file", "file"));
  EXPECT_THAT(script_.finished, ElementsAre("file 5", "file 4", "file 0"));
  platform_.files().lose_power();
  EXPECT_EQ(platform_.files().file_status(file.value())->size, 7U) << "synced";
}

TEST_F(MemoryBackendFiles, FileErrorsAreReported) {
  const loop::Descriptor file = open_file(os::FileMode::create_new);
  FileProbe probe;
  std::array<std::byte, 4> room{};
  probe.target = room;
  probe.source = to_bytes("text");
  for (const auto action : {loop::FileOperation::Action::read, loop::FileOperation::Action::write,
                            loop::FileOperation::Action::sync}) {
    probe.action = action;
    probe.file = action == loop::FileOperation::Action::read ? file.value() : 77;
    begin(probe);
    pass(3ms);
    EXPECT_EQ(probe.error(), system_error(EBADF));
    EXPECT_EQ(probe.count, 0U);
  }
}

TEST_F(MemoryBackendFiles, ACancelledFileOperationHasNoEffect) {
  const loop::Descriptor file = open_file(os::FileMode::create_new);
  FileProbe write;
  write.action = loop::FileOperation::Action::write;
  write.file = file.value();
  write.source = to_bytes("hello");
  begin(write);
  backend_.cancel(write);
  EXPECT_EQ(backend_.pending(), "");
  run_ready();
  EXPECT_EQ(write.error(), Errc::cancelled);
  backend_.cancel(write);
  pass(1s);
  EXPECT_EQ(platform_.files().file_status(file.value())->size, 0U);
  EXPECT_THAT(script_.finished,
              ElementsAre("file 0, " + make_error_code(Errc::cancelled).message()));
}

TEST(MemoryBackendWithoutFiles, LeavesFilesToThreads) {
  MemoryPlatform platform({.files = MemoryFiles::by_threads});
  loop::RunQueue ready;
  EXPECT_FALSE(MemoryBackend(platform, ready).does_files());
}

}  // namespace
}  // namespace weir::memory_backend_test
