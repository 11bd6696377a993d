// Several processes of one machine of a World: what they share, and what the death of one does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "weir/net/udp.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/test/world_fixture.hpp"
#include "weir/sim/peer.hpp"

namespace weir {
namespace {

using namespace std::chrono_literals;

RuntimeOptions taking_over(std::string service = "echo") {
  RuntimeOptions options = quiet();
  options.takeover = HandoverOptions{"/run/echo", std::move(service)};
  return options;
}

int serve_taking_over(Host& host) {
  return Runtime(host, taking_over()).run_on_each_core(serve_echo);
}

bool has_logged(const WorldHost& host, std::string_view part) {
  return std::ranges::any_of(host.logged(),
                             [&](const std::string& line) { return line.contains(part); });
}

/// Two processes of one machine, and a host of peers.
class WorldProcesses : public testing::Test {
 protected:
  World world_{fresh_world()};
  WorldHost& first_ = world_.host("machine");
  WorldHost& second_ = world_.process(first_, "second");
  WorldHost& peers_ = world_.host("peers");
};

TEST_F(WorldProcesses, ShareTheAddressAndItsPorts) {
  first_.start([](Host& host) { return Runtime(host, quiet()).run_on_each_core(serve_echo); });
  world_.at(1s, [&] {
    second_.start([](Host& host) { return Runtime(host, quiet()).run_on_each_core(serve_echo); });
  });
  world_.at(5s, [&] { first_.raise(Signal::terminate); });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_EQ(second_.address(7), first_.address(7));
  ASSERT_EQ(report.failures.size(), 1U) << report.text();
  EXPECT_EQ(report.failures[0], "second: main has returned 1");
  EXPECT_TRUE(has_logged(second_, "Address already in use"));
}

TEST_F(WorldProcesses, OneTakesOverFromTheOther) {
  first_.start(serve_taking_over);
  world_.at(1s, [&] { second_.start(serve_taking_over); });
  std::optional<WorldPeer> peer;
  world_.at(20s, [&] {
    EXPECT_TRUE(first_.done());
    peer.emplace(peers_, first_.address(7));
    peer->send("hello");
  });
  world_.at(30s, [&] {
    EXPECT_EQ(peer->received(), "hello");
    peer.reset();
    second_.raise(Signal::terminate);
  });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_TRUE(has_logged(first_, "a newer process has taken over: draining"));
  EXPECT_TRUE(has_logged(second_, "taken over: this process accepts"));
}

TEST_F(WorldProcesses, AnotherServiceDoesNotTakeOver) {
  first_.start(serve_taking_over);
  world_.at(1s, [&] {
    second_.start([](Host& host) {
      return Runtime(host, taking_over("another")).run_on_each_core(serve_echo);
    });
  });
  world_.at(30s, [&] { first_.raise(Signal::terminate); });
  const WorldReport report = world_.run_until_done(1h);
  ASSERT_EQ(report.failures.size(), 1U) << report.text();
  EXPECT_EQ(report.failures[0], "second: main has returned 1");
  EXPECT_TRUE(has_logged(second_, "cannot take sockets over at '/run/echo'"));
}

TEST_F(WorldProcesses, AKilledOneLosesItsConnectionsAndItsPort) {
  first_.start([](Host& host) { return Runtime(host, quiet()).run_on_each_core(serve_echo); });
  std::optional<WorldPeer> peer;
  std::optional<WorldPeer> late;
  world_.at(1s, [&] {
    peer.emplace(peers_, first_.address(7));
    peer->send("hello");
  });
  world_.at(3s, [&] {
    EXPECT_EQ(peer->received(), "hello");
    first_.kill();
    EXPECT_EQ(first_.lost().size(), 1U);
    late.emplace(peers_, first_.address(7));
    EXPECT_FALSE(late->connected());
    // Another one may have the port at once.
    second_.start([](Host& host) { return Runtime(host, quiet()).run_on_each_core(serve_echo); });
  });
  world_.at(5s, [&] {
    EXPECT_EQ(peer->state(), Errc::end_of_stream);
    late.emplace(peers_, first_.address(7));
    late->send("late");
  });
  world_.at(7s, [&] {
    EXPECT_EQ(late->received(), "late");
    late.reset();
    second_.raise(Signal::terminate);
  });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_TRUE(first_.killed());
}

Task<Result<>> hear_one(Scope&, std::string& heard, Endpoint at) {
  auto socket = co_await udp::bind(at);
  if (!socket) co_return fail(socket.error());
  const auto datagram = co_await socket->receive();
  if (!datagram) co_return fail(datagram.error());
  heard += datagram->buffer.text();
  co_return {};
}

/// When whoever is to hear it listens.
Task<Result<>> say_one(Scope&, Endpoint to) {
  const auto slept = co_await sleep(1s);
  if (!slept) co_return slept;
  auto socket = co_await udp::connect(to);
  if (!socket) co_return fail(socket.error());
  co_return co_await socket->send(std::string_view("hello"));
}

// The machine is the first process', and goes on without it.
TEST_F(WorldProcesses, WhoLivesOnHasDatagramsAndThePortsOfTheDead) {
  std::string never_heard;
  std::string heard_here;
  std::string heard_there;
  const Endpoint port = Endpoint::any(53);
  first_.start([&](Host& host) {
    return Runtime(host, quiet()).run_on_each_core(hear_one, std::ref(never_heard), port);
  });
  WorldHost& third = world_.process(first_, "third");
  WorldHost& peer = world_.process(peers_, "peer");
  world_.at(1s, [&] {
    first_.kill();
    second_.start([&](Host& host) {
      return Runtime(host, quiet()).run_on_each_core(hear_one, std::ref(heard_here), port);
    });
    peers_.start([&](Host& host) {
      return Runtime(host, quiet()).run_on_each_core(hear_one, std::ref(heard_there), port);
    });
    third.start([&](Host& host) {
      return Runtime(host, quiet()).run_on_each_core(say_one, peers_.address(53));
    });
    peer.start([&](Host& host) {
      return Runtime(host, quiet()).run_on_each_core(say_one, first_.address(53));
    });
  });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(heard_here, "hello");
  EXPECT_EQ(heard_there, "hello");
  EXPECT_EQ(never_heard, "");
}

TEST_F(WorldProcesses, AKilledOneCanBeStartedAgain) {
  first_.start(serve_taking_over);
  world_.at(1s, [&] { first_.kill(); });
  const WorldReport killed = world_.run_until_done(1h);
  EXPECT_TRUE(killed.ok()) << killed.text();
  EXPECT_TRUE(first_.killed());
  first_.start(serve_taking_over);
  world_.at(1s, [&] {
    EXPECT_TRUE(first_.listens());
    first_.raise(Signal::terminate);
  });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_FALSE(first_.killed());
  EXPECT_FALSE(first_.listens());
}

// What its main still does, destructors included, is not in the next life's files; nor is what it
// throws anybody's failure.
TEST_F(WorldProcesses, AKilledOneLeavesItsFilesAsTheyAre) {
  std::error_code made;
  std::error_code written;
  first_.start([&](Host& host) -> int {
    FileSystem& files = host.files();
    const auto file = files.open("/tmp/state", {.mode = os::FileMode::make_new});
    EXPECT_TRUE(file);
    EXPECT_EQ(files.write_at(file->value(), to_bytes("begun"), 0).value_or(0), 5U);
    const int status = serve_taking_over(host);
    const auto making = files.make_directory("/tmp/after", 0700);
    if (!making) made = making.error();
    const auto writing = files.write_at(file->value(), to_bytes("ended"), 0);
    if (!writing) written = writing.error();
    EXPECT_FALSE(files.open("/tmp/state", {.mode = os::FileMode::replace}));
    EXPECT_FALSE(files.rename("/tmp/state", "/tmp/other"));
    EXPECT_FALSE(files.remove("/tmp/state"));
    EXPECT_FALSE(files.resize(file->value(), 0));
    EXPECT_FALSE(files.sync(file->value()));
    EXPECT_FALSE(files.sync_directory("/tmp"));
    if (status != 99) throw std::runtime_error("no main of the living");
    return status;
  });
  world_.at(1s, [&] { first_.kill(); });
  const WorldReport killed = world_.run_until_done(1h);
  EXPECT_TRUE(killed.ok()) << killed.text();
  EXPECT_EQ(made, system_error(EINTR));
  EXPECT_EQ(written, system_error(EINTR));
  std::string found;
  first_.start([&found](Host& host) {
    FileSystem& files = host.files();
    const auto entries = files.list("/tmp", 10);  // GCC 12 would not keep a temporary of the loop
    for (const os::DirectoryEntry& each : entries.value()) found += each.name + " ";
    std::array<std::byte, 10> room{};
    const auto file = files.open("/tmp/state", {});
    const std::size_t count = files.read_at(file->value(), room, 0).value();
    found += to_text(Bytes(room).first(count));
    return 0;
  });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(found, "state begun");
}

// Whoever dies before it has anything changes nothing.
TEST_F(WorldProcesses, ANewerOneThatDiesWhileItAsksHurtsNobody) {
  for (std::uint64_t step = 0; step < 3; ++step) {
    World world(fresh_world());
    WorldHost& older = world.host("older");
    WorldHost& newer = world.process(older, "newer");
    older.start(serve_taking_over);
    world.at(1s, [&] {
      newer.start(serve_taking_over);
      newer.kill_at_handover_step(step);
    });
    world.at(30s, [&] {
      EXPECT_TRUE(newer.killed());
      EXPECT_TRUE(older.listens());
      older.raise(Signal::terminate);
    });
    const WorldReport report = world.run_until_done(1h);
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_FALSE(has_logged(older, "a newer process has taken over"));
  }
}

TEST_F(WorldProcesses, AKilledOneMayBeStartedAgainAtOnce) {
  int served = 0;
  const auto serve = [&served](Host& host) {
    const int status = Runtime(host, quiet()).run_on_each_core(serve_echo);
    ++served;
    return status;
  };
  first_.start_service(serve);
  world_.at(1s, [&] {
    first_.kill();
    first_.start_service(serve);
    EXPECT_FALSE(first_.done());
  });
  Asked asked;
  peers_.start([&](Host& host) {
    return Runtime(host, quiet()).run_on_each_core([&](Scope& scope) -> Task<> {
      static_cast<void>(co_await sleep(5s));
      co_await ask_echo(scope, first_.address(7), asked);
    });
  });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(asked.received, asked.text);
  EXPECT_EQ(served, 2);
}

TEST_F(WorldProcesses, WhatFailedBeforeARestartIsTold) {
  first_.start([](Host&) { return 3; });
  second_.start([](Host&) -> int { throw std::runtime_error("no idea"); });
  const auto well = [](Host&) { return 0; };
  world_.at(1s, [&] {
    first_.start(well);
    second_.start(well);
  });
  peers_.start([](Host& host) {
    return Runtime(host, quiet()).run_on_each_core([](Scope&) -> Task<> {
      static_cast<void>(co_await sleep(2s));
    });
  });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_THAT(report.failures, testing::UnorderedElementsAre("machine: main has returned 3",
                                                             "second: main has thrown no idea"));
  const WorldReport again = world_.run_until_done(1h);
  EXPECT_TRUE(again.ok()) << again.text();
}

TEST_F(WorldProcesses, AServiceThatDrainsIsNotToldToHurry) {
  first_.start_service(
      [](Host& host) { return Runtime(host, quiet()).run_on_each_core(serve_echo); });
  peers_.start([&](Host& host) {
    return Runtime(host, quiet()).run_on_each_core([&](Scope&) -> Task<> {
      static_cast<void>(co_await sleep(1s));
      auto stream = co_await tcp::connect(first_.address(7));
      EXPECT_TRUE(stream.has_value());
      static_cast<void>(co_await sleep(5s));
    });
  });
  world_.at(3s, [&] { first_.raise(Signal::terminate); });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_TRUE(has_logged(first_, "SIGTERM: draining"));
  EXPECT_FALSE(has_logged(first_, "again: stopping at once"));
}

TEST_F(WorldProcesses, AConnectionThatNobodyClosesIsFound) {
  alignas(tcp::Stream) std::array<std::byte, sizeof(tcp::Stream)> forgotten{};
  first_.start_service(
      [](Host& host) { return Runtime(host, quiet()).run_on_each_core(serve_echo); });
  peers_.start([&](Host& host) {
    return Runtime(host, quiet()).run_on_each_core([&](Scope&) -> Task<> {
      static_cast<void>(co_await sleep(1s));
      auto stream = co_await tcp::connect(first_.address(7));
      EXPECT_TRUE(stream.has_value());
      if (stream) new (&forgotten) tcp::Stream(std::move(*stream));
    });
  });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_THAT(report.text(), testing::HasSubstr("peers/0: "));
  EXPECT_THAT(report.text(), testing::HasSubstr("a connection with " +
                                                first_.address(7).to_string() + " not closed"));
}

}  // namespace
}  // namespace weir
