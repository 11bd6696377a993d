// MemoryHost: its clock, its driver of several loops, and its network where real ones differ.
#include "weir/testing/memory/memory_platform.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir {
namespace {

std::unique_ptr<Loop> make_loop(MemoryHost& host, unsigned core = 0) {
  Loop::Options options;
  options.core = core;
  return Loop::make(host, options).value();
}

Socket& listen_on(Loop& loop, const os::Address& address, const ListenOptions& options = {}) {
  Descriptor descriptor = loop.host().listen(address, options).value();
  return *loop.backend().adopt(std::move(descriptor), {.role = SocketRole::listener}).value();
}

Socket& open_socket(Loop& loop, const os::Address& peer) {
  return *loop.backend().adopt(loop.host().open_stream(peer).value(), {}).value();
}

class Control : public RunControl {
 public:
  explicit Control(std::function<void(Signal)> told) : told_(std::move(told)) {}
  void signalled(Signal signal) override { told_(signal); }

 private:
  std::function<void(Signal)> told_;
};

TEST(MemoryHost, TimePassesOnlyWhenTheLoopIsIdle) {
  MemoryHost host;
  const auto loop = make_loop(host);
  const Instant start = host.now();
  TimerProbe hour;
  loop->timers().start(hour, start + 1h);
  bool ran = false;
  CallProbe call([&] { ran = true; });
  loop->ready(call);

  EXPECT_TRUE(loop->turn(start));
  EXPECT_TRUE(ran);
  EXPECT_EQ(host.now(), start);
  int turns = 0;
  while (hour.fired == 0 && ++turns < 100) loop->turn();
  EXPECT_EQ(hour.fired, 1);
  EXPECT_EQ(host.now(), start + 1h);
}

TEST(MemoryHost, ATurnWithNothingToWaitForReturns) {
  MemoryHost host;
  const auto loop = make_loop(host);
  const Instant start = host.now();
  EXPECT_FALSE(loop->turn());
  EXPECT_EQ(host.now(), start);
  loop->turn(start + 5s);
  EXPECT_EQ(host.now(), start + 5s);
}

TEST(MemoryHost, AdvanceStopsAtEveryTimerInOrder) {
  MemoryHost host;
  const auto loop = make_loop(host);
  const Instant start = host.now();
  std::vector<std::pair<int, Duration>> fired;
  TimerProbe first, second, chained, late;
  first.then = [&] {
    fired.emplace_back(1, host.now() - start);
    loop->timers().start(chained, host.now() + 1ms);
  };
  chained.then = [&] { fired.emplace_back(2, host.now() - start); };
  second.then = [&] { fired.emplace_back(3, host.now() - start); };
  loop->timers().start(second, start + 20ms);
  loop->timers().start(first, start + 10ms);
  loop->timers().start(late, start + 31ms);

  host.advance(*loop, 30ms);
  const std::vector<std::pair<int, Duration>> expected = {{1, 10ms}, {2, 11ms}, {3, 20ms}};
  EXPECT_EQ(fired, expected);
  EXPECT_EQ(late.fired, 0);
  EXPECT_EQ(host.now(), start + 30ms);
  host.advance(*loop, 1ms);
  EXPECT_EQ(late.fired, 1);
}

TEST(MemoryHost, RunUntilSaysWhenNothingWillEverHappen) {
  MemoryHost host;
  const auto loop = make_loop(host);
  TimerProbe timer;
  loop->timers().start(timer, host.now() + 24h);
  EXPECT_TRUE(host.run_until(*loop, [&] { return timer.fired == 1; }));
  EXPECT_FALSE(host.run_until(*loop, [&] { return timer.fired == 2; }));
}

TEST(MemoryHost, WallClockFollowsAndMayJump) {
  MemoryHost host;
  const WallTime before = host.wall_time();
  host.clock().move_to(host.now() + 3s);
  EXPECT_EQ(host.wall_time() - before, 3s);
  const Instant instant = host.now();
  host.set_wall_time(before - 1h);
  EXPECT_EQ(host.wall_time(), before - 1h);
  EXPECT_EQ(host.now(), instant);
}

TEST(MemoryHost, OneSeedOneSequence) {
  MemoryHost one({.seed = 7}), same({.seed = 7}), other({.seed = 8});
  for (int i = 0; i < 100; ++i) {
    const auto drawn = one.random();
    EXPECT_EQ(drawn, same.random());
    EXPECT_NE(drawn, other.random());
  }
}

TEST(MemoryHost, EventsHappenInOrderEachAtItsTime) {
  MemoryHost host;
  const Instant start = host.now();
  std::string order;
  host.at(start + 2s, [&] { order += 'c'; });
  host.at(start + 1s, [&] {
    order += 'a';
    EXPECT_EQ(host.now(), start + 1s);
    host.at(start + 1s, [&] { order += 'b'; });
  });
  const auto forgotten = host.at(start + 1s, [&] { order += 'x'; });
  host.clock().forget(forgotten);
  EXPECT_TRUE(host.clock().move_to(start + 5s));
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(host.now(), start + 5s);
  EXPECT_FALSE(host.clock().move_to(start));
  EXPECT_EQ(host.now(), start + 5s);
}

// Two loops exchange a message over the network, then the server's loop stops both.
TEST(MemoryHostRun, SeveralLoopsTalkUntilAllStop) {
  MemoryHost host({.cores = 2});
  const auto server = make_loop(host, 0);
  const auto client = make_loop(host, 1);
  Socket& listener = listen_on(*server, os::Address::loopback(0));
  const os::Address address = host.local_address(listener.descriptor).value();
  AcceptProbe accept;
  ReceiveProbe receive;
  Socket* accepted = nullptr;
  accept.then = [&] {
    accepted = server->backend().adopt(std::move(accept.accepted), {}).value();
    start(server->backend(), *accepted, receive);
  };
  receive.then = [&] {
    EXPECT_EQ(receive.buffer.text(), "hello");
    EXPECT_EQ(Loop::current(), server.get());
    client->stop();
    server->stop();
  };
  Socket& socket = open_socket(*client, address);
  ConnectProbe connect;
  SendProbe send;
  TimerProbe pause;
  const Bytes hello = to_bytes("hello");
  const Instant begun = host.now();
  connect.then = [&] { client->timers().start(pause, host.now() + 10min); };
  pause.then = [&] {
    send.pieces = {&hello, 1};
    start(client->backend(), socket, send);
  };
  connect.peer = address;
  start(client->backend(), socket, connect);
  start(server->backend(), listener, accept);

  const std::vector<LoopPlace> places = {{server.get(), 0}, {client.get(), 1}};
  ASSERT_TRUE(host.run(places, nullptr));
  EXPECT_TRUE(receive.succeeded());
  EXPECT_EQ(host.now(), begun + 10min);
  client->backend().close(socket);
  server->backend().close(*accepted);
  server->backend().close(listener);
  EXPECT_EQ(host.open_descriptors(), 0u);
}

TEST(MemoryHostRun, DeadlockIsAnErrorThatSaysWhoWaits) {
  MemoryHost host;
  const auto first = make_loop(host, 0);
  const auto second = make_loop(host, 1);
  Socket& listener = listen_on(*second, os::Address::loopback(0));
  AcceptProbe accept;
  start(second->backend(), listener, accept);
  TimerProbe once;
  first->timers().start(once, host.now() + 1s);
  const std::vector<LoopPlace> places = {{first.get(), -1}, {second.get(), -1}};
  const auto ran = host.run(places, nullptr);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error(), system_error(EDEADLK));
  EXPECT_EQ(once.fired, 1);
  ASSERT_EQ(host.logged().size(), 1u);
  EXPECT_NE(host.logged()[0].find("loop 0 waits for nothing; loop 1 waits for 1 accept"),
            std::string::npos)
      << host.logged()[0];
  second->backend().cancel(accept);
  host.run_until_idle(*second);
  EXPECT_EQ(accept.error(), Errc::cancelled);
}

TEST(MemoryHostRun, SignalsGoToTheControlBetweenTurns) {
  MemoryHost host;
  const auto loop = make_loop(host);
  std::vector<Signal> told;
  Control control([&](Signal signal) {
    EXPECT_EQ(Loop::current(), nullptr);
    told.push_back(signal);
    if (told.size() == 2) loop->stop();
  });
  host.at(host.now() + 3s, [&] { host.raise(Signal::terminate); });
  host.raise(Signal::interrupt);
  const LoopPlace place{loop.get(), -1};
  const Instant start = host.now();
  ASSERT_TRUE(host.run({&place, 1}, &control));
  EXPECT_EQ(told, (std::vector{Signal::interrupt, Signal::terminate}));
  EXPECT_EQ(host.now(), start + 3s);
}

TEST(MemoryHostRun, ASignalThatNobodyControlsEndsIt) {
  MemoryHost host;
  const auto loop = make_loop(host);
  host.raise(Signal::interrupt);
  const LoopPlace place{loop.get(), -1};
  EXPECT_EQ(host.run({&place, 1}, nullptr).error(), system_error(EINTR));
}

class MemoryNetworkTest : public ::testing::Test {
 protected:
  Socket& connected(const os::Address& peer) {
    Socket& socket = open_socket(*loop, peer);
    ConnectProbe connect;
    connect.peer = peer;
    start(loop->backend(), socket, connect);
    host.run_until_idle(*loop);
    EXPECT_TRUE(connect.succeeded()) << connect.error().message();
    return socket;
  }
  std::size_t waiting(const Socket& listener) {
    return host.descriptors().listener(listener.descriptor)->waiting();
  }

  MemoryHost host;
  std::unique_ptr<Loop> loop = make_loop(host);
};

TEST_F(MemoryNetworkTest, ListenersOfOneAddressTakeTurns) {
  Socket& first = listen_on(*loop, os::Address::loopback(80));
  Socket& second = listen_on(*loop, os::Address::loopback(80));
  Socket& third = listen_on(*loop, os::Address::loopback(80));
  for (int i = 0; i < 6; ++i) connected(os::Address::loopback(80));
  for (const Socket* each : {&first, &second, &third}) EXPECT_EQ(waiting(*each), 2u);
  ASSERT_TRUE(host.refuse_new_connections(second.descriptor));
  for (int i = 0; i < 4; ++i) connected(os::Address::loopback(80));
  EXPECT_EQ(waiting(second), 2u);
  EXPECT_EQ(waiting(first) + waiting(third), 8u);
}

TEST_F(MemoryNetworkTest, AnAddressIsTakenUnlessAllShareIt) {
  const ListenOptions alone{.reuse_port = false};
  listen_on(*loop, os::Address::loopback(80));
  EXPECT_EQ(host.listen(os::Address::loopback(80), alone).error(), system_error(EADDRINUSE));
  EXPECT_EQ(host.listen(os::Address::any(80), alone).error(), system_error(EADDRINUSE));
  EXPECT_TRUE(host.listen(os::Address::loopback(81), alone));
  const os::Address local = os::Address::local("/run/a").value();
  const auto path = host.listen(local, {});
  ASSERT_TRUE(path);
  EXPECT_EQ(host.listen(local, {}).error(), system_error(EADDRINUSE));
}

TEST_F(MemoryNetworkTest, TheMostSpecificListenerIsFound) {
  Socket& every = listen_on(*loop, os::Address::any(80));
  Socket& exact = listen_on(*loop, os::Address::loopback(80));
  Socket& client = connected(os::Address::loopback(80));
  EXPECT_EQ(waiting(exact), 1u);
  connected(os::Address::ipv4({10, 0, 0, 1}, 80));
  EXPECT_EQ(waiting(every), 1u);
  EXPECT_EQ(host.peer_address(client.descriptor).value(), os::Address::loopback(80));
  EXPECT_NE(host.local_address(client.descriptor).value().port(), 0);
}

TEST_F(MemoryNetworkTest, AFullQueueAnswersWhenThereIsRoomAgain) {
  Socket& listener = listen_on(*loop, os::Address::loopback(80), {.backlog = 0});
  connected(os::Address::loopback(80));
  Socket& late = open_socket(*loop, os::Address::loopback(80));
  ConnectProbe connect;
  connect.peer = os::Address::loopback(80);
  start(loop->backend(), late, connect);
  host.advance(*loop, 10s);
  EXPECT_FALSE(connect.done());
  AcceptProbe accept;
  EXPECT_TRUE(start(loop->backend(), listener, accept));
  EXPECT_TRUE(host.run_until(*loop, [&] { return connect.done(); }));
  EXPECT_TRUE(connect.succeeded());
}

TEST_F(MemoryNetworkTest, SilenceTimesOut) {
  Socket& listener = listen_on(*loop, os::Address::loopback(80));
  ASSERT_TRUE(host.refuse_new_connections(listener.descriptor));
  Socket& socket = open_socket(*loop, os::Address::loopback(80));
  ConnectProbe connect;
  connect.peer = os::Address::loopback(80);
  start(loop->backend(), socket, connect);
  const Instant begun = host.now();
  EXPECT_TRUE(host.run_until(*loop, [&] { return connect.done(); }));
  EXPECT_EQ(connect.error(), system_error(ETIMEDOUT));
  EXPECT_EQ(host.now() - begun, 127s);
}

TEST_F(MemoryNetworkTest, AcceptingPausesWithoutDescriptorsAndGoesOn) {
  Socket& listener = listen_on(*loop, os::Address::loopback(80));
  connected(os::Address::loopback(80));
  Socket& second = connected(os::Address::loopback(80));
  host.set_descriptors_max(host.open_descriptors());
  AcceptProbe accept;
  EXPECT_FALSE(start(loop->backend(), listener, accept));
  host.run_until_idle(*loop);
  EXPECT_EQ(loop->backend().counters().accept_pauses.value(), 1u);
  EXPECT_EQ(host.open_stream(os::Address::loopback(80)).error(), system_error(EMFILE));
  loop->backend().close(second);
  EXPECT_TRUE(host.run_until(*loop, [&] { return accept.done(); }));
  EXPECT_TRUE(accept.succeeded());
}

TEST_F(MemoryNetworkTest, AConnectionHoldsNoMoreThanItsBuffer) {
  Socket& listener = listen_on(*loop, os::Address::loopback(80));
  Socket& client = connected(os::Address::loopback(80));
  AcceptProbe accept;
  ASSERT_TRUE(start(loop->backend(), listener, accept));
  const std::string much(100'000, 'x');
  const Bytes piece = to_bytes(much);
  SendProbe send;
  send.pieces = {&piece, 1};
  EXPECT_FALSE(start(loop->backend(), client, send));
  EXPECT_EQ(send.sent, 64u * 1024);
  EXPECT_EQ(host.descriptors().stream(accept.accepted.value())->unread(), 64u * 1024);
  loop->backend().cancel(send);
  host.run_until_idle(*loop);
  EXPECT_EQ(send.error(), Errc::cancelled);
  EXPECT_EQ(send.sent, 64u * 1024);
}

TEST_F(MemoryNetworkTest, ResetFromOutsideReachesBothEnds) {
  Socket& listener = listen_on(*loop, os::Address::loopback(80));
  Socket& client = connected(os::Address::loopback(80));
  AcceptProbe accept;
  ASSERT_TRUE(start(loop->backend(), listener, accept));
  ReceiveProbe receive;
  EXPECT_FALSE(start(loop->backend(), client, receive));
  host.reset_connection(accept.accepted.value());
  host.run_until_idle(*loop);
  EXPECT_EQ(receive.error(), system_error(ECONNRESET));
  Socket& server = *loop->backend().adopt(std::move(accept.accepted), {}).value();
  EXPECT_TRUE(start(loop->backend(), server, receive));
  EXPECT_EQ(receive.error(), system_error(ECONNRESET));
}

TEST_F(MemoryNetworkTest, TheLowestFreeDescriptorComesNext) {
  Socket& first = open_socket(*loop, os::Address::loopback(80));
  Socket& second = open_socket(*loop, os::Address::loopback(80));
  const int low = first.descriptor;
  EXPECT_LT(low, second.descriptor);
  loop->backend().close(first);
  EXPECT_EQ(open_socket(*loop, os::Address::loopback(80)).descriptor, low);
}

TEST_F(MemoryNetworkTest, ClosingAListenerResetsWhoWaited) {
  Socket& listener = listen_on(*loop, os::Address::loopback(80));
  Socket& client = connected(os::Address::loopback(80));
  ReceiveProbe receive;
  start(loop->backend(), client, receive);
  loop->backend().close(listener);
  host.run_until_idle(*loop);
  EXPECT_EQ(receive.error(), system_error(ECONNRESET));
}

TEST_F(MemoryNetworkTest, OnlyTheSimulatedBackendCanBeHad) {
  RunQueue ready;
  EXPECT_EQ(host.make_backend(BackendChoice::epoll, ready).error(), Errc::unsupported);
}

}  // namespace
}  // namespace weir
