// The World: seeds, time, what is left at the end, and what it says about it.
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

#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/task/sleep.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/test/world_fixture.hpp"

namespace weir {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::string trace_of(std::uint64_t seed) {
  EchoWorld echo({.seed = seed, .trace = true});
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.asked.received, echo.asked.text);
  return echo.world.trace();
}

TEST(World, TheSameSeedGivesTheSameRunAndOthersDoNot) {
  std::set<std::string> traces;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const std::string trace = trace_of(seed);
    EXPECT_EQ(trace, trace_of(seed)) << "seed " << seed;
    EXPECT_TRUE(traces.insert(trace).second) << "seed " << seed << " is no new run";
  }
}

TEST(World, TextArrivesWhateverTheSeed) {
  for (int run = 0; run < 50; ++run) {
    EchoWorld echo(fresh_world());
    const WorldReport report = echo.run();
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(echo.asked.received, echo.asked.text) << report.text();
  }
}

TEST(World, WithoutVariationOnlyTheWayTakesTime) {
  EchoWorld echo({.seed = 1, .variation = no_variation});
  const WorldReport report = echo.run();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(echo.asked.reads, 1U);
  const Duration way = no_variation.delay_min;
  EXPECT_EQ(echo.asked.took, 4 * way) << "a handshake, there and back";
}

Task<Result<>> sleep_an_hour(Scope&) {
  co_return co_await sleep(1h);
}

int sleep_on(Host& host) {
  return Runtime(host, quiet()).run_on_each_core(sleep_an_hour);
}

TEST(World, AnHourPassesAtOnce) {
  World world(fresh_world());
  world.host("sleeper").start(sleep_on);
  const Instant begun = world.now();
  const WorldReport report = world.run_until_done(2h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_GE(world.now() - begun, 1h);
  EXPECT_LT(world.now() - begun, 1h + 1s);
}

TEST(World, WhatTakesTooLongIsCancelledAndReported) {
  World world({.seed = 7, .replay = "again "});
  world.host("sleeper").start(sleep_on);
  const WorldReport report = world.run_until_done(1min);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.failures.front(), HasSubstr("not done after 60 s; sleeper"));
  EXPECT_THAT(report.text(), HasSubstr("seed 7, again by: again 7"));
}

TEST(World, SaysHowToSeeItAgainEvenIfTheTestDoesNot) {
  const WorldReport report = World({.seed = 7}).run_until_done(1min);
  EXPECT_EQ(report.text(), "seed 7, again by: setting WorldOptions::seed to 7\n");
}

// So that whoever runs it as it says sees the same.
TEST(World, ATestOfFreshSeedsCanBeRunAgain) {
  GTEST_FLAG_SET(random_seed, 0);
  const WorldOptions options = fresh_world();
  EXPECT_NE(options.seed, fresh_world().seed);
  EXPECT_THAT(options.replay, HasSubstr(" --gtest_filter=World.ATestOfFreshSeedsCanBeRunAgain "));
  EXPECT_TRUE(options.replay.ends_with(" --gtest_random_seed="));
  GTEST_FLAG_SET(random_seed, static_cast<std::int32_t>(options.seed));
  EXPECT_EQ(fresh_world().seed, options.seed);
  EXPECT_EQ(fresh_world().seed, options.seed);
}

Task<Result<>> accept_nobody(Scope&) {
  auto listener = co_await tcp::listen(Endpoint::any(7));
  if (!listener) co_return fail(listener.error());
  auto peer = co_await listener->accept();
  co_return fail(peer.error());
}

TEST(World, WhoWaitsForWhatNeverHappensIsReported) {
  World world(fresh_world());
  world.host("server").start(
      [](Host& host) { return Runtime(host, quiet()).run_on_each_core(accept_nobody); });
  const WorldReport report = world.run_until_done(1h);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.failures.front(), HasSubstr("deadlock"));
  EXPECT_THAT(report.failures.front(),
              ContainsRegex("server \\[1 accept, [1-9][0-9]* coroutines\\]"));
}

TEST(World, WhatIsLeftIsReported) {
  World world({.seed = 3});
  WorldHost& host = world.host("host");
  host.start([](Host& its) {
    static_cast<void>(its.listen(Endpoint::any(7), {}).value().release());
    return 5;
  });
  EXPECT_THAT(world.run_until_done(1h).failures,
              ElementsAre("host: main has returned 5", "host: 1 descriptors are open"));
  host.close(3);
}

struct ForgottenTimer : Timer {
  ForgottenTimer() : Timer([](Timer&) {}) {}
};

Task<> leave_timer(Scope& scope, Timer& timer) {
  scope.loop().timers().start(timer, after(scope.loop().now(), 1h));
  co_return;
}

Task<> leave_block(Scope&, void*& block) {
  block = BlockPool::allocate(100);
  co_return;
}

TEST(World, WhatIsLeftOnALoopIsReported) {
  World world({.seed = 3});
  ForgottenTimer timer;
  void* block = nullptr;
  world.host("one").start([&](Host& host) {
    return Runtime(host, quiet()).run_on_each_core(leave_timer, std::ref<Timer>(timer));
  });
  world.host("two").start([&](Host& host) {
    return Runtime(host, quiet()).run_on_each_core(leave_block, std::ref(block));
  });
  EXPECT_THAT(
      world.run_until_done(1h).failures,
      UnorderedElementsAre("one/0: 1 timers are armed", "two/0: 1 blocks of the pool are in use"));
  BlockPool::release(block);
}

TEST(World, ChecksOfATestsOwnAreAsked) {
  EchoWorld echo({.seed = 1});
  echo.world.check("kept", [] { return std::string(); });
  echo.world.check("broken", [] { return std::string("wrong"); });
  echo.world.always("few operations",
                    [&] { return echo.server.operations() < 2 ? std::string() : "2 have begun"; });
  EXPECT_THAT(echo.run().failures, ElementsAre("few operations: 2 have begun", "broken: wrong"));
}

TEST(World, ChecksAndEventsThatThrowAreFailures) {
  World world({.seed = 1});
  world.host("sleeper").start([](Host& host) {
    return Runtime(host, quiet()).run_on_each_core([](Scope&) -> Task<> {
      static_cast<void>(co_await sleep(2s));
    });
  });
  world.at(1s, [] { throw std::runtime_error("no event"); });
  world.always("always", []() -> std::string { throw std::runtime_error("no check"); });
  world.check("end", []() -> std::string { throw 7; });
  EXPECT_THAT(world.run_until_done(1min).failures,
              ElementsAre("always: it has thrown no check", "an event has thrown no event",
                          "end: it has thrown something that is no std::exception"));
}

/// Waits for what takes time, as nobody should.
Task<> yield_until(Scope& scope, Duration time) {
  const Instant end = after(scope.loop().host().now(), time);
  while (scope.loop().host().now() < end && !scope.cancelled()) co_await yield();
}

TEST(World, WhereNoTimePassesTheRunIsGivenUp) {
  World world(
      {.seed = 7, .variation = no_variation, .replay = "again ", .steps_at_once_max = 100'000});
  world.host("busy").start([](Host& host) {
    return Runtime(host, quiet()).run_on_each_core(yield_until, Duration(1s));
  });
  const WorldReport report = world.run_until_done(1h);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.failures.front(),
              HasSubstr("no time passes: 100000 steps at one moment; busy"));
  EXPECT_THAT(report.text(), HasSubstr("seed 7, again by: again 7"));
}

TEST(World, AMainThatThrowsIsReported) {
  World world({.seed = 1});
  world.host("host").start([](Host&) -> int { throw std::runtime_error("no luck"); });
  EXPECT_THAT(world.run_until_done(1h).failures, ElementsAre("host: main has thrown no luck"));
}

TEST(World, WhatAnEarlierMainHasThrownIsNotReportedAgain) {
  World world({.seed = 1});
  WorldHost& host = world.host("host");
  host.start([](Host&) -> int { throw std::runtime_error("once"); });
  EXPECT_FALSE(world.run_until_done(1h).ok());
  host.start([](Host&) { return 0; });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
}

TEST(World, ManyHostsHaveAddressesOfTheirOwn) {
  World world({.seed = 1});
  std::set<std::string> addresses;
  for (int number = 0; number < 600; ++number) {
    addresses.insert(world.host("h" + std::to_string(number)).address(0).to_string());
  }
  EXPECT_EQ(addresses.size(), 600U);
  EXPECT_EQ(world.host("h0").address(0), Endpoint::ipv4({10, 0, 0, 1}, 0));
  EXPECT_EQ(world.host("h255").address(0), Endpoint::ipv4({10, 0, 1, 0}, 0));
}

TEST(World, AHostIsStartedAgain) {
  EchoWorld echo({.seed = 4});
  int runs = 0;
  EXPECT_TRUE(echo.run().ok());
  for (; runs < 3; ++runs) {
    echo.asked = {};
    echo.server.start_service(
        [](Host& host) { return Runtime(host, quiet(2)).run_on_each_core(serve_echo); });
    echo.client.start([&](Host& host) {
      return Runtime(host, quiet())
          .run_on_each_core(ask_echo, echo.server.address(7), std::ref(echo.asked));
    });
    const WorldReport report = echo.run();
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(echo.asked.received, echo.asked.text);
  }
}

int seven() {
  return 7;
}

Task<> call_pool(Scope& scope, std::vector<Duration>& took) {
  for (int call = 0; call < 20; ++call) {
    const Instant begun = scope.loop().host().now();
    const auto result = co_await shared_pool(scope.loop()).pool().run(seven);
    EXPECT_EQ(result.value_or(0), 7);
    took.push_back(scope.loop().host().now() - begun);
  }
}

TEST(World, FunctionsInAPoolTakeADrawnTime) {
  World world({.seed = 1});
  std::vector<Duration> took;
  world.host("host").start([&](Host& host) {
    return Runtime(host, quiet()).run_on_each_core(call_pool, std::ref(took));
  });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  ASSERT_EQ(took.size(), 20U);
  EXPECT_GT(std::set<Duration>(took.begin(), took.end()).size(), 10U);
}

std::mutex held_by_another;

int wait_for_another() {
  const std::lock_guard lock(held_by_another);
  return 7;
}

Task<> call_waiting(Scope& scope) {
  static_cast<void>(co_await shared_pool(scope.loop()).pool().run(wait_for_another));
}

void run_waiting() {
  const std::lock_guard lock(held_by_another);
  std::thread world_thread([] {
    World world({.seed = 12, .asleep_max = 200ms});
    world.host("host").start(
        [](Host& host) { return Runtime(host, quiet()).run_on_each_core(call_waiting); });
    static_cast<void>(world.run_until_done(1h));
  });
  world_thread.join();
}

TEST(World, AFunctionInAPoolThatWaitsForAnotherIsReported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run_waiting(), "not supported in a World: a function in a blocking pool waits");
}

TEST(World, NobodyHasAnAddressThatNoHostHas) {
  World world(fresh_world());
  Asked asked;
  world.host("client").start([&](Host& host) {
    return Runtime(host, quiet())
        .run_on_each_core(ask_echo, Endpoint::ipv4({10, 0, 0, 99}, 7), std::ref(asked));
  });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(asked.connecting, system_error(ETIMEDOUT));
}

}  // namespace
}  // namespace weir
