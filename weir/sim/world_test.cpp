// Tests of the World: seeds, virtual time, leaks and reports.
#include "weir/sim/world.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weir/net/files.hpp"
#include "weir/net/udp.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/test/world_fixture.hpp"
#include "weir/task/sleep.hpp"

namespace weir::sim::world_test {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::string trace_of(std::uint64_t seed) {
  EchoWorld echo({.seed = seed, .trace = true});
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.request.received, echo.request.text);
  return echo.world.trace();
}

TEST(World, TheSameSeedGivesTheSameRunAndOthersDoNot) {
  std::set<std::string> traces;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const std::string trace = trace_of(seed);
    EXPECT_EQ(trace, trace_of(seed)) << "seed " << seed;
    EXPECT_TRUE(traces.insert(trace).second) << "seed " << seed << " does not give a new run";
  }
}

TEST(World, AnotherWorldOfTheProgramDoesNotChangeARun) {
  const std::string alone = trace_of(5);
  EchoWorld one({.seed = 5, .trace = true});
  EchoWorld other({.seed = 6, .trace = true});
  EchoWorld same({.seed = 5, .trace = true});
  EXPECT_TRUE(one.run().ok());
  EXPECT_TRUE(other.run().ok());
  EXPECT_TRUE(same.run().ok());
  EXPECT_EQ(one.world.trace(), alone);
  EXPECT_EQ(same.world.trace(), alone);
  EXPECT_NE(other.world.trace(), alone);
}

TEST(World, TextArrivesWithEverySeed) {
  for (int run = 0; run < 50; ++run) {
    EchoWorld echo(fresh_world_options());
    const WorldReport report = echo.run();
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(echo.request.received, echo.request.text) << report.text();
  }
}

TEST(World, WithoutJitterOnlyTheLinkTakesTime) {
  EchoWorld echo({.seed = 1, .jitter = no_jitter});
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.request.reads, 1U);
  const Duration delay = no_jitter.delay_min;
  EXPECT_EQ(echo.request.elapsed, 4 * delay) << "a handshake and a round trip";
}

Task<Result<>> sleep_an_hour(Scope&) {
  co_return co_await sleep(1h);
}

int sleep_on(loop::Platform& host) {
  return Runtime(host, quiet()).run_on_each_core(sleep_an_hour);
}

TEST(World, AnHourOfVirtualTimePassesImmediately) {
  World world(fresh_world_options());
  world.host("sleeper").start(sleep_on);
  const Instant begun = world.now();
  const WorldReport report = world.run_until_done(2h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_GE(world.now() - begun, 1h);
  EXPECT_LT(world.now() - begun, 1h + 1s);
}

TEST(World, ARunThatTakesTooLongIsCancelledAndReported) {
  World world({.seed = 7, .replay = "again "});
  world.host("sleeper").start(sleep_on);
  const WorldReport report = world.run_until_done(1min);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.failures.front(), HasSubstr("not done after 60 s; sleeper"));
  EXPECT_THAT(report.text(), HasSubstr("seed 7, replay: again 7"));
}

TEST(World, AReportHasADefaultReplayCommand) {
  const WorldReport report = World({.seed = 7}).run_until_done(1min);
  EXPECT_EQ(report.text(), "seed 7, replay: setting WorldOptions::seed to 7\n");
}

// The printed command must repeat the run.
TEST(World, ATestOfFreshSeedsCanBeRunAgain) {
  GTEST_FLAG_SET(random_seed, 0);
  const WorldOptions options = fresh_world_options();
  EXPECT_NE(options.seed, fresh_world_options().seed);
  EXPECT_THAT(options.replay, HasSubstr(" --gtest_filter=World.ATestOfFreshSeedsCanBeRunAgain "));
  EXPECT_TRUE(options.replay.ends_with(" --gtest_random_seed="));
  GTEST_FLAG_SET(random_seed, static_cast<std::int32_t>(options.seed));
  EXPECT_EQ(fresh_world_options().seed, options.seed);
  EXPECT_EQ(fresh_world_options().seed, options.seed);
}

Task<Result<>> accept_without_client(Scope&) {
  WEIR_CO_TRY(auto listener, co_await tcp::listen(Endpoint::any(7)));
  auto peer = co_await listener.accept();
  co_return fail(peer.error());
}

TEST(World, ADeadlockIsReported) {
  World world(fresh_world_options());
  world.host("server").start([](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core(accept_without_client);
  });
  const WorldReport report = world.run_until_done(1h);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.failures.front(), HasSubstr("deadlock"));
  EXPECT_THAT(report.failures.front(),
              ContainsRegex("server \\[1 accept, [1-9][0-9]* coroutines\\]"));
}

TEST(World, ADeadlockIsReportedWithoutALimitOfTime) {
  World world({.seed = 1});
  const Instant start = world.now();
  world.host("server").start([](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core(accept_without_client);
  });
  const WorldReport report = world.run_until_done(Duration::max());
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.failures.front(), testing::StartsWith("deadlock: nothing is ready"));
  EXPECT_LT(world.now() - start, 1h);
}

TEST(World, ALeakOnAHostIsReported) {
  World world({.seed = 3});
  Host& host = world.host("host");
  host.start([](loop::Platform& its) {
    static_cast<void>(its.listen(Endpoint::any(7), {}).value().release());
    return 5;
  });
  EXPECT_THAT(world.run_until_done(1h).failures,
              ElementsAre("host: main returned 5", "host: 1 descriptors are open"));
  host.close(3);
}

struct ForgottenTimer : loop::Timer {
  ForgottenTimer() : loop::Timer([](loop::Timer&) {}) {}
};

Task<> leave_timer(Scope& scope, loop::Timer& timer) {
  scope.loop().timers().start(timer, after(scope.loop().now(), 1h));
  co_return;
}

Task<> leave_block(Scope&, void*& block) {
  block = BlockPool::allocate(100);
  co_return;
}

TEST(World, ALeakOnALoopIsReported) {
  World world({.seed = 3});
  ForgottenTimer timer;
  void* block = nullptr;
  world.host("one").start([&](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core(leave_timer, std::ref<loop::Timer>(timer));
  });
  world.host("two").start([&](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core(leave_block, std::ref(block));
  });
  EXPECT_THAT(
      world.run_until_done(1h).failures,
      UnorderedElementsAre("one/0: 1 timers are armed", "two/0: 1 blocks of the pool are in use"));
  BlockPool::release(block);
}

Task<> leave_timer_on(Scope& scope, unsigned core, loop::Timer& timer) {
  const bool is_here = scope.loop().core() == core;
  if (is_here) scope.loop().timers().start(timer, after(scope.loop().now(), 1h));
  co_return;
}

TEST(World, ALeakOnAnyCoreIsReported) {
  for (const unsigned core : {0U, 1U, 2U}) {
    World world({.seed = 3});
    ForgottenTimer timer;
    world.host("host", {.cores = 3}).start([&](loop::Platform& host) {
      return Runtime(host, quiet(3))
          .run_on_each_core(leave_timer_on, core, std::ref<loop::Timer>(timer));
    });
    EXPECT_THAT(world.run_until_done(1h).failures,
                ElementsAre("host/" + std::to_string(core) + ": 1 timers are armed"));
  }
}

TEST(World, CustomChecksAreRun) {
  EchoWorld echo({.seed = 1});
  echo.world.check("kept", [] { return std::string(); });
  echo.world.check("broken", [] { return std::string("wrong"); });
  echo.world.always("few operations",
                    [&] { return echo.server.operations() < 2 ? std::string() : "2 have begun"; });
  EXPECT_THAT(echo.run().failures, ElementsAre("few operations: 2 have begun", "broken: wrong"));
}

TEST(World, ChecksAndEventsThatThrowAreFailures) {
  World world({.seed = 1});
  world.host("sleeper").start([](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core([](Scope&) -> Task<> {
      std::ignore = co_await sleep(2s);
    });
  });
  world.schedule(1s, [] { throw std::runtime_error("no event"); });
  world.always("always", []() -> std::string { throw std::runtime_error("no check"); });
  world.check("end", []() -> std::string { throw 7; });
  EXPECT_THAT(world.run_until_done(1min).failures,
              ElementsAre("always: the check threw no check", "an event threw no event",
                          "end: the check threw an exception of an unknown type"));
}

/// Waits for time to pass by yielding, which lets no time pass.
Task<> yield_until(Scope& scope, Duration time) {
  const Instant end = after(scope.loop().platform().now(), time);
  while (scope.loop().platform().now() < end && !scope.cancelled()) co_await yield();
}

TEST(World, ALivelockIsReported) {
  World world(
      {.seed = 7, .jitter = no_jitter, .replay = "again ", .steps_per_instant_max = 100'000});
  world.host("busy").start([](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core(yield_until, Duration(1s));
  });
  const WorldReport report = world.run_until_done(1h);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.failures.front(),
              HasSubstr("livelock: 100000 steps without progress of the virtual time; busy"));
  EXPECT_THAT(report.text(), HasSubstr("seed 7, replay: again 7"));
}

TEST(World, AMainThatThrowsIsReported) {
  World world({.seed = 1});
  world.host("host").start([](loop::Platform&) -> int { throw std::runtime_error("no luck"); });
  EXPECT_THAT(world.run_until_done(1h).failures, ElementsAre("host: main threw no luck"));
}

TEST(World, AnExceptionOfAnEarlierMainIsNotReportedAgain) {
  World world({.seed = 1});
  Host& host = world.host("host");
  host.start([](loop::Platform&) -> int { throw std::runtime_error("once"); });
  EXPECT_FALSE(world.run_until_done(1h).ok());
  host.start([](loop::Platform&) { return 0; });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
}

TEST(World, ManyHostsHaveDifferentAddresses) {
  World world({.seed = 1});
  std::set<std::string> addresses;
  for (int number = 0; number < 600; ++number) {
    addresses.insert(world.host("h" + std::to_string(number)).address(0).to_string());
  }
  EXPECT_EQ(addresses.size(), 600U);
  EXPECT_EQ(world.host("h0").address(0), Endpoint::ipv4({10, 0, 0, 1}, 0));
  EXPECT_EQ(world.host("h255").address(0), Endpoint::ipv4({10, 0, 1, 0}, 0));
}

TEST(World, AHostCanBeStartedAgain) {
  EchoWorld echo({.seed = 4});
  int runs = 0;
  EXPECT_TRUE(echo.run().ok());
  for (; runs < 3; ++runs) {
    echo.request = {};
    echo.server.start_service(
        [](loop::Platform& host) { return Runtime(host, quiet(2)).run_on_each_core(serve_echo); });
    echo.client.start([&](loop::Platform& host) {
      return Runtime(host, quiet())
          .run_on_each_core(send_echo_request, echo.server.address(7), std::ref(echo.request));
    });
    const WorldReport report = echo.run();
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(echo.request.received, echo.request.text);
  }
}

int seven() {
  return 7;
}

Task<> call_pool(Scope& scope, std::vector<Duration>& took) {
  for (int call = 0; call < 20; ++call) {
    const Instant begun = scope.loop().platform().now();
    const auto result = co_await shared_pool(scope.loop()).pool().run(seven);
    EXPECT_EQ(result.value_or(0), 7);
    took.push_back(scope.loop().platform().now() - begun);
  }
}

TEST(World, FunctionsInAPoolTakeARandomTime) {
  World world({.seed = 1});
  std::vector<Duration> took;
  world.host("host").start([&](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core(call_pool, std::ref(took));
  });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  ASSERT_EQ(took.size(), 20U);
  EXPECT_GT(std::set<Duration>(took.begin(), took.end()).size(), 10U);
}

/// Uses a blocking pool, a file and datagrams.
Task<> use_everything(Scope& scope, Endpoint server) {
  std::vector<Duration> took;
  co_await call_pool(scope, took);
  const std::string text(50'000, 'x');
  const auto written = co_await files::write_file("/file", text);
  EXPECT_TRUE(written);
  auto socket = co_await udp::connect(server);
  if (!socket) co_return;
  for (int sent = 0; sent < 20; ++sent) std::ignore = co_await socket->send("x");
}

/// Returns the trace of a run with faults of every kind and a service that is killed.
std::string trace_with_faults(std::uint64_t seed) {
  EchoWorld echo({.seed = seed, .trace = true});
  echo.world.faults().rates = {.reset = 0.02,
                               .half_close = 0.02,
                               .stall = 0.05,
                               .full_buffer = 0.05,
                               .accept_failure = 0.2,
                               .loss = 0.1,
                               .doubling = 0.1};
  echo.world.host("other", {.cores = 2}).start([&echo](loop::Platform& host) {
    return Runtime(host, quiet(2)).run_on_each_core(use_everything, echo.server.address(9));
  });
  echo.world.schedule(1010ms, [&echo] {
    echo.server.kill();
    echo.server.start_service(
        [](loop::Platform& host) { return Runtime(host, quiet(2)).run_on_each_core(serve_echo); });
  });
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  return echo.world.trace();
}

TEST(World, TheSameSeedGivesTheSameFaultsAndDelays) {
  std::set<std::string> traces;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const std::string trace = trace_with_faults(seed);
    EXPECT_EQ(trace, trace_with_faults(seed)) << "seed " << seed;
    EXPECT_TRUE(traces.insert(trace).second) << "seed " << seed << " does not give a new run";
    EXPECT_THAT(trace, HasSubstr("server is killed"));
    EXPECT_THAT(trace, HasSubstr(" of datagram "));
    EXPECT_THAT(trace, HasSubstr(" file: "));
  }
}

std::mutex held_by_another;

int wait_for_another() {
  const std::lock_guard lock(held_by_another);
  return 7;
}

Task<> call_waiting(Scope& scope) {
  std::ignore = co_await shared_pool(scope.loop()).pool().run(wait_for_another);
}

void run_waiting() {
  const std::lock_guard lock(held_by_another);
  std::thread world_thread([] {
    World world({.seed = 12, .blocked_max = 200ms});
    world.host("host").start(
        [](loop::Platform& host) { return Runtime(host, quiet()).run_on_each_core(call_waiting); });
    static_cast<void>(world.run_until_done(1h));
  });
  world_thread.join();
}

TEST(World, AFunctionInAPoolThatWaitsForAnotherIsReported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run_waiting(),
               "weir: World: a function in a blocking pool is blocked: .*\n"
               "replay: setting WorldOptions::seed to 12\n");
}

TEST(World, AConnectToAnUnknownAddressTimesOut) {
  World world(fresh_world_options());
  EchoRequest request;
  world.host("client").start([&](loop::Platform& host) {
    return Runtime(host, quiet())
        .run_on_each_core(send_echo_request, Endpoint::ipv4({10, 0, 0, 99}, 7), std::ref(request));
  });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(request.connecting, system_error(ETIMEDOUT));
}

}  // namespace
}  // namespace weir::sim::world_test
