// Tests of MemoryPlatform: its clock, its driver of several loops, and the parts of its network
// that differ from real ones.
#include "weir/testing/memory/memory_platform.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir::memory_platform_test {
namespace {

std::unique_ptr<Loop> make_loop(MemoryPlatform& platform, unsigned core = 0) {
  Loop::Options options;
  options.core = core;
  return Loop::make(platform, options).value();
}

loop::Socket& listen_on(Loop& loop, const os::Address& address, const ListenOptions& options = {}) {
  loop::Descriptor descriptor = loop.platform().listen(address, options).value();
  return *loop.backend().adopt(std::move(descriptor), {.role = loop::SocketRole::listener}).value();
}

loop::Socket& open_socket(Loop& loop, const os::Address& peer) {
  return *loop.backend().adopt(loop.platform().open_stream(peer).value(), {}).value();
}

class Control : public loop::RunControl {
 public:
  explicit Control(std::function<void(loop::Signal)> told) : told_(std::move(told)) {}
  void on_signal(loop::Signal signal) override { told_(signal); }

 private:
  std::function<void(loop::Signal)> told_;
};

TEST(MemoryPlatform, TimePassesOnlyWhenTheLoopIsIdle) {
  MemoryPlatform platform;
  const auto loop = make_loop(platform);
  const Instant start = platform.now();
  TimerProbe hour;
  loop->timers().start(hour, start + 1h);
  bool ran = false;
  CallProbe call([&] { ran = true; });
  loop->ready(call);

  EXPECT_TRUE(loop->turn(start));
  EXPECT_TRUE(ran);
  EXPECT_EQ(platform.now(), start);
  int turns = 0;
  while (hour.fired == 0 && ++turns < 100) loop->turn();
  EXPECT_EQ(hour.fired, 1);
  EXPECT_EQ(platform.now(), start + 1h);
}

TEST(MemoryPlatform, ATurnWithNothingToWaitForReturns) {
  MemoryPlatform platform;
  const auto loop = make_loop(platform);
  const Instant start = platform.now();
  EXPECT_FALSE(loop->turn());
  EXPECT_EQ(platform.now(), start);
  loop->turn(start + 5s);
  EXPECT_EQ(platform.now(), start + 5s);
}

TEST(MemoryPlatform, AdvanceStopsAtEveryTimerInOrder) {
  MemoryPlatform platform;
  const auto loop = make_loop(platform);
  const Instant start = platform.now();
  std::vector<std::pair<int, Duration>> fired;
  TimerProbe first, second, chained, late;
  first.then = [&] {
    fired.emplace_back(1, platform.now() - start);
    loop->timers().start(chained, platform.now() + 1ms);
  };
  chained.then = [&] { fired.emplace_back(2, platform.now() - start); };
  second.then = [&] { fired.emplace_back(3, platform.now() - start); };
  loop->timers().start(second, start + 20ms);
  loop->timers().start(first, start + 10ms);
  loop->timers().start(late, start + 31ms);

  platform.advance(*loop, 30ms);
  const std::vector<std::pair<int, Duration>> expected = {{1, 10ms}, {2, 11ms}, {3, 20ms}};
  EXPECT_EQ(fired, expected);
  EXPECT_EQ(late.fired, 0);
  EXPECT_EQ(platform.now(), start + 30ms);
  platform.advance(*loop, 1ms);
  EXPECT_EQ(late.fired, 1);
}

TEST(MemoryPlatform, RunUntilIdleCallsTheEventsThatATurnSchedulesForThisMoment) {
  MemoryPlatform platform;
  const auto loop = make_loop(platform);
  const Instant start = platform.now();
  std::string order;
  CallProbe last([&] { order += 'c'; });
  CallProbe first([&] {
    order += 'a';
    platform.at(start, [&] {
      order += 'b';
      loop->ready(last);
    });
    platform.at(start + 1ns, [&] { order += 'x'; });
  });
  loop->ready(first);
  platform.run_until_idle(*loop);
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(platform.now(), start) << "no time passes";
}

TEST(MemoryPlatform, RunUntilFailsWhenNothingCanHappen) {
  MemoryPlatform platform;
  const auto loop = make_loop(platform);
  TimerProbe timer;
  loop->timers().start(timer, platform.now() + 24h);
  EXPECT_TRUE(platform.run_until(*loop, [&] { return timer.fired == 1; }));
  EXPECT_FALSE(platform.run_until(*loop, [&] { return timer.fired == 2; }));
}

TEST(MemoryPlatform, WallClockFollowsTheClockAndCanBeSet) {
  MemoryPlatform platform;
  const WallTime before = platform.wall_time();
  platform.clock().move_to(platform.now() + 3s);
  EXPECT_EQ(platform.wall_time() - before, 3s);
  const Instant instant = platform.now();
  platform.set_wall_time(before - 1h);
  EXPECT_EQ(platform.wall_time(), before - 1h);
  EXPECT_EQ(platform.now(), instant);
}

TEST(MemoryPlatform, TheSameSeedGivesTheSameRandomNumbers) {
  MemoryPlatform one({.seed = 7}), same({.seed = 7}), other({.seed = 8});
  for (int i = 0; i < 100; ++i) {
    const auto drawn = one.random();
    EXPECT_EQ(drawn, same.random());
    EXPECT_NE(drawn, other.random());
  }
}

TEST(MemoryPlatform, EventsHappenInOrderAtTheirTimes) {
  MemoryPlatform platform;
  const Instant start = platform.now();
  std::string order;
  platform.at(start + 2s, [&] { order += 'c'; });
  platform.at(start + 1s, [&] {
    order += 'a';
    EXPECT_EQ(platform.now(), start + 1s);
    platform.at(start + 1s, [&] { order += 'b'; });
  });
  const auto forgotten = platform.at(start + 1s, [&] { order += 'x'; });
  platform.clock().cancel(forgotten);
  EXPECT_TRUE(platform.clock().move_to(start + 5s));
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(platform.now(), start + 5s);
  EXPECT_FALSE(platform.clock().move_to(start));
  EXPECT_EQ(platform.now(), start + 5s);
}

// Two loops exchange a message over the network; the server's loop then stops both.
TEST(MemoryPlatformRun, RunTurnsSeveralLoopsUntilAllStop) {
  MemoryPlatform platform({.cores = 2});
  const auto server = make_loop(platform, 0);
  const auto client = make_loop(platform, 1);
  loop::Socket& listener = listen_on(*server, os::Address::loopback(0));
  const os::Address address = platform.local_address(listener.descriptor).value();
  AcceptProbe accept;
  ReceiveProbe receive;
  loop::Socket* accepted = nullptr;
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
  loop::Socket& socket = open_socket(*client, address);
  ConnectProbe connect;
  SendProbe send;
  TimerProbe pause;
  const Bytes hello = to_bytes("hello");
  const Instant begun = platform.now();
  connect.then = [&] { client->timers().start(pause, platform.now() + 10min); };
  pause.then = [&] {
    send.pieces = {&hello, 1};
    start(client->backend(), socket, send);
  };
  connect.peer = address;
  start(client->backend(), socket, connect);
  start(server->backend(), listener, accept);

  const std::vector<loop::LoopPlacement> placements = {{server.get(), 0}, {client.get(), 1}};
  ASSERT_TRUE(platform.run(placements, nullptr));
  EXPECT_TRUE(receive.succeeded());
  EXPECT_EQ(platform.now(), begun + 10min);
  client->backend().close(socket);
  server->backend().close(*accepted);
  server->backend().close(listener);
  EXPECT_EQ(platform.open_descriptors(), 0u);
}

TEST(MemoryPlatformRun, DeadlockReportsTheWaitingLoops) {
  MemoryPlatform platform;
  const auto first = make_loop(platform, 0);
  const auto second = make_loop(platform, 1);
  loop::Socket& listener = listen_on(*second, os::Address::loopback(0));
  AcceptProbe accept;
  start(second->backend(), listener, accept);
  TimerProbe once;
  first->timers().start(once, platform.now() + 1s);
  const std::vector<loop::LoopPlacement> placements = {{first.get(), -1}, {second.get(), -1}};
  const auto ran = platform.run(placements, nullptr);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error(), system_error(EDEADLK));
  EXPECT_EQ(once.fired, 1);
  ASSERT_EQ(platform.logged().size(), 1u);
  EXPECT_NE(platform.logged()[0].find("loop 0 waits for nothing; loop 1 waits for 1 accept"),
            std::string::npos)
      << platform.logged()[0];
  second->backend().cancel(accept);
  platform.run_until_idle(*second);
  EXPECT_EQ(accept.error(), Errc::cancelled);
}

TEST(MemoryPlatformRun, SignalsGoToTheControlBetweenTurns) {
  MemoryPlatform platform;
  const auto loop = make_loop(platform);
  std::vector<loop::Signal> told;
  Control control([&](loop::Signal signal) {
    EXPECT_EQ(Loop::current(), nullptr);
    told.push_back(signal);
    if (told.size() == 2) loop->stop();
  });
  platform.at(platform.now() + 3s, [&] { platform.raise(loop::Signal::terminate); });
  platform.raise(loop::Signal::interrupt);
  const loop::LoopPlacement placement{loop.get(), -1};
  const Instant start = platform.now();
  ASSERT_TRUE(platform.run({&placement, 1}, &control));
  EXPECT_EQ(told, (std::vector{loop::Signal::interrupt, loop::Signal::terminate}));
  EXPECT_EQ(platform.now(), start + 3s);
}

TEST(MemoryPlatformRun, ASignalWithoutAControlEndsTheRun) {
  MemoryPlatform platform;
  const auto loop = make_loop(platform);
  platform.raise(loop::Signal::interrupt);
  const loop::LoopPlacement placement{loop.get(), -1};
  EXPECT_EQ(platform.run({&placement, 1}, nullptr).error(), system_error(EINTR));
}

class MemoryNetworkTest : public ::testing::Test {
 protected:
  loop::Socket& connected(const os::Address& peer) {
    loop::Socket& socket = open_socket(*loop, peer);
    ConnectProbe connect;
    connect.peer = peer;
    start(loop->backend(), socket, connect);
    platform.run_until_idle(*loop);
    EXPECT_TRUE(connect.succeeded()) << connect.error().message();
    return socket;
  }
  std::size_t waiting(const loop::Socket& listener) {
    return platform.descriptors().listener(listener.descriptor)->waiting();
  }

  MemoryPlatform platform;
  std::unique_ptr<Loop> loop = make_loop(platform);
};

TEST_F(MemoryNetworkTest, ListenersOfOneAddressTakeTurns) {
  loop::Socket& first = listen_on(*loop, os::Address::loopback(80));
  loop::Socket& second = listen_on(*loop, os::Address::loopback(80));
  loop::Socket& third = listen_on(*loop, os::Address::loopback(80));
  for (int i = 0; i < 6; ++i) connected(os::Address::loopback(80));
  for (const loop::Socket* each : {&first, &second, &third}) EXPECT_EQ(waiting(*each), 2u);
  ASSERT_TRUE(platform.refuse_new_connections(second.descriptor));
  for (int i = 0; i < 4; ++i) connected(os::Address::loopback(80));
  EXPECT_EQ(waiting(second), 2u);
  EXPECT_EQ(waiting(first) + waiting(third), 8u);
}

TEST_F(MemoryNetworkTest, AnAddressIsTakenUnlessAllListenersShareIt) {
  const ListenOptions alone{.reuse_port = false};
  listen_on(*loop, os::Address::loopback(80));
  EXPECT_EQ(platform.listen(os::Address::loopback(80), alone).error(), system_error(EADDRINUSE));
  EXPECT_EQ(platform.listen(os::Address::any(80), alone).error(), system_error(EADDRINUSE));
  EXPECT_TRUE(platform.listen(os::Address::loopback(81), alone));
  const os::Address local = os::Address::local("/run/a").value();
  const auto path = platform.listen(local, {});
  ASSERT_TRUE(path);
  EXPECT_EQ(platform.listen(local, {}).error(), system_error(EADDRINUSE));
}

TEST_F(MemoryNetworkTest, TheMostSpecificListenerIsFound) {
  loop::Socket& every = listen_on(*loop, os::Address::any(80));
  loop::Socket& exact = listen_on(*loop, os::Address::loopback(80));
  loop::Socket& client = connected(os::Address::loopback(80));
  EXPECT_EQ(waiting(exact), 1u);
  connected(os::Address::ipv4({10, 0, 0, 1}, 80));
  EXPECT_EQ(waiting(every), 1u);
  EXPECT_EQ(platform.peer_address(client.descriptor).value(), os::Address::loopback(80));
  EXPECT_NE(platform.local_address(client.descriptor).value().port(), 0);
}

TEST_F(MemoryNetworkTest, AConnectToAFullQueueSucceedsWhenThereIsRoom) {
  loop::Socket& listener = listen_on(*loop, os::Address::loopback(80), {.backlog = 0});
  connected(os::Address::loopback(80));
  loop::Socket& late = open_socket(*loop, os::Address::loopback(80));
  ConnectProbe connect;
  connect.peer = os::Address::loopback(80);
  start(loop->backend(), late, connect);
  platform.advance(*loop, 10s);
  EXPECT_FALSE(connect.done());
  AcceptProbe accept;
  EXPECT_TRUE(start(loop->backend(), listener, accept));
  EXPECT_TRUE(platform.run_until(*loop, [&] { return connect.done(); }));
  EXPECT_TRUE(connect.succeeded());
}

TEST_F(MemoryNetworkTest, AConnectWithoutAnAnswerTimesOut) {
  loop::Socket& listener = listen_on(*loop, os::Address::loopback(80));
  ASSERT_TRUE(platform.refuse_new_connections(listener.descriptor));
  loop::Socket& socket = open_socket(*loop, os::Address::loopback(80));
  ConnectProbe connect;
  connect.peer = os::Address::loopback(80);
  start(loop->backend(), socket, connect);
  const Instant begun = platform.now();
  EXPECT_TRUE(platform.run_until(*loop, [&] { return connect.done(); }));
  EXPECT_EQ(connect.error(), system_error(ETIMEDOUT));
  EXPECT_EQ(platform.now() - begun, 127s);
}

TEST_F(MemoryNetworkTest, AcceptingPausesWithoutDescriptorsAndResumes) {
  loop::Socket& listener = listen_on(*loop, os::Address::loopback(80));
  connected(os::Address::loopback(80));
  loop::Socket& second = connected(os::Address::loopback(80));
  platform.set_descriptors_max(platform.open_descriptors());
  AcceptProbe accept;
  EXPECT_FALSE(start(loop->backend(), listener, accept));
  platform.run_until_idle(*loop);
  EXPECT_EQ(loop->backend().counters().accept_pauses.value(), 1u);
  EXPECT_EQ(platform.open_stream(os::Address::loopback(80)).error(), system_error(EMFILE));
  loop->backend().close(second);
  EXPECT_TRUE(platform.run_until(*loop, [&] { return accept.done(); }));
  EXPECT_TRUE(accept.succeeded());
}

TEST_F(MemoryNetworkTest, AConnectionHoldsNoMoreThanItsBuffer) {
  loop::Socket& listener = listen_on(*loop, os::Address::loopback(80));
  loop::Socket& client = connected(os::Address::loopback(80));
  AcceptProbe accept;
  ASSERT_TRUE(start(loop->backend(), listener, accept));
  const std::string much(100'000, 'x');
  const Bytes piece = to_bytes(much);
  SendProbe send;
  send.pieces = {&piece, 1};
  EXPECT_FALSE(start(loop->backend(), client, send));
  EXPECT_EQ(send.sent, 64u * 1024);
  EXPECT_EQ(platform.descriptors().stream(accept.accepted.value())->unread(), 64u * 1024);
  loop->backend().cancel(send);
  platform.run_until_idle(*loop);
  EXPECT_EQ(send.error(), Errc::cancelled);
  EXPECT_EQ(send.sent, 64u * 1024);
}

TEST_F(MemoryNetworkTest, ResetFromOutsideReachesBothEnds) {
  loop::Socket& listener = listen_on(*loop, os::Address::loopback(80));
  loop::Socket& client = connected(os::Address::loopback(80));
  AcceptProbe accept;
  ASSERT_TRUE(start(loop->backend(), listener, accept));
  ReceiveProbe receive;
  EXPECT_FALSE(start(loop->backend(), client, receive));
  platform.reset_connection(accept.accepted.value());
  platform.run_until_idle(*loop);
  EXPECT_EQ(receive.error(), system_error(ECONNRESET));
  loop::Socket& server = *loop->backend().adopt(std::move(accept.accepted), {}).value();
  EXPECT_TRUE(start(loop->backend(), server, receive));
  EXPECT_EQ(receive.error(), system_error(ECONNRESET));
}

TEST_F(MemoryNetworkTest, TheLowestFreeDescriptorIsUsedNext) {
  loop::Socket& first = open_socket(*loop, os::Address::loopback(80));
  loop::Socket& second = open_socket(*loop, os::Address::loopback(80));
  const int low = first.descriptor;
  EXPECT_LT(low, second.descriptor);
  loop->backend().close(first);
  EXPECT_EQ(open_socket(*loop, os::Address::loopback(80)).descriptor, low);
}

TEST_F(MemoryNetworkTest, ClosingAListenerResetsWaitingConnections) {
  loop::Socket& listener = listen_on(*loop, os::Address::loopback(80));
  loop::Socket& client = connected(os::Address::loopback(80));
  ReceiveProbe receive;
  start(loop->backend(), client, receive);
  loop->backend().close(listener);
  platform.run_until_idle(*loop);
  EXPECT_EQ(receive.error(), system_error(ECONNRESET));
}

TEST_F(MemoryNetworkTest, OnlyTheSimulatedBackendIsSupported) {
  loop::RunQueue ready;
  EXPECT_EQ(platform.make_backend(BackendChoice::epoll, ready).error(), Errc::unsupported);
}

}  // namespace
}  // namespace weir::memory_platform_test
