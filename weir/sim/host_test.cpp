// Tests of a Host: its address, its mains, its connections and what it refuses to do.
#include "weir/sim/host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/sim/peer.hpp"
#include "weir/sim/test/world_fixture.hpp"

namespace weir::sim::host_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

int serve_for_ever(loop::Platform& host) {
  return Runtime(host, quiet()).run_on_each_core(serve_echo);
}
Task<> sleep_for(Scope&, Duration time) {
  std::ignore = co_await sleep(time);
}
/// Returns a main that ends after `time`.
MainFunction main_for(Duration time) {
  return [time](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core(sleep_for, time);
  };
}

TEST(Host, HasAnAddressForItsNumber) {
  WorldState state{WorldOptions{.seed = 1}};
  struct {
    unsigned number;
    std::array<std::uint8_t, 4> bytes;
  } const cases[] = {
      {0, {10, 0, 0, 1}},          {254, {10, 0, 0, 255}},  {255, {10, 0, 1, 0}},
      {65'534, {10, 0, 255, 255}}, {65'535, {10, 1, 0, 0}}, {131'328, {10, 2, 1, 1}},
  };
  for (const auto& each : cases) {
    const Host host(state, "host", each.number, {});
    EXPECT_EQ(host.address(80), Endpoint::ipv4(each.bytes, 80)) << each.number;
  }
}

TEST(Host, HasDocumentedDefaults) {
  World world({.seed = 1});
  Host& host = world.host("host");
  EXPECT_EQ(host.name(), "host");
  EXPECT_EQ(host.topology().cores.size(), 1U);
  EXPECT_EQ(host.options().buffer_bytes, 65'536U);
  EXPECT_EQ(host.options().files, MemoryFiles::by_backend);
  EXPECT_EQ(host.descriptor_limit().descriptors_max, std::size_t{1} << 20);
  EXPECT_FALSE(host.killed());
  EXPECT_FALSE(host.listens());
  EXPECT_TRUE(host.done());
  EXPECT_EQ(host.status(), std::nullopt);
  EXPECT_EQ(host.operations() + host.accepts() + host.datagrams(), 0U);
  EXPECT_EQ(host.handover_steps(), 0U);
  Host& other = world.host(
      "other",
      {.cores = 3, .buffer_bytes = 4096, .descriptors_max = 9, .files = MemoryFiles::by_threads});
  EXPECT_EQ(other.topology().cores.size(), 3U);
  EXPECT_EQ(other.options().buffer_bytes, 4096U);
  EXPECT_EQ(other.descriptor_limit().descriptors_max, 9U);
  EXPECT_EQ(other.options().files, MemoryFiles::by_threads);
  EXPECT_NE(host.random(), other.random()) << "each host has its own numbers";
}

TEST(Host, KnowsTheStatusOfItsLastMain) {
  World world({.seed = 1});
  Host& host = world.host("host");
  host.start([](loop::Platform&) { return 3; });
  EXPECT_FALSE(host.done());
  EXPECT_EQ(host.status(), std::nullopt);
  EXPECT_THAT(world.run_until_done(1h).failures, ElementsAre("host: main returned 3"));
  EXPECT_TRUE(host.done());
  EXPECT_EQ(host.status(), 3);
  EXPECT_TRUE(world.run_until_done(1h).ok()) << "the failure is reported once";
  host.start([](loop::Platform&) -> int { throw 1; });
  EXPECT_EQ(host.status(), std::nullopt);
  EXPECT_THAT(world.run_until_done(1h).failures,
              ElementsAre("host: main threw an exception of an unknown type"));
  EXPECT_EQ(host.status(), std::nullopt);
  host.start([](loop::Platform&) { return 0; });
  EXPECT_TRUE(world.run_until_done(1h).ok());
  EXPECT_EQ(host.status(), 0);
}

void start_twice() {
  World world({.seed = 1});
  Host& host = world.host("host");
  host.start(main_for(1h));
  host.start(main_for(1h));
}

TEST(Host, RunsOneMainAtATime) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(start_twice(), "weir: host: cannot start: its main function still runs");
}

void turn_by_hand() {
  World world({.seed = 1});
  world.host("host").start([](loop::Platform& host) {
    const auto loop = Loop::make(host, {}).value();
    loop->turn(after(host.now(), 1s));
    return 0;
  });
  static_cast<void>(world.run_until_done(1h));
}

TEST(Host, DoesNotTurnALoopByHand) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(turn_by_hand(), "weir: host: Loop::turn\\(\\) is not supported in a World");
}

TEST(Host, ATurnThatDoesNotWaitIsAllowed) {
  World world({.seed = 1});
  world.host("host").start([](loop::Platform& host) {
    const auto loop = Loop::make(host, {}).value();
    loop->turn(host.now());
    return 0;
  });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
}

TEST(Host, ListsItsOpenConnections) {
  World world({.seed = 1});
  Host& server = world.host("server");
  Host& clients = world.host("clients");
  server.start_service(serve_for_ever);
  clients.start(main_for(30s));
  std::optional<Peer> first;
  std::optional<Peer> second;
  world.schedule(1s, [&] {
    EXPECT_TRUE(server.listens());
    EXPECT_FALSE(clients.listens());
    EXPECT_THAT(server.connections(), ElementsAre());
    first.emplace(clients, server.address(7));
    first->send("hello");
    second.emplace(clients, server.address(7));
  });
  world.schedule(5s, [&] {
    const std::vector<ConnectionInfo> open = server.connections();
    ASSERT_EQ(open.size(), 2U);
    EXPECT_EQ(open[0].peer.with_port(0), clients.address(0));
    EXPECT_EQ(open[0].received + open[1].received, 5U);
    EXPECT_EQ(first->received(), "hello");
    first.reset();
  });
  world.schedule(10s, [&] {
    EXPECT_EQ(server.connections().size(), 1U);
    second.reset();
  });
  world.schedule(15s, [&] { EXPECT_EQ(server.connections().size(), 0U); });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(server.accepts(), 2U);
  EXPECT_GE(server.operations(), 4U);
}

TEST(Host, AKillRemembersTheConnectionsAndHasNoFurtherEffect) {
  World world({.seed = 1, .trace = true});
  Host& server = world.host("server");
  Host& clients = world.host("clients");
  int after_kill = 0;
  server.start_service([&](loop::Platform& host) {
    const int status = serve_for_ever(host);
    host.log("never logged");
    ++after_kill;
    return status + 5;
  });
  clients.start(main_for(10s));
  std::optional<Peer> peer;
  world.schedule(1s, [&] {
    peer.emplace(clients, server.address(7));
    peer->send("hello");
  });
  world.schedule(2s, [&] {
    server.kill();
    EXPECT_TRUE(server.killed());
    ASSERT_EQ(server.lost().size(), 1U);
    EXPECT_EQ(server.lost()[0].received, 5U);
    EXPECT_EQ(server.lost()[0].peer.with_port(0), clients.address(0));
    EXPECT_FALSE(server.done()) << "the rest of the main still runs";
    server.kill();
    EXPECT_EQ(server.lost().size(), 1U) << "a second kill does nothing";
  });
  world.schedule(5s, [&] {
    EXPECT_TRUE(server.done());
    EXPECT_TRUE(server.killed());
    server.kill();
    EXPECT_EQ(server.lost().size(), 1U) << "no main runs";
    peer.reset();
  });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(after_kill, 1);
  EXPECT_THAT(server.logged(), testing::Not(testing::Contains("never logged")));
  const std::size_t traced = world.trace().find("server is killed\n");
  ASSERT_NE(traced, std::string::npos);
  EXPECT_EQ(world.trace().find("server is killed\n", traced + 1), std::string::npos);
  server.start(main_for(1s));
  EXPECT_FALSE(server.killed());
  EXPECT_EQ(server.lost().size(), 1U) << "those of the last kill";
  world.schedule(500ms, [&] {
    server.kill();
    EXPECT_THAT(server.lost(), ElementsAre()) << "no connection was open";
  });
  EXPECT_TRUE(world.run_until_done(1h).ok());
  EXPECT_TRUE(server.killed());
}

TEST(Host, AKillWithoutAMainDoesNothing) {
  World world({.seed = 1, .jitter = no_jitter, .trace = true});
  Host& host = world.host("host");
  host.kill();
  EXPECT_FALSE(host.killed());
  host.start([](loop::Platform&) { return 3; });
  world.host("other").start(main_for(2s));
  world.schedule(1s, [&] {
    EXPECT_EQ(host.status(), 3);
    host.kill();
    EXPECT_FALSE(host.killed());
  });
  EXPECT_THAT(world.run_until_done(1h).failures, ElementsAre("host: main returned 3"))
      << "it has failed before the kill";
  EXPECT_THAT(world.trace(), testing::Not(HasSubstr("is killed")));
}

TEST(Host, ASignalForADeadProcessIsLost) {
  World world({.seed = 1, .jitter = no_jitter});
  Host& host = world.host("host");
  host.start(main_for(1h));
  world.host("other").start(main_for(5s));
  world.schedule(1s, [&] {
    host.raise(loop::Signal::terminate);
    host.kill();
    host.raise(loop::Signal::interrupt);
  });
  world.schedule(2s, [&] {
    EXPECT_TRUE(host.done());
    host.raise(loop::Signal::terminate);
    host.start(main_for(10s));
  });
  const Instant start = world.now();
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(world.now() - start, 12s) << "the new main runs to its end";
  EXPECT_THAT(host.logged(), testing::Not(testing::Contains(HasSubstr("SIG"))));
}

TEST(Host, ASignalAfterAStartReachesTheNewMain) {
  World world({.seed = 1, .jitter = no_jitter});
  Host& host = world.host("host");
  host.start(main_for(1h));
  world.schedule(1s, [&] {
    host.kill();
    host.start_service(serve_for_ever);
    host.raise(loop::Signal::interrupt);
    EXPECT_TRUE(host.terminate_sent);
  });
  const Instant start = world.now();
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_LT(world.now() - start, 1min);
  EXPECT_THAT(host.logged(), testing::Contains(HasSubstr("SIGINT: draining")).Times(1));
  EXPECT_THAT(host.logged(), testing::Not(testing::Contains(HasSubstr("again"))));
}

TEST(Host, AConnectionThatWaitsIsNotInItsList) {
  World world({.seed = 1, .jitter = no_jitter});
  Host& server = world.host("server");
  Host& clients = world.host("clients");
  const loop::Descriptor listener = server.listen(Endpoint::any(7), {}).value();
  const Peer waiting(clients, server.address(7));
  EXPECT_TRUE(waiting.connected());
  EXPECT_THAT(server.connections(), ElementsAre());
  const loop::Descriptor stream = server.open_stream(clients.address(7)).value();
  EXPECT_THAT(server.connections(), ElementsAre()) << "a stream without a connection";
}

TEST(Host, ASignalReachesItsProgramAndIsTheOnlyOne) {
  World world({.seed = 1});
  Host& server = world.host("server");
  server.start_service(serve_for_ever);
  world.host("client").start(main_for(10s));
  Instant ended = never;
  world.schedule(2s, [&] {
    EXPECT_FALSE(server.terminate_sent);
    server.raise(loop::Signal::interrupt);
    EXPECT_TRUE(server.terminate_sent);
  });
  world.schedule(5s, [&] {
    EXPECT_TRUE(server.done());
    ended = world.now();
  });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_NE(ended, never);
  EXPECT_THAT(server.logged(), testing::Contains(HasSubstr("SIGINT")));
  EXPECT_THAT(server.logged(), testing::Not(testing::Contains(HasSubstr("again"))));
}

TEST(Host, InheritsOnlyAListener) {
  World world({.seed = 1});
  Host& host = world.host("host");
  const int listener = host.listen(Endpoint::any(80), {}).value().release();
  const int stream = host.open_stream(host.address(80)).value().release();
  {
    const auto inherited = host.inherit_listener(listener);
    ASSERT_TRUE(inherited);
    EXPECT_EQ(inherited->value(), listener);
    EXPECT_TRUE(host.listens());
  }
  EXPECT_FALSE(host.listens());
  EXPECT_EQ(host.inherit_listener(stream).error(), system_error(EINVAL));
  EXPECT_EQ(host.open_descriptors(), 0U) << "the descriptor is closed if it fails";
}

TEST(Host, AKilledProcessDoesNotRefuseForOthers) {
  World world({.seed = 1});
  Host& host = world.host("host");
  EXPECT_EQ(host.refuse_new_connections(77).error(), system_error(EBADF));
  host.start([&](loop::Platform& its) {
    host.kill();
    EXPECT_TRUE(its.refuse_new_connections(77)) << "nothing is done";
    return 0;
  });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
}

TEST(Host, ItsLogIsInTheTrace) {
  World world({.seed = 1, .trace = true});
  Host& host = world.host("host");
  host.log("a line");
  EXPECT_THAT(host.logged(), ElementsAre("a line"));
  EXPECT_EQ(world.trace(), "0.000000000 - host: a line\n");
}

TEST(HostLeaks, ABlockedPoolThreadAndAnOpenLoopAreReported) {
  World world({.seed = 1});
  Host& host = world.host("host");
  std::unique_ptr<Loop> loop;
  struct Work final : loop::ThreadWork {
    std::optional<Instant> step() noexcept override { return never; }
  } work;
  std::unique_ptr<loop::PlatformThread> thread;
  host.start([&](loop::Platform& its) {
    loop = Loop::make(its, {}).value();
    thread = its.make_thread({.name = "thread"}, work);
    EXPECT_TRUE(thread->start());
    return 0;
  });
  EXPECT_THAT(world.run_until_done(1h).failures,
              ElementsAre("host: 1 loops exist", "host: 1 threads run"));
  thread.reset();
  loop.reset();
  EXPECT_TRUE(world.run_until_done(1h).ok());
}

}  // namespace
}  // namespace weir::sim::host_test
