// Tests that the scenario of a pool finds wrong reports.
#include "tools/simulate/pool_scenario.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "weir/sim/world.hpp"

namespace weir::simulate::pool_scenario_test {
namespace {

/// Returns how many of ten runs with fixed seeds have a violation, if reports are changed in this
/// way.
int violations_in_ten(void (*change)(PoolReport&)) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    sim::World world({.seed = seed});
    PoolScenarioOptions options = PoolScenarioOptions::draw(world.random());
    options.change = change;
    PoolScenario scenario(options, 2);
    world.host("pool", {.cores = 2}).start([&scenario](loop::Platform& host) {
      return scenario.run(host);
    });
    world.always("report", [&scenario] { return scenario.find_wrong_report(); });
    world.check("pool", [&scenario] { return scenario.find_violation(); });
    if (!world.run_until_done(1h).ok()) ++found;
  }
  return found;
}

TEST(PoolScenarioTest, HoldsForTheReportsOfThePool) {
  EXPECT_EQ(violations_in_ten(nullptr), 0);
}

TEST(PoolScenarioTest, FindsWrongCounts) {
  EXPECT_EQ(violations_in_ten([](PoolReport& report) { ++report.lanes[0].finished; }), 10);
  EXPECT_EQ(violations_in_ten([](PoolReport& report) { report.lanes[0].rejected = 1; }), 10);
  EXPECT_EQ(violations_in_ten([](PoolReport& report) { ++report.running; }), 10);
  EXPECT_EQ(violations_in_ten([](PoolReport& report) { report.queued += 1; }), 10);
}

TEST(PoolScenarioTest, FindsWrongSizes) {
  EXPECT_EQ(violations_in_ten([](PoolReport& report) { report.size = 0; }), 10);
  EXPECT_EQ(violations_in_ten([](PoolReport& report) { report.threads += 100; }), 10);
}

}  // namespace
}  // namespace weir::simulate::pool_scenario_test
