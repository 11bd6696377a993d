// Tests of the monitor of a runtime: when it looks, and what it reports.
#include "tools/simulate/runtime_monitor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "weir/runtime/runtime.hpp"
#include "weir/sim/world.hpp"
#include "weir/task/sleep.hpp"

namespace weir::simulate::runtime_monitor_test {
namespace {

Task<> sleep_often(Scope&) {
  for (int sleeps = 0; sleeps < 40; ++sleeps) std::ignore = co_await sleep(1s);
}

/// Runs a World whose runtime is watched, and returns its report.
sim::WorldReport run_watched(RuntimeMonitor& monitor, std::size_t& turns) {
  sim::World world({.seed = 1, .jitter = sim::no_jitter});
  world.host("host", {.cores = 2}).start([&monitor](loop::Platform& host) {
    Runtime runtime(host, {.cores = 2, .announce = false});
    const RuntimeMonitor::Attachment unwatched(nullptr, runtime);
    const RuntimeMonitor::Attachment watched(&monitor, runtime);
    return runtime.run_on_each_core(sleep_often);
  });
  world.always("monitor", [&] {
    ++turns;
    return monitor.find_violation();
  });
  return world.run_until_done(1h);
}

TEST(RuntimeMonitorTest, LooksOnceInSeveralTurns) {
  for (const unsigned between : {1U, 4U, 16U}) {
    std::size_t looks = 0;
    RuntimeMonitor monitor({.turns = between, .look = [&looks](const RuntimeReport& report) {
                              EXPECT_EQ(report.cores.size(), 2U);
                              ++looks;
                              return std::string();
                            }});
    std::size_t turns = 0;
    EXPECT_TRUE(run_watched(monitor, turns).ok());
    EXPECT_EQ(looks, turns / between);
    EXPECT_EQ(monitor.handed_over(), 0U);
    EXPECT_EQ(monitor.find_violation(), "") << "the runtime has gone";
  }
}

TEST(RuntimeMonitorTest, ReportsTheViolationOfItsRule) {
  RuntimeMonitor monitor({.turns = 1, .look = [](const RuntimeReport& report) {
                            return std::string(report.total().turns > 20 ? "many turns" : "");
                          }});
  std::size_t turns = 0;
  EXPECT_THAT(run_watched(monitor, turns).failures, testing::ElementsAre("monitor: many turns"));
}

TEST(RuntimeMonitorTest, CountersMustNotDecrease) {
  sim::World world({.seed = 1, .jitter = sim::no_jitter});
  RuntimeMonitor monitor({.turns = 1});
  sim::Host& host = world.host("host");
  std::string violation;
  host.start([&](loop::Platform& its) {
    {
      Runtime busy(its, {.announce = false});
      const RuntimeMonitor::Attachment watched(&monitor, busy);
      EXPECT_EQ(busy.run_on_each_core(sleep_often), 0);
    }
    // The counters of a new runtime begin at 0.
    Runtime fresh(its, {.announce = false});
    const RuntimeMonitor::Attachment watched(&monitor, fresh);
    return fresh.run_on_each_core(sleep_often);
  });
  world.always("monitor", [&] { return monitor.find_violation(); });
  EXPECT_THAT(world.run_until_done(1h).failures,
              testing::ElementsAre("monitor: turns of core 0 has decreased"));
}

}  // namespace
}  // namespace weir::simulate::runtime_monitor_test
