// Tests of several processes on one machine of a World: the resources that they share, and the
// death of one of them.
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
#include "weir/sim/peer.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/test/world_fixture.hpp"

namespace weir::sim::process_test {
namespace {

using namespace std::chrono_literals;

RuntimeOptions taking_over(std::string service = "echo") {
  RuntimeOptions options = quiet();
  options.hot_restart = HandoverOptions{"/run/echo", std::move(service)};
  return options;
}

int serve_taking_over(loop::Platform& host) {
  return Runtime(host, taking_over()).run_on_each_core(serve_echo);
}

bool has_logged(const Host& host, std::string_view part) {
  return std::ranges::any_of(host.logged(),
                             [&](const std::string& line) { return line.contains(part); });
}

/// A World with two processes on one machine, and a host for peers.
class WorldProcesses : public testing::Test {
 protected:
  World world_{fresh_world_options()};
  Host& first_ = world_.host("machine");
  Host& second_ = world_.process(first_, "second");
  Host& peers_ = world_.host("peers");
};

TEST_F(WorldProcesses, ShareTheAddressAndItsPorts) {
  first_.start(
      [](loop::Platform& host) { return Runtime(host, quiet()).run_on_each_core(serve_echo); });
  world_.schedule(1s, [&] {
    second_.start(
        [](loop::Platform& host) { return Runtime(host, quiet()).run_on_each_core(serve_echo); });
  });
  world_.schedule(5s, [&] { first_.raise(loop::Signal::terminate); });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_EQ(second_.address(7), first_.address(7));
  ASSERT_EQ(report.failures.size(), 1U) << report.text();
  EXPECT_EQ(report.failures[0], "second: main returned 1");
  EXPECT_TRUE(has_logged(second_, "Address already in use"));
}

TEST_F(WorldProcesses, ANewerOneTakesOverFromAnOlderOne) {
  first_.start(serve_taking_over);
  world_.schedule(1s, [&] { second_.start(serve_taking_over); });
  std::optional<Peer> peer;
  world_.schedule(20s, [&] {
    EXPECT_TRUE(first_.done());
    peer.emplace(peers_, first_.address(7));
    peer->send("hello");
  });
  world_.schedule(30s, [&] {
    EXPECT_EQ(peer->received(), "hello");
    peer.reset();
    second_.raise(loop::Signal::terminate);
  });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_TRUE(has_logged(first_, "a newer process has taken over: draining"));
  EXPECT_TRUE(has_logged(second_, "hot restart complete: this process accepts connections"));
}

TEST_F(WorldProcesses, AnotherServiceDoesNotTakeOver) {
  first_.start(serve_taking_over);
  world_.schedule(1s, [&] {
    second_.start([](loop::Platform& host) {
      return Runtime(host, taking_over("another")).run_on_each_core(serve_echo);
    });
  });
  world_.schedule(30s, [&] { first_.raise(loop::Signal::terminate); });
  const WorldReport report = world_.run_until_done(1h);
  ASSERT_EQ(report.failures.size(), 1U) << report.text();
  EXPECT_EQ(report.failures[0], "second: main returned 1");
  EXPECT_TRUE(has_logged(second_, "cannot take sockets over at '/run/echo'"));
}

TEST_F(WorldProcesses, AKilledProcessLosesItsConnectionsAndItsPort) {
  first_.start(
      [](loop::Platform& host) { return Runtime(host, quiet()).run_on_each_core(serve_echo); });
  std::optional<Peer> peer;
  std::optional<Peer> late;
  world_.schedule(1s, [&] {
    peer.emplace(peers_, first_.address(7));
    peer->send("hello");
  });
  world_.schedule(3s, [&] {
    EXPECT_EQ(peer->received(), "hello");
    first_.kill();
    EXPECT_EQ(first_.lost().size(), 1U);
    late.emplace(peers_, first_.address(7));
    EXPECT_FALSE(late->connected());
    // Another process may use the port immediately.
    second_.start(
        [](loop::Platform& host) { return Runtime(host, quiet()).run_on_each_core(serve_echo); });
  });
  world_.schedule(5s, [&] {
    EXPECT_EQ(peer->state(), Errc::end_of_stream);
    late.emplace(peers_, first_.address(7));
    late->send("late");
  });
  world_.schedule(7s, [&] {
    EXPECT_EQ(late->received(), "late");
    late.reset();
    second_.raise(loop::Signal::terminate);
  });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_TRUE(first_.killed());
}

Task<Result<>> receive_one(Scope&, std::string& received, Endpoint at) {
  WEIR_CO_TRY(auto socket, co_await udp::bind(at));
  WEIR_CO_TRY(const auto datagram, co_await socket.receive());
  received += datagram.buffer.text();
  co_return {};
}

/// Sends a datagram after a second, when the receiver listens.
Task<Result<>> send_one(Scope&, Endpoint to) {
  const auto slept = co_await sleep(1s);
  if (!slept) co_return slept;
  WEIR_CO_TRY(auto socket, co_await udp::connect(to));
  co_return co_await socket.send(std::string_view("hello"));
}

// The first process is the machine, which outlives it.
TEST_F(WorldProcesses, AProcessCanUseThePortsOfAKilledOne) {
  std::string never_received;
  std::string received_here;
  std::string received_there;
  const Endpoint port = Endpoint::any(53);
  first_.start([&](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core(receive_one, std::ref(never_received), port);
  });
  Host& third = world_.process(first_, "third");
  Host& peer = world_.process(peers_, "peer");
  world_.schedule(1s, [&] {
    first_.kill();
    second_.start([&](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core(receive_one, std::ref(received_here), port);
    });
    peers_.start([&](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core(receive_one, std::ref(received_there), port);
    });
    third.start([&](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core(send_one, peers_.address(53));
    });
    peer.start([&](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core(send_one, first_.address(53));
    });
  });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(received_here, "hello");
  EXPECT_EQ(received_there, "hello");
  EXPECT_EQ(never_received, "");
}

TEST_F(WorldProcesses, AKilledProcessCanBeStartedAgain) {
  first_.start(serve_taking_over);
  world_.schedule(1s, [&] { first_.kill(); });
  const WorldReport killed = world_.run_until_done(1h);
  EXPECT_TRUE(killed.ok()) << killed.text();
  EXPECT_TRUE(first_.killed());
  first_.start(serve_taking_over);
  world_.schedule(1s, [&] {
    EXPECT_TRUE(first_.listens());
    first_.raise(loop::Signal::terminate);
  });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_FALSE(first_.killed());
  EXPECT_FALSE(first_.listens());
}

// The rest of a killed main, destructors included, cannot change the files. An exception from it
// is no failure.
TEST_F(WorldProcesses, AKilledProcessDoesNotChangeItsFiles) {
  std::error_code made;
  std::error_code written;
  first_.start([&](loop::Platform& host) -> int {
    loop::FileSystem& files = host.files();
    const auto file = files.open("/tmp/state", {.mode = os::FileMode::create_new});
    EXPECT_TRUE(file);
    EXPECT_EQ(files.write_at(file->value(), to_bytes("begun"), 0).value_or(0), 5U);
    const int status = serve_taking_over(host);
    const auto making = files.make_directory("/tmp/after", 0700);
    if (!making) made = making.error();
    const auto writing = files.write_at(file->value(), to_bytes("ended"), 0);
    if (!writing) written = writing.error();
    EXPECT_FALSE(files.open("/tmp/state", {.mode = os::FileMode::truncate}));
    EXPECT_FALSE(files.rename("/tmp/state", "/tmp/other"));
    EXPECT_FALSE(files.remove("/tmp/state"));
    EXPECT_FALSE(files.resize(file->value(), 0));
    EXPECT_FALSE(files.sync(file->value()));
    EXPECT_FALSE(files.sync_directory("/tmp"));
    if (status != 99) throw std::runtime_error("no main of the living");
    return status;
  });
  world_.schedule(1s, [&] { first_.kill(); });
  const WorldReport killed = world_.run_until_done(1h);
  EXPECT_TRUE(killed.ok()) << killed.text();
  EXPECT_EQ(made, system_error(EINTR));
  EXPECT_EQ(written, system_error(EINTR));
  std::string found;
  first_.start([&found](loop::Platform& host) {
    loop::FileSystem& files = host.files();
    const auto entries =
        files.list("/tmp", 10);  // GCC 12 does not extend the lifetime of a temporary in the loop
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

// A newer process that dies before it has the sockets has no effect on the older one.
TEST_F(WorldProcesses, ANewerProcessThatDiesEarlyHasNoEffect) {
  for (std::uint64_t step = 0; step < 3; ++step) {
    World world(fresh_world_options());
    Host& older = world.host("older");
    Host& newer = world.process(older, "newer");
    older.start(serve_taking_over);
    world.schedule(1s, [&] {
      newer.start(serve_taking_over);
      newer.kill_at_handover_step(step);
    });
    world.schedule(30s, [&] {
      EXPECT_TRUE(newer.killed());
      EXPECT_TRUE(older.listens());
      older.raise(loop::Signal::terminate);
    });
    const WorldReport report = world.run_until_done(1h);
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_FALSE(has_logged(older, "a newer process has taken over"));
  }
}

TEST_F(WorldProcesses, AKilledProcessCanBeStartedAgainImmediately) {
  int served = 0;
  const auto serve = [&served](loop::Platform& host) {
    const int status = Runtime(host, quiet()).run_on_each_core(serve_echo);
    ++served;
    return status;
  };
  first_.start_service(serve);
  world_.schedule(1s, [&] {
    first_.kill();
    first_.start_service(serve);
    EXPECT_FALSE(first_.done());
  });
  EchoRequest request;
  peers_.start([&](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core([&](Scope& scope) -> Task<> {
      std::ignore = co_await sleep(5s);
      co_await send_echo_request(scope, first_.address(7), request);
    });
  });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(request.received, request.text);
  EXPECT_EQ(served, 2);
}

TEST_F(WorldProcesses, AMainThatReplacesAKilledServiceIsAwaited) {
  const auto serve = [](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core(serve_echo);
  };
  first_.start_service(serve);
  peers_.start_service(serve);
  world_.schedule(1s, [&] {
    first_.kill();
    first_.start([](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core([](Scope&) -> Task<> {
        std::ignore = co_await sleep(10s);
      });
    });
  });
  world_.schedule(10s, [&] {
    EXPECT_FALSE(first_.service());
    EXPECT_FALSE(peers_.terminate_sent) << "the new main still runs";
  });
  const Instant start = world_.now();
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_TRUE(peers_.terminate_sent);
  EXPECT_LT(world_.now() - start, 1min) << "the service ends after that main";
}

TEST_F(WorldProcesses, AFailureBeforeARestartIsReported) {
  first_.start([](loop::Platform&) { return 3; });
  second_.start([](loop::Platform&) -> int { throw std::runtime_error("no idea"); });
  const auto well = [](loop::Platform&) { return 0; };
  world_.schedule(1s, [&] {
    first_.start(well);
    second_.start(well);
  });
  peers_.start([](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core([](Scope&) -> Task<> {
      std::ignore = co_await sleep(2s);
    });
  });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_THAT(report.failures, testing::UnorderedElementsAre("machine: main returned 3",
                                                             "second: main threw no idea"));
  const WorldReport again = world_.run_until_done(1h);
  EXPECT_TRUE(again.ok()) << again.text();
}

TEST_F(WorldProcesses, ADrainingServiceGetsNoSecondSignal) {
  first_.start_service(
      [](loop::Platform& host) { return Runtime(host, quiet()).run_on_each_core(serve_echo); });
  peers_.start([&](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core([&](Scope&) -> Task<> {
      std::ignore = co_await sleep(1s);
      auto stream = co_await tcp::connect(first_.address(7));
      EXPECT_TRUE(stream.has_value());
      std::ignore = co_await sleep(5s);
    });
  });
  world_.schedule(3s, [&] { first_.raise(loop::Signal::terminate); });
  const WorldReport report = world_.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_TRUE(has_logged(first_, "SIGTERM: draining"));
  EXPECT_FALSE(has_logged(first_, "again: stopping immediately"));
}

TEST_F(WorldProcesses, AConnectionThatIsNotClosedIsReported) {
  alignas(tcp::Stream) std::array<std::byte, sizeof(tcp::Stream)> forgotten{};
  first_.start_service(
      [](loop::Platform& host) { return Runtime(host, quiet()).run_on_each_core(serve_echo); });
  peers_.start([&](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core([&](Scope&) -> Task<> {
      std::ignore = co_await sleep(1s);
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
}  // namespace weir::sim::process_test
