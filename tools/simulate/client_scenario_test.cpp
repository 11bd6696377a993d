// Tests that the scenario of the client meets the moments that it is about, and that it finds
// requests that fail.
#include "tools/simulate/client_scenario.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/simulate/component_scenarios.hpp"
#include "weir/sim/test/seed_fixture.hpp"

namespace weir::simulate::client_scenario_test {
namespace {

TEST(ClientScenario, MeetsTheEndsOfIdleConnections) {
  std::size_t lost_posts = 0;
  std::size_t connections = 0;
  for (int run = 0; run < 3; ++run) {
    sim::World world(fresh_world_options());
    ClientScenario scenario(world.random(), {.workers = 20, .requests = 60});
    const Outcome outcome = run_client(world, scenario);
    EXPECT_TRUE(outcome.report.ok()) << outcome.report.text();
    EXPECT_EQ(outcome.answered + scenario.lost_posts(), 1200U);
    lost_posts += scenario.lost_posts();
    connections += scenario.connections();
  }
  EXPECT_GT(lost_posts, 5U) << "hardly a request met the end of its connection";
  EXPECT_GT(connections, 500U);
}

TEST(ClientScenario, FindsRequestsThatAreNotSentAgain) {
  sim::World world({.seed = 1});
  ClientScenario scenario(world.random(), {.cut_share = 0.2, .retries = false});
  EXPECT_THAT(run_client(world, scenario).report.text(),
              testing::HasSubstr("a failure that another connection would have avoided: PATCH /"));
}

}  // namespace
}  // namespace weir::simulate::client_scenario_test
