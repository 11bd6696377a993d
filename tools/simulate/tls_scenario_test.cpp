// Tests that the scenario of TLS resumes sessions and changes the server, and that it finds a
// server that it should not trust.
#include "tools/simulate/tls_scenario.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/simulate/component_scenarios.hpp"
#include "weir/sim/test/seed_fixture.hpp"

namespace weir::simulate::tls_scenario_test {
namespace {

TEST(TlsScenario, ResumesSessionsAndChangesTheServer) {
  for (const bool mutual : {false, true}) {
    sim::World world(fresh_world_options());
    TlsScenario scenario(world.random(), {.workers = 4, .requests = 30, .mutual = mutual});
    const Outcome outcome = run_tls(world, scenario);
    EXPECT_TRUE(outcome.report.ok()) << outcome.report.text();
    EXPECT_EQ(outcome.answered, 120U);
    EXPECT_GT(scenario.resumed(), 10U);
    EXPECT_GT(scenario.changes(), 10U);
  }
}

TEST(TlsScenario, ResumesSessionsAfterRotationsOfTheKeys) {
  sim::World world(fresh_world_options());
  TlsScenario scenario(world.random(), {.workers = 4, .requests = 60, .sets_keys = false});
  const Outcome outcome = run_tls(world, scenario);
  EXPECT_TRUE(outcome.report.ok()) << outcome.report.text();
  EXPECT_GT(world.now() - Instant(), std::chrono::hours(24)) << "three rotations";
  EXPECT_GT(scenario.resumed(), 60U);
}

TEST(TlsScenario, FindsAFailedRequest) {
  sim::World world({.seed = 1});
  TlsScenario scenario(world.random(), {});
  world.faults().rates.reset = 0.05;
  EXPECT_THAT(run_tls(world, scenario).report.text(), testing::HasSubstr("tls: request "));
}

TEST(TlsScenario, FindsAServerThatRequiresNoCertificate) {
  sim::World world({.seed = 1});
  TlsScenario scenario(world.random(), {.mutual = true, .required = false});
  EXPECT_THAT(run_tls(world, scenario).report.text(),
              testing::HasSubstr("a response between peers without trust"));
}

}  // namespace
}  // namespace weir::simulate::tls_scenario_test
