// Tests of the faults of a World: each one happens at its point.
#include "weir/sim/faults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include "weir/net/files.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/test/world_fixture.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::sim::faults_test {
namespace {

TEST(FaultInjector, AResetIsInjectedAtEachOperationInTurn) {
  const WorldOptions options = fresh_world_options();
  SCOPED_TRACE(options.replay + std::to_string(options.seed));
  std::uint64_t at = 0;
  for (bool injected = true; injected; ++at) {
    EchoWorld echo(options);
    echo.world.faults().inject("server", at, Fault::reset);
    const WorldReport report = echo.run();
    EXPECT_TRUE(report.ok()) << report.text();
    injected = echo.world.faults().injected(Fault::reset) == 1;
    EXPECT_EQ(injected, at < echo.server.operations());
    const bool answered = echo.request.received == echo.request.text;
    if (!injected) {
      EXPECT_TRUE(answered);
    }
    if (!answered) {
      EXPECT_EQ(echo.request.reading, system_error(ECONNRESET)) << "at " << at;
    }
  }
  EXPECT_GT(at, 3U);
}

TEST(FaultInjector, AHalfCloseEndsTheDataOfTheOtherSide) {
  EchoWorld echo({.seed = 2, .jitter = no_jitter});
  echo.request.text = std::string(200'000, 'x');  // larger than the buffers of the connection
  echo.world.faults().inject("server", 0, Fault::half_close);
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.request.writing, system_error(EPIPE));
  EXPECT_EQ(echo.request.reading, Errc::end_of_stream);
}

TEST(FaultInjector, AStallDelaysArrivingData) {
  EchoWorld echo({.seed = 5, .jitter = no_jitter});
  echo.world.faults().rates.stall_max = 20s;
  echo.world.faults().inject("client", 1, Fault::stall);
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.request.received, echo.request.text);
  EXPECT_GT(echo.request.elapsed, 10ms);
  EXPECT_LE(echo.request.elapsed, 21s);
}

TEST(FaultInjector, AFullBufferDelaysWrites) {
  EchoWorld echo({.seed = 5, .jitter = no_jitter});
  echo.world.faults().rates.stall_max = 20s;
  echo.world.faults().inject("client", 1, Fault::full_buffer);
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.request.received, echo.request.text);
  EXPECT_GT(echo.request.elapsed, 10ms);
  EXPECT_LE(echo.request.elapsed, 21s);
}

TEST(FaultInjector, AResetOfAConnectRefusesIt) {
  EchoWorld echo({.seed = 5});
  echo.world.faults().inject("client", 0, Fault::reset);
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.world.faults().injected(Fault::reset), 1U);
  EXPECT_EQ(echo.request.connecting, system_error(ECONNREFUSED));
}

TEST(FaultInjector, AHalfCloseOfAConnectLeavesNothingToRead) {
  EchoWorld echo({.seed = 5});
  echo.world.faults().inject("client", 0, Fault::half_close);
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.world.faults().injected(Fault::half_close), 1U);
  EXPECT_EQ(echo.request.reading, Errc::end_of_stream);
  EXPECT_EQ(echo.request.received, "");
}

TEST(FaultInjector, AcceptingFailsAndRecovers) {
  EchoWorld echo({.seed = 5, .jitter = no_jitter});
  for (std::uint64_t at = 0; at < 5; ++at) {
    echo.world.faults().inject("server", at, Fault::accept_failure);
  }
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.world.faults().injected(Fault::accept_failure), 5U);
  EXPECT_EQ(echo.request.received, echo.request.text);
  EXPECT_GE(echo.request.elapsed, 50ms) << "accepting pauses for 10 ms each time";
}

TEST(FaultInjector, AcceptingFailsForEachReason) {
  for (const int reason : {EMFILE, ENFILE, ENOBUFS, ENOMEM}) {
    EchoWorld echo({.seed = 5, .trace = true});
    echo.world.faults().fail_accept("server", 0, system_error(reason));
    const WorldReport report = echo.run();
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(echo.world.faults().injected(Fault::accept_failure), 1U);
    EXPECT_EQ(echo.request.received, echo.request.text);
    EXPECT_THAT(echo.world.trace(),
                testing::HasSubstr("accept fails: " + system_error(reason).message()));
  }
}

TEST(FaultInjector, NothingIsInjectedAfterStop) {
  EchoWorld echo({.seed = 2});
  echo.world.faults().rates = {
      .reset = 1, .half_close = 1, .stall = 1, .full_buffer = 1, .accept_failure = 1};
  echo.world.faults().inject("server", 0, Fault::reset);
  echo.world.faults().fail_allocation("server", 0, 5);
  echo.world.faults().stop();
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.request.received, echo.request.text);
  EXPECT_EQ(echo.world.faults().injected(), 0U);
}

TEST(FaultInjector, AFaultForAnUnknownHostIsReported) {
  EchoWorld echo(fresh_world_options());
  echo.world.faults().inject("server", 1'000'000, Fault::reset);
  echo.world.faults().inject("servr", 3, Fault::reset);
  echo.world.faults().fail_accept("servr", 0, system_error(EMFILE));
  echo.world.faults().fail_allocation("client/0", 0, 3);
  EXPECT_THAT(echo.run().failures,
              testing::ElementsAre("a fault is planned for \"client/0\", which is not a host",
                                   "a fault is planned for \"servr\", which is not a host"));
}

TEST(FaultInjector, AnAllocationFailsAtEachPointInTurn) {
  const WorldOptions options = fresh_world_options();
  SCOPED_TRACE(options.replay + std::to_string(options.seed));
  std::size_t number = 0;
  for (bool injected = true; injected; ++number) {
    EchoWorld echo(options);
    echo.world.faults().fail_allocation("server", 0, number);
    const WorldReport report = echo.run();
    injected = echo.world.faults().injected(Fault::allocation) == 1;
    // The allocation may be one of the service, which then ends, but leaves nothing behind.
    const bool ended = !report.ok();
    if (ended) {
      EXPECT_THAT(report.failures, testing::ElementsAre("server: main returned 1"))
          << "at allocation " << number;
    }
    // The first allocations are those of the core, which cannot start without them.
    if (number < 3) {
      EXPECT_TRUE(ended) << "at allocation " << number;
    }
    if (!injected) {
      EXPECT_TRUE(report.ok()) << report.text();
      EXPECT_EQ(echo.request.received, echo.request.text);
    }
  }
  EXPECT_GT(number, 5U);
}

TEST(FaultInjector, AnAllocationFailsOnlyOnItsCore) {
  struct {
    const char* host;
    unsigned core;
    std::uint64_t injected;
  } const cases[] = {
      {"server", 0, 1}, {"server", 1, 1}, {"server", 2, 0}, {"client", 0, 1}, {"client", 1, 0}};
  for (const auto& each : cases) {
    SCOPED_TRACE(each.host + std::to_string(each.core));
    EchoWorld echo({.seed = 5, .jitter = no_jitter});
    echo.world.faults().fail_allocation(each.host, each.core, 0);
    const WorldReport report = echo.run();
    EXPECT_EQ(echo.world.faults().injected(Fault::allocation), each.injected);
    if (each.injected == 0) {
      EXPECT_TRUE(report.ok()) << report.text();
      EXPECT_EQ(echo.request.received, echo.request.text);
    } else {
      EXPECT_THAT(report.failures,
                  testing::ElementsAre(std::string(each.host) + ": main returned 1"));
    }
  }
}

TEST(FaultInjector, RatesInjectEveryFault) {
  constexpr std::array faults{Fault::reset, Fault::half_close, Fault::stall, Fault::full_buffer,
                              Fault::accept_failure};
  std::array<std::uint64_t, faults.size()> injected{};
  for (int run = 0; run < 40; ++run) {
    EchoWorld echo(fresh_world_options());
    echo.world.faults().rates = {.reset = 0.05,
                                 .half_close = 0.05,
                                 .stall = 0.05,
                                 .full_buffer = 0.05,
                                 .accept_failure = 0.3};
    const WorldReport report = echo.run();
    EXPECT_TRUE(report.ok()) << report.text();
    for (std::size_t i = 0; i < faults.size(); ++i) {
      injected[i] += echo.world.faults().injected(faults[i]);
    }
  }
  for (std::size_t i = 0; i < faults.size(); ++i)
    EXPECT_GT(injected[i], 0U) << to_string(faults[i]);
}

TEST(FaultInjector, DataArrivesAfterAPartitionHeals) {
  EchoWorld echo({.seed = 9, .jitter = no_jitter});
  echo.world.schedule(1s + 150us, [&] { echo.world.partition(echo.server, echo.client); });
  echo.world.schedule(30s, [&] { echo.world.heal(echo.server, echo.client); });
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.request.received, echo.request.text);
  EXPECT_GT(echo.request.elapsed, 30s);
  EXPECT_LT(echo.request.elapsed, 2min);
}

TEST(FaultInjector, APermanentPartitionTimesOut) {
  EchoWorld echo({.seed = 9, .jitter = no_jitter});
  echo.world.schedule(1s + 250us, [&] { echo.world.partition(echo.server, echo.client); });
  const WorldReport report = echo.run();
  EXPECT_EQ(echo.request.reading, system_error(ETIMEDOUT)) << report.text();
  EXPECT_GT(echo.request.elapsed, 10min);
  EXPECT_LT(echo.request.elapsed, 30min);
}

/// The result of writing to a peer that has left.
struct Flood {
  std::size_t writes = 0;
  std::error_code error;
  Instant ended;
};

Task<Result<>> flood_one(Scope& scope, Flood& flood) {
  WEIR_CO_TRY(auto listener, co_await tcp::listen(Endpoint::any(7)));
  WEIR_CO_TRY(auto peer, co_await listener.accept());
  const std::string much(8192, 'x');
  while (!flood.error) {
    const auto written = co_await peer.write(much);
    if (!written) flood.error = written.error();
    if (written) ++flood.writes;
  }
  flood.ended = scope.loop().platform().now();
  co_return {};
}

Task<> connect_and_leave(Scope&, Endpoint server) {
  const auto slept = co_await sleep(1s);
  EXPECT_TRUE(slept);
  auto stream = co_await tcp::connect(server);
  EXPECT_TRUE(stream);
  const auto stayed = co_await sleep(1s);
  EXPECT_TRUE(stayed);
}

TEST(FaultInjector, WritesToAClosedPeerFail) {
  for (const bool cut_off : {false, true}) {
    World world({.seed = 3, .jitter = no_jitter, .steps_per_instant_max = 1'000'000});
    Host& server = world.host("server", {.buffer_bytes = 16 * 1024});
    Host& client = world.host("client");
    Flood flood;
    server.start([&](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core(flood_one, std::ref(flood));
    });
    client.start([&](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core(connect_and_leave, server.address(7));
    });
    if (cut_off) world.schedule(1500ms, [&] { world.partition(server, client); });
    const Instant begun = world.now();
    const WorldReport report = world.run_until_done(1h);
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_LE(flood.writes, 4U) << "at most the size of the buffers";
    if (cut_off) {
      EXPECT_EQ(flood.error, system_error(ETIMEDOUT));
      EXPECT_GT(flood.ended - begun, 10min);
    } else {
      EXPECT_TRUE(flood.error);
      EXPECT_LT(flood.ended - begun, 3s);
    }
  }
}

Task<Result<>> write_some(Stream& stream) {
  co_return co_await stream.write(std::string(1024, 'x'));
}

/// Writes small pieces, and stops at the first error.
Task<Result<>> write_slowly(Scope& scope, Flood& flood) {
  WEIR_CO_TRY(auto listener, co_await tcp::listen(Endpoint::any(7)));
  WEIR_CO_TRY(auto peer, co_await listener.accept());
  while (!flood.error) {
    WEIR_CO_TRY(co_await sleep(100ms));
    const auto written = co_await timeout(5s, write_some(peer));
    if (!written && written.error() != Errc::timed_out) flood.error = written.error();
  }
  flood.ended = scope.loop().platform().now();
  co_return {};
}

TEST(FaultInjector, SlowWritesToAClosedPeerFail) {
  World world({.seed = 3});
  Host& server = world.host("server");
  Host& client = world.host("client");
  Flood flood;
  server.start([&](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core(write_slowly, std::ref(flood));
  });
  client.start([&](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core(connect_and_leave, server.address(7));
  });
  world.schedule(1500ms, [&] { world.partition(server, client); });
  const Instant begun = world.now();
  const WorldReport report = world.run_until_done(5h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(flood.error, system_error(ETIMEDOUT));
  EXPECT_GT(flood.ended - begun, 10min);
  EXPECT_LT(flood.ended - begun, 40min);
}

TEST(FaultInjector, ASlowLinkDelaysData) {
  EchoWorld echo({.seed = 9, .jitter = no_jitter});
  echo.world.slow_down(echo.server, echo.client, 3s);
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_GT(echo.request.elapsed, 6s);
}

Task<> wait_a_minute(Scope& scope, Duration& took) {
  const Instant begun = scope.loop().platform().now();
  auto slept = co_await sleep(1min);
  EXPECT_TRUE(slept);
  took = scope.loop().platform().now() - begun;
}

TEST(FaultInjector, ATimerIsLateAfterAJumpOfTheClock) {
  World world({.seed = 1});
  Duration took{};
  world.host("host").start([&](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core(wait_a_minute, std::ref(took));
  });
  world.schedule(10s, [&] { world.jump(1h); });
  const WorldReport report = world.run_until_done(2h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_GE(took, 1h);
}

Task<Result<>> read_one(Stream& stream, std::string& received) {
  WEIR_CO_TRY(const auto bytes, co_await stream.read());
  received += bytes.text();
  co_return {};
}

struct Raced {
  int completed = 0;
  int cancelled = 0;
};

/// Cancels reads at the moment at which the answer arrives. Each read returns the answer, or
/// leaves it to the next one.
Task<> race_reads(Scope&, Endpoint server, Raced& raced) {
  auto stream = co_await tcp::connect(server);
  EXPECT_TRUE(stream);
  if (!stream) co_return;
  for (int round = 0; round < 50; ++round) {
    const auto written = co_await stream->write("a");
    EXPECT_TRUE(written);
    std::string received;
    const auto read = co_await timeout(200us, read_one(*stream, received));
    ++(read ? raced.completed : raced.cancelled);
    EXPECT_EQ(received.empty(), !read);
    if (read) continue;
    EXPECT_EQ(read.error(), Errc::timed_out);
    const auto again = co_await read_one(*stream, received);
    EXPECT_TRUE(again);
    EXPECT_EQ(received, "a") << "no data is lost";
  }
}

TEST(FaultInjector, ACompletionRacesWithItsCancellation) {
  Raced raced;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    JitterOptions jitter = no_jitter;
    jitter.deferred = 0.5;
    jitter.cancelled = 0.5;
    World world({.seed = seed, .jitter = jitter});
    Host& server = world.host("server");
    server.start_service(
        [](loop::Platform& host) { return Runtime(host, quiet()).run_on_each_core(serve_echo); });
    world.host("client").start([&](loop::Platform& host) {
      return Runtime(host, quiet())
          .run_on_each_core(race_reads, server.address(7), std::ref(raced));
    });
    const WorldReport report = world.run_until_done(1h);
    EXPECT_TRUE(report.ok()) << report.text();
  }
  EXPECT_GT(raced.completed, 20);
  EXPECT_GT(raced.cancelled, 20);
}

/// Writes, syncs and reads a file, and keeps the error of each step.
struct FileSteps {
  std::error_code writing = {};
  std::error_code syncing = {};
  std::error_code reading = {};
  std::string text = {};

  Task<> run() {
    const auto created = co_await files::open("/f", files::Mode::create_new);
    EXPECT_TRUE(created);
    auto file = co_await files::open("/f", files::Mode::read_write);
    if (!file) co_return;
    writing = error_of(co_await file->write_at(0, to_bytes("text")));
    syncing = error_of(co_await file->sync());
    const auto read = co_await file->read_at(0);
    reading = error_of(read);
    if (read) text = read->text();
  }
  template <class T>
  static std::error_code error_of(const Result<T>& result) {
    return result ? std::error_code() : result.error();
  }
};

TEST(FaultInjector, AFileFailureIsInjectedAtEachFileOperationInTurn) {
  for (const MemoryFiles kind : {MemoryFiles::by_backend, MemoryFiles::by_threads}) {
    for (std::uint64_t at = 0; at < 4; ++at) {
      World world({.seed = 3, .jitter = no_jitter, .trace = true});
      Host& host = world.host("host", {.files = kind});
      FileSteps steps;
      host.start([&](loop::Platform& platform) {
        return Runtime(platform, quiet()).run_on_each_core([&](Scope&) { return steps.run(); });
      });
      world.faults().inject("host", at, Fault::file_failure);
      const WorldReport report = world.run_until_done(1h);
      EXPECT_TRUE(report.ok()) << report.text();
      const auto expected = [at](std::uint64_t own) {
        return at == own ? system_error(EIO) : std::error_code();
      };
      EXPECT_EQ(steps.writing, expected(0));
      EXPECT_EQ(steps.syncing, expected(1));
      EXPECT_EQ(steps.reading, expected(2));
      EXPECT_EQ(steps.text, at == 0 || at == 2 ? "" : "text") << "a failed write writes nothing";
      EXPECT_EQ(host.file_operations(), 3U);
      EXPECT_EQ(world.faults().injected(Fault::file_failure), at < 3 ? 1U : 0U);
      const std::string note = "file failure at file operation " + std::to_string(at);
      EXPECT_EQ(world.trace().find(note) != std::string::npos, at < 3);
    }
  }
}

TEST(Cut, StopsTheDataOfOneDirection) {
  for (const bool requests : {true, false}) {
    EchoWorld echo({.seed = 4, .jitter = no_jitter, .trace = true});
    Host& from = requests ? echo.client : echo.server;
    Host& to = requests ? echo.server : echo.client;
    std::uint64_t received_in_cut = 0;
    echo.request.text = std::string(1'000'000, 'x');
    echo.world.slow_down(from, to, 100ms);
    echo.world.schedule(1500ms, [&] { echo.world.partition_one_way(from, to); });
    echo.world.schedule(20s, [&] {
      for (const ConnectionInfo& each : echo.server.connections()) received_in_cut = each.received;
      echo.world.heal(from, to);
    });
    const WorldReport report = echo.run();
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(echo.request.received.size(), echo.request.text.size());
    EXPECT_GT(echo.request.elapsed, 18s);
    EXPECT_LT(received_in_cut, echo.request.text.size());
    const std::string note = "cut from " + from.name() + " to " + to.name();
    EXPECT_NE(echo.world.trace().find(note), std::string::npos);
  }
}

TEST(Cut, RefusesNoConnectButLetsItWait) {
  for (const bool requests : {true, false}) {
    EchoWorld echo({.seed = 4, .jitter = no_jitter});
    if (requests) {
      echo.world.partition_one_way(echo.client, echo.server);
    } else {
      echo.world.partition_one_way(echo.server, echo.client);
    }
    echo.world.schedule(30s, [&] { echo.world.heal(echo.server, echo.client); });
    const WorldReport report = echo.run();
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(echo.request.received, echo.request.text);
    EXPECT_GT(echo.request.elapsed, 29s);
  }
}

TEST(Pause, StopsOneHostAndNoOther) {
  EchoWorld echo({.seed = 6, .jitter = no_jitter, .trace = true});
  Instant resumed{};
  Instant ticked{};
  echo.world.host("other").start([&](loop::Platform& platform) {
    return Runtime(platform, quiet()).run_on_each_core([&](Scope& scope) -> Task<> {
      std::ignore = co_await sleep(2s);
      ticked = scope.loop().platform().now();
    });
  });
  const Instant begun = echo.world.now();
  echo.world.schedule(500ms, [&] { echo.world.pause(echo.server, 10s); });
  const WorldReport report = echo.run();
  resumed = echo.world.now();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.request.received, echo.request.text) << "the connection waited to be accepted";
  EXPECT_GE(resumed - begun, 10500ms);
  EXPECT_EQ(ticked - begun, 2s) << "another host is not paused";
  EXPECT_NE(echo.world.trace().find("pause server for 10000000000 ns"), std::string::npos);
}

TEST(Pause, MakesTimersAndThreadsLate) {
  World world({.seed = 7, .jitter = no_jitter});
  Host& host = world.host("host", {.files = MemoryFiles::by_threads});
  std::vector<Duration> times;
  const Instant begun = world.now();
  host.start([&](loop::Platform& platform) {
    return Runtime(platform, quiet()).run_on_each_core([&](Scope& scope) -> Task<> {
      const auto note = [&] { times.push_back(scope.loop().platform().now() - begun); };
      std::ignore = co_await sleep(1s);
      note();
      std::ignore = co_await sleep(3s);
      note();
      std::ignore = co_await files::read_file("/etc/hosts");
      note();
    });
  });
  world.schedule(2s, [&] { world.pause(host, 8s); });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  ASSERT_EQ(times.size(), 3U);
  EXPECT_EQ(times[0], 1s);
  EXPECT_EQ(times[1], 10s);
  EXPECT_GE(times[2], 10s);
}

TEST(Pause, EndsWithAKill) {
  World world({.seed = 8, .jitter = no_jitter});
  Host& host = world.host("host");
  const auto wait = [](loop::Platform& platform) {
    return Runtime(platform, quiet()).run_on_each_core([](Scope&) -> Task<> {
      std::ignore = co_await sleep(1s);
    });
  };
  host.start(wait);
  const Instant begun = world.now();
  world.schedule(100ms, [&] { world.pause(host, 1h); });
  world.schedule(200ms, [&] {
    host.kill();
    host.start(wait);
  });
  const WorldReport report = world.run_until_done(10s);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(host.status(), 0);
  EXPECT_LT(world.now() - begun, 2s);
}

TEST(Pause, TheLastCallDecidesItsEnd) {
  EchoWorld echo({.seed = 9, .jitter = no_jitter});
  const Instant begun = echo.world.now();
  echo.world.schedule(500ms, [&] { echo.world.pause(echo.server, 1h); });
  echo.world.schedule(2s, [&] { echo.world.pause(echo.server, 1s); });
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.request.received, echo.request.text);
  EXPECT_GE(echo.world.now() - begun, 3s);
  EXPECT_LT(echo.world.now() - begun, 10s);
}

}  // namespace
}  // namespace weir::sim::faults_test
