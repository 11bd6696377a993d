// Each fault of a World strikes where it is asked to.
#include "weir/sim/faults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <string>

#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/test/world_fixture.hpp"

namespace weir {
namespace {

TEST(WorldFaults, AResetStrikesAtEachOperationInTurn) {
  const WorldOptions options = fresh_world();
  SCOPED_TRACE(options.replay + std::to_string(options.seed));
  std::uint64_t at = 0;
  for (bool struck = true; struck; ++at) {
    EchoWorld echo(options);
    echo.world.faults().strike("server", at, Fault::reset);
    const WorldReport report = echo.run();
    EXPECT_TRUE(report.ok()) << report.text();
    struck = echo.world.faults().struck(Fault::reset) == 1;
    EXPECT_EQ(struck, at < echo.server.operations());
    const bool answered = echo.asked.received == echo.asked.text;
    if (!struck) {
      EXPECT_TRUE(answered);
    }
    if (!answered) {
      EXPECT_EQ(echo.asked.reading, system_error(ECONNRESET)) << "at " << at;
    }
  }
  EXPECT_GT(at, 3U);
}

TEST(WorldFaults, AHalfCloseEndsWhatTheOtherSideSends) {
  EchoWorld echo({.seed = 2, .variation = no_variation});
  echo.asked.text = std::string(200'000, 'x');  // more than the connection holds
  echo.world.faults().strike("server", 0, Fault::half_close);
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.asked.writing, system_error(EPIPE));
  EXPECT_EQ(echo.asked.reading, Errc::end_of_stream);
}

TEST(WorldFaults, AStallDelaysWhatComes) {
  EchoWorld echo({.seed = 5, .variation = no_variation});
  echo.world.faults().rates.stall_max = 20s;
  echo.world.faults().strike("client", 1, Fault::stall);
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.asked.received, echo.asked.text);
  EXPECT_GT(echo.asked.took, 10ms);
  EXPECT_LE(echo.asked.took, 21s);
}

TEST(WorldFaults, AFullBufferLetsWritersWait) {
  EchoWorld echo({.seed = 5, .variation = no_variation});
  echo.world.faults().rates.stall_max = 20s;
  echo.world.faults().strike("client", 1, Fault::full_buffer);
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.asked.received, echo.asked.text);
  EXPECT_GT(echo.asked.took, 10ms);
  EXPECT_LE(echo.asked.took, 21s);
}

TEST(WorldFaults, AResetOfAConnectRefusesIt) {
  EchoWorld echo({.seed = 5});
  echo.world.faults().strike("client", 0, Fault::reset);
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.world.faults().struck(Fault::reset), 1U);
  EXPECT_EQ(echo.asked.connecting, system_error(ECONNREFUSED));
}

TEST(WorldFaults, AHalfCloseOfAConnectLeavesNothingToRead) {
  EchoWorld echo({.seed = 5});
  echo.world.faults().strike("client", 0, Fault::half_close);
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.world.faults().struck(Fault::half_close), 1U);
  EXPECT_EQ(echo.asked.reading, Errc::end_of_stream);
  EXPECT_EQ(echo.asked.received, "");
}

TEST(WorldFaults, AcceptingFailsAndGoesOn) {
  EchoWorld echo({.seed = 5, .variation = no_variation});
  for (std::uint64_t at = 0; at < 5; ++at) {
    echo.world.faults().strike("server", at, Fault::accept_failure);
  }
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.world.faults().struck(Fault::accept_failure), 5U);
  EXPECT_EQ(echo.asked.received, echo.asked.text);
  EXPECT_GE(echo.asked.took, 50ms) << "accepting rests 10 ms each time";
}

TEST(WorldFaults, AcceptingFailsForEachReason) {
  for (const int reason : {EMFILE, ENFILE, ENOBUFS, ENOMEM}) {
    EchoWorld echo({.seed = 5, .trace = true});
    echo.world.faults().fail_accept("server", 0, system_error(reason));
    const WorldReport report = echo.run();
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(echo.world.faults().struck(Fault::accept_failure), 1U);
    EXPECT_EQ(echo.asked.received, echo.asked.text);
    EXPECT_THAT(echo.world.trace(),
                testing::HasSubstr("accept fails: " + system_error(reason).message()));
  }
}

TEST(WorldFaults, NothingStrikesOnceTheyAreStopped) {
  EchoWorld echo({.seed = 2});
  echo.world.faults().rates = {
      .reset = 1, .half_close = 1, .stall = 1, .full_buffer = 1, .accept_failure = 1};
  echo.world.faults().strike("server", 0, Fault::reset);
  echo.world.faults().fail_allocation("server", 0, 5);
  echo.world.faults().stop();
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.asked.received, echo.asked.text);
  EXPECT_EQ(echo.world.faults().struck(), 0U);
}

TEST(WorldFaults, AHostThatDoesNotExistIsTold) {
  EchoWorld echo(fresh_world());
  echo.world.faults().strike("server", 1'000'000, Fault::reset);
  echo.world.faults().strike("servr", 3, Fault::reset);
  echo.world.faults().fail_accept("servr", 0, system_error(EMFILE));
  echo.world.faults().fail_allocation("client/0", 0, 3);
  EXPECT_THAT(echo.run().failures,
              testing::ElementsAre("a fault is to strike \"client/0\", which is no host",
                                   "a fault is to strike \"servr\", which is no host"));
}

TEST(WorldFaults, AnAllocationFailsAtEachPointInTurn) {
  const WorldOptions options = fresh_world();
  SCOPED_TRACE(options.replay + std::to_string(options.seed));
  std::size_t number = 0;
  for (bool struck = true; struck; ++number) {
    EchoWorld echo(options);
    echo.world.faults().fail_allocation("server", 0, number);
    const WorldReport report = echo.run();
    struck = echo.world.faults().struck(Fault::allocation) == 1;
    // What it hits may be the service itself, which then ends, but leaves nothing behind.
    const bool ended = !report.ok();
    if (ended) {
      EXPECT_THAT(report.failures, testing::ElementsAre("server: main has returned 1"))
          << "at allocation " << number;
    }
    // These are the core's own, which cannot begin without.
    if (number < 3) {
      EXPECT_TRUE(ended) << "at allocation " << number;
    }
    if (!struck) {
      EXPECT_TRUE(report.ok()) << report.text();
      EXPECT_EQ(echo.asked.received, echo.asked.text);
    }
  }
  EXPECT_GT(number, 5U);
}

TEST(WorldFaults, RatesStrikeAnywhere) {
  constexpr std::array faults{Fault::reset, Fault::half_close, Fault::stall, Fault::full_buffer,
                              Fault::accept_failure};
  std::array<std::uint64_t, faults.size()> struck{};
  for (int run = 0; run < 40; ++run) {
    EchoWorld echo(fresh_world());
    echo.world.faults().rates = {.reset = 0.05,
                                 .half_close = 0.05,
                                 .stall = 0.05,
                                 .full_buffer = 0.05,
                                 .accept_failure = 0.3};
    const WorldReport report = echo.run();
    EXPECT_TRUE(report.ok()) << report.text();
    for (std::size_t i = 0; i < faults.size(); ++i) {
      struck[i] += echo.world.faults().struck(faults[i]);
    }
  }
  for (std::size_t i = 0; i < faults.size(); ++i) EXPECT_GT(struck[i], 0U) << to_string(faults[i]);
}

TEST(WorldFaults, WhatIsCutOffArrivesAfterHealing) {
  EchoWorld echo({.seed = 9, .variation = no_variation});
  echo.world.at(1s + 150us, [&] { echo.world.cut(echo.server, echo.client); });
  echo.world.at(30s, [&] { echo.world.heal(echo.server, echo.client); });
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.asked.received, echo.asked.text);
  EXPECT_GT(echo.asked.took, 30s);
  EXPECT_LT(echo.asked.took, 2min);
}

TEST(WorldFaults, WhoIsCutOffForGoodGivesUp) {
  EchoWorld echo({.seed = 9, .variation = no_variation});
  echo.world.at(1s + 250us, [&] { echo.world.cut(echo.server, echo.client); });
  const WorldReport report = echo.run();
  EXPECT_EQ(echo.asked.reading, system_error(ETIMEDOUT)) << report.text();
  EXPECT_GT(echo.asked.took, 10min);
  EXPECT_LT(echo.asked.took, 30min);
}

/// What becomes of writing on and on to who has gone.
struct Flood {
  std::size_t writes = 0;
  std::error_code error;
  Instant ended;
};

Task<Result<>> flood_one(Scope& scope, Flood& flood) {
  auto listener = co_await tcp::listen(Endpoint::any(7));
  if (!listener) co_return fail(listener.error());
  auto peer = co_await listener->accept();
  if (!peer) co_return fail(peer.error());
  const std::string much(8192, 'x');
  while (!flood.error) {
    const auto written = co_await peer->write(much);
    if (!written) flood.error = written.error();
    if (written) ++flood.writes;
  }
  flood.ended = scope.loop().host().now();
  co_return {};
}

Task<> come_and_go(Scope&, Endpoint server) {
  const auto slept = co_await sleep(1s);
  EXPECT_TRUE(slept);
  auto stream = co_await tcp::connect(server);
  EXPECT_TRUE(stream);
  const auto stayed = co_await sleep(1s);
  EXPECT_TRUE(stayed);
}

TEST(WorldFaults, WhoSendsToNobodyLearnsOfIt) {
  for (const bool cut_off : {false, true}) {
    World world({.seed = 3, .variation = no_variation, .steps_at_once_max = 1'000'000});
    WorldHost& server = world.host("server", {.buffer_bytes = 16 * 1024});
    WorldHost& client = world.host("client");
    Flood flood;
    server.start([&](Host& host) {
      return Runtime(host, quiet()).run_on_each_core(flood_one, std::ref(flood));
    });
    client.start([&](Host& host) {
      return Runtime(host, quiet()).run_on_each_core(come_and_go, server.address(7));
    });
    if (cut_off) world.at(1500ms, [&] { world.cut(server, client); });
    const Instant begun = world.now();
    const WorldReport report = world.run_until_done(1h);
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_LE(flood.writes, 4U) << "no more than buffers hold";
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

/// Who writes little by little is told, too.
Task<Result<>> drip(Scope& scope, Flood& flood) {
  auto listener = co_await tcp::listen(Endpoint::any(7));
  if (!listener) co_return fail(listener.error());
  auto peer = co_await listener->accept();
  if (!peer) co_return fail(peer.error());
  while (!flood.error) {
    const auto slept = co_await sleep(100ms);
    if (!slept) co_return fail(slept.error());
    const auto written = co_await timeout(5s, write_some(*peer));
    if (!written && written.error() != Errc::timed_out) flood.error = written.error();
  }
  flood.ended = scope.loop().host().now();
  co_return {};
}

TEST(WorldFaults, WhoDripsToNobodyLearnsOfIt) {
  World world({.seed = 3});
  WorldHost& server = world.host("server");
  WorldHost& client = world.host("client");
  Flood flood;
  server.start(
      [&](Host& host) { return Runtime(host, quiet()).run_on_each_core(drip, std::ref(flood)); });
  client.start([&](Host& host) {
    return Runtime(host, quiet()).run_on_each_core(come_and_go, server.address(7));
  });
  world.at(1500ms, [&] { world.cut(server, client); });
  const Instant begun = world.now();
  const WorldReport report = world.run_until_done(5h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(flood.error, system_error(ETIMEDOUT));
  EXPECT_GT(flood.ended - begun, 10min);
  EXPECT_LT(flood.ended - begun, 40min);
}

TEST(WorldFaults, ASlowWayTakesItsTime) {
  EchoWorld echo({.seed = 9, .variation = no_variation});
  echo.world.slow_down(echo.server, echo.client, 3s);
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_GT(echo.asked.took, 6s);
}

Task<> wait_a_minute(Scope& scope, Duration& took) {
  const Instant begun = scope.loop().host().now();
  auto slept = co_await sleep(1min);
  EXPECT_TRUE(slept);
  took = scope.loop().host().now() - begun;
}

TEST(WorldFaults, AfterAJumpOfTheClockEverythingIsLate) {
  World world({.seed = 1});
  Duration took{};
  world.host("host").start([&](Host& host) {
    return Runtime(host, quiet()).run_on_each_core(wait_a_minute, std::ref(took));
  });
  world.at(10s, [&] { world.jump(1h); });
  const WorldReport report = world.run_until_done(2h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_GE(took, 1h);
}

Task<Result<>> read_one(Stream& stream, std::string& received) {
  const auto bytes = co_await stream.read();
  if (!bytes) co_return fail(bytes.error());
  received += bytes->text();
  co_return {};
}

struct Raced {
  int completed = 0;
  int cancelled = 0;
};

/// A read that is cancelled in the moment in which the answer comes: it has it, or the next has.
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
    EXPECT_EQ(received, "a") << "nothing is lost";
  }
}

TEST(WorldFaults, ACompletionMeetsItsCancellation) {
  Raced raced;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    WorldVariation variation = no_variation;
    variation.deferred = 0.5;
    variation.cancelled = 0.5;
    World world({.seed = seed, .variation = variation});
    WorldHost& server = world.host("server");
    server.start_service(
        [](Host& host) { return Runtime(host, quiet()).run_on_each_core(serve_echo); });
    world.host("client").start([&](Host& host) {
      return Runtime(host, quiet())
          .run_on_each_core(race_reads, server.address(7), std::ref(raced));
    });
    const WorldReport report = world.run_until_done(1h);
    EXPECT_TRUE(report.ok()) << report.text();
  }
  EXPECT_GT(raced.completed, 20);
  EXPECT_GT(raced.cancelled, 20);
}

}  // namespace
}  // namespace weir
