// Tests that the scenario of restarts meets the ends of connections, and that it finds a POST that
// is executed twice.
#include "tools/simulate/http2_restart_scenario.hpp"

#include <gtest/gtest.h>

#include "tools/simulate/component_scenarios.hpp"
#include "weir/sim/test/seed_fixture.hpp"

namespace weir::simulate::http2_restart_scenario_test {
namespace {

/// The sums of several runs.
struct Sums {
  std::size_t answered = 0;
  std::size_t failed = 0;
  unsigned begun = 0;
};

Sums run_some(Http2Restart restart) {
  Sums sums;
  for (int run = 0; run < 4; ++run) {
    sim::World world(fresh_world_options());
    Http2RestartScenario scenario(world, {.restart = restart});
    const Outcome outcome = run_http2_restarts(world, scenario);
    EXPECT_TRUE(outcome.report.ok()) << outcome.report.text();
    sums.answered += scenario.answered();
    sums.failed += scenario.failed();
    sums.begun += scenario.begun();
  }
  return sums;
}

TEST(Http2RestartScenario, AllRequestsSucceedIfTheSocketsAreHandedOver) {
  const Sums sums = run_some(Http2Restart::handover);
  EXPECT_GT(sums.answered, 1400U);
  EXPECT_EQ(sums.failed, 0U);
  EXPECT_GT(sums.begun, 12U);
}

TEST(Http2RestartScenario, RequestsFailWhileNoProcessListens) {
  const Sums sums = run_some(Http2Restart::drain);
  EXPECT_GT(sums.answered, 400U);
  EXPECT_GT(sums.failed, 0U);
  EXPECT_GT(sums.begun, 6U);
}

TEST(Http2RestartScenario, RequestsOfAProcessThatDiesAreLost) {
  const Sums sums = run_some(Http2Restart::kill);
  EXPECT_GT(sums.answered, 1000U);
  EXPECT_GT(sums.failed, 0U);
  EXPECT_GT(sums.begun, 12U);
}

TEST(Http2RestartScenario, FindsAPostThatIsExecutedTwice) {
  bool found = false;
  for (std::uint64_t seed = 1; seed < 10 && !found; ++seed) {
    sim::World world({.seed = seed});
    Http2RestartScenario scenario(world, {.restart = Http2Restart::kill, .repeats_posts = true});
    found =
        run_http2_restarts(world, scenario).report.text().find("is executed") != std::string::npos;
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace weir::simulate::http2_restart_scenario_test
