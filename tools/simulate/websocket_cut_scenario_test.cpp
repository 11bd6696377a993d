// Tests that the clients of the scenario vanish in handshakes and in messages.
#include "tools/simulate/websocket_cut_scenario.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "tools/simulate/component_scenarios.hpp"

namespace weir::simulate::websocket_cut_scenario_test {
namespace {

TEST(WebSocketCutScenario, VanishesAtEachByte) {
  std::size_t answered = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    sim::World world({.seed = seed});
    WebSocketService service(world.random(), {});
    WebSocketCutScenario scenario(world.random(), service);
    const Outcome outcome = run_websocket_cuts(world, service, scenario);
    ASSERT_TRUE(outcome.report.ok()) << outcome.report.text();
    EXPECT_GT(scenario.size(), 150U);
    answered += scenario.answered();
  }
  EXPECT_GT(answered, 50U);
}

}  // namespace
}  // namespace weir::simulate::websocket_cut_scenario_test
