// Tests that the clients of the scenario vanish in handshakes and in messages.
#include "tools/simulate/websocket_cut_scenario.hpp"

#include <gtest/gtest.h>

#include "tools/simulate/component_scenarios.hpp"
#include "weir/sim/test/seed_fixture.hpp"

namespace weir::simulate {
namespace {

TEST(WebSocketCutScenario, VanishesAtEachByte) {
  std::size_t answered = 0;
  for (int run = 0; run < 10; ++run) {
    sim::World world(fresh_world_options());
    WebSocketService service(world.random(), {});
    WebSocketCutScenario scenario(world.random(), service);
    const Outcome outcome = run_websocket_cuts(world, service, scenario);
    ASSERT_TRUE(outcome.report.ok()) << outcome.report.text();
    EXPECT_GT(scenario.size(), 150U);
    answered += scenario.answered();
  }
  EXPECT_GT(answered, 0U);  // their number depends on the seeds
}

}  // namespace
}  // namespace weir::simulate
