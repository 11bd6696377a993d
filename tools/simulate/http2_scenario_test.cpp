// Tests that the scenario of HTTP/2 answers, cancels and drains, and that it finds failed requests.
#include "tools/simulate/http2_scenario.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/simulate/component_scenarios.hpp"
#include "weir/sim/test/seed_fixture.hpp"

namespace weir::simulate::http2_scenario_test {
namespace {

TEST(Http2Scenario, AnswersAllRequestsThatAreNotCancelled) {
  sim::World world(fresh_world_options());
  Http2Scenario scenario(world.random(), {.clients = 3, .requests = 100});
  const Outcome outcome = run_http2(world, scenario);
  EXPECT_TRUE(outcome.report.ok()) << outcome.report.text();
  EXPECT_EQ(scenario.answered() + scenario.cancelled(), 300U);
  EXPECT_GT(scenario.answered(), 250U);
}

TEST(Http2Scenario, DrainsInTheMiddleOfRequests) {
  std::size_t answered = 0;
  for (int run = 0; run < 20; ++run) {
    sim::World world(fresh_world_options());
    Http2Scenario scenario(world.random(), {.requests = 200, .drains = true});
    const Outcome outcome = run_http2(world, scenario);
    EXPECT_TRUE(outcome.report.ok()) << outcome.report.text();
    EXPECT_LT(scenario.answered(), 800U);
    answered += scenario.answered();
  }
  EXPECT_GT(answered, 100U);
}

TEST(Http2Scenario, FindsAFailedRequest) {
  sim::World world({.seed = 1});
  Http2Scenario scenario(world.random(), {});
  world.faults().rates.reset = 0.05;
  EXPECT_THAT(run_http2(world, scenario).report.text(), testing::HasSubstr("http2: "));
}

}  // namespace
}  // namespace weir::simulate::http2_scenario_test
