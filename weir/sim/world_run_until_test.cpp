// Tests of runs of a World that stop in between and continue.
#include <gtest/gtest.h>

#include <memory>
#include <tuple>

#include "weir/sim/test/world_fixture.hpp"
#include "weir/sim/world.hpp"
#include "weir/task/context.hpp"
#include "weir/task/sync/event.hpp"

namespace weir::sim::world_run_until_test {
namespace {

const WorldOptions steady{.seed = 1, .jitter = no_jitter};

Task<> sleep_for(Scope&, Duration time) {
  std::ignore = co_await sleep(time);
}
Task<> wait_for_ever(Scope&) {
  ManualResetEvent event{false};
  std::ignore = co_await event.wait();
}
Task<> spin(Scope& scope) {
  const Context own = co_await this_context();
  const Instant start = scope.loop().platform().now();
  while (scope.loop().platform().now() == start && !own.cancelled()) co_await yield();
}

/// Returns a main that runs `body` on one core.
template <class Body, class... Args>
MainFunction main_of(Body body, Args... args) {
  return
      [=](loop::Platform& host) { return Runtime(host, quiet()).run_on_each_core(body, args...); };
}

TEST(WorldRunUntil, ContinuesWhereItStopped) {
  World world(steady);
  const Instant start = world.now();
  EXPECT_TRUE(world.done());
  world.host("one").start(main_of(sleep_for, 10s));
  EXPECT_FALSE(world.run_until([] { return false; }, 4s));
  EXPECT_EQ(world.now(), start + 4s);
  EXPECT_FALSE(world.done());
  EXPECT_TRUE(world.run_until([&] { return world.done(); }, 6s));
  EXPECT_EQ(world.now(), start + 10s);
  EXPECT_TRUE(world.run_until_done(1h).ok());
}

TEST(WorldRunUntil, EndsIfNothingCanHappen) {
  World world(steady);
  const Instant start = world.now();
  Host& host = world.host("one");
  host.start(main_of(wait_for_ever));
  EXPECT_FALSE(world.run_until([] { return false; }, 1h));
  EXPECT_EQ(world.now(), start) << "no time has passed";
  EXPECT_FALSE(world.run_until_done(1h).ok());
}

TEST(WorldRunUntil, ServicesStayUntilTheRunIsDone) {
  World world(steady);
  Host& server = world.host("server");
  server.start_service(main_of(serve_echo));
  EchoRequest request;
  world.host("client").start(main_of(send_echo_request, server.address(7), std::ref(request)));
  EXPECT_TRUE(world.run_until([&] { return world.host("client").done(); }, 1min));
  EXPECT_EQ(request.received, request.text);
  EXPECT_FALSE(world.run_until([&] { return server.done(); }, 1min));
  const WorldReport report = world.run_until_done(1min);
  EXPECT_TRUE(report.ok()) << report.text();
}

TEST(WorldRunUntil, EndsALivelock) {
  World world({.seed = 1, .jitter = no_jitter, .steps_per_instant_max = 1000});
  world.host("one").start(main_of(spin));
  EXPECT_FALSE(world.run_until([] { return false; }, 1h));
  world.jump(1s);
  EXPECT_TRUE(world.run_until_done(1h).ok());
}

TEST(WorldRunUntil, DestructorEndsThePrograms) {
  const auto shared = std::make_shared<int>(1);
  {
    World world(steady);
    Host& server = world.host("server");
    server.start_service([shared](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core(serve_echo);
    });
    EXPECT_TRUE(world.run_until([&] { return server.listens(); }, 1min));
  }
  EXPECT_EQ(shared.use_count(), 1);
}

}  // namespace
}  // namespace weir::sim::world_run_until_test
