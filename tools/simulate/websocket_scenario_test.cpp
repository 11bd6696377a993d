// Tests that the clients of the scenario of WebSockets meet each end, and miss messages.
#include "tools/simulate/websocket_scenario.hpp"

#include <gtest/gtest.h>

#include "tools/simulate/component_scenarios.hpp"
#include "weir/sim/test/seed_fixture.hpp"

namespace weir::simulate::websocket_scenario_test {
namespace {

using http::WebSocketCloseCode;

/// The sums of several runs.
struct Sums {
  std::size_t answered = 0;
  std::size_t missed = 0;
  std::size_t closed = 0;  // with the code
};

Sums run_some(WebSocketDisturbance disturbance, WebSocketCloseCode code) {
  Sums sums;
  for (int run = 0; run < 6; ++run) {
    sim::World world(fresh_world_options());
    const WebSocketScenarioOptions options{.disturbance = disturbance, .http2 = run % 2 == 1};
    const bool replaces = disturbance == WebSocketDisturbance::replace;
    const bool disturbed = disturbance != WebSocketDisturbance::none;
    // A service is replaced some time after its routes: the topics must last longer.
    WebSocketService service(world.random(), {.messages = replaces ? 1500U : 60U,
                                              .subscribers = disturbed ? 0 : options.subscribers,
                                              .replacements = replaces ? 5U : 0U});
    WebSocketScenario scenario(world.random(), service, options);
    const Outcome outcome = run_websockets(world, service, scenario);
    EXPECT_TRUE(outcome.report.ok()) << outcome.report.text();
    sums.answered += scenario.answered();
    sums.missed += scenario.missed();
    sums.closed += scenario.closed_with(code);
  }
  return sums;
}

TEST(WebSocketScenario, SlowSubscribersMissMessages) {
  const Sums sums = run_some(WebSocketDisturbance::none, WebSocketCloseCode::try_again_later);
  EXPECT_GT(sums.answered, 2000U);
  EXPECT_GT(sums.missed, 50U);
  EXPECT_GT(sums.closed, 3U);
}

TEST(WebSocketScenario, ADrainClosesWebSockets) {
  const Sums sums = run_some(WebSocketDisturbance::drain, WebSocketCloseCode::going_away);
  EXPECT_GT(sums.answered, 50U);
  EXPECT_GT(sums.closed, 20U);
}

TEST(WebSocketScenario, AReplacementClosesWebSockets) {
  const Sums sums = run_some(WebSocketDisturbance::replace, WebSocketCloseCode::service_restart);
  EXPECT_GT(sums.answered, 1000U);
  EXPECT_GT(sums.closed, 50U);
}

TEST(WebSocketScenario, FaultsEndWebSockets) {
  const Sums sums = run_some(WebSocketDisturbance::faults, WebSocketCloseCode::abnormal);
  EXPECT_GT(sums.answered, 50U);
  EXPECT_GT(sums.closed, 20U);
}

}  // namespace
}  // namespace weir::simulate::websocket_scenario_test
