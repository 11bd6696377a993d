// Tests that the clients of the scenario vanish in bodies of each kind.
#include "tools/simulate/http2_cut_scenario.hpp"

#include <gtest/gtest.h>

#include "tools/simulate/component_scenarios.hpp"
#include "weir/sim/test/seed_fixture.hpp"

namespace weir::simulate::http2_cut_scenario_test {
namespace {

TEST(Http2CutScenario, VanishesAtEachByteOfABody) {
  std::size_t failed = 0;
  std::size_t complete = 0;
  for (int run = 0; run < 20; ++run) {
    sim::World world(fresh_world_options());
    Http2CutScenario scenario(world.random(), {});
    const Outcome outcome = run_http2_cuts(world, scenario);
    ASSERT_TRUE(outcome.report.ok()) << outcome.report.text();
    EXPECT_GT(scenario.size(), 50U);
    failed += scenario.failed();
    complete += scenario.complete();
  }
  EXPECT_GT(failed, 100U);
  EXPECT_GT(complete, 5U);
}

}  // namespace
}  // namespace weir::simulate::http2_cut_scenario_test
