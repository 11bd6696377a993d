// Tests that the scenario of configurations finds values and errors that it does not expect.
#include "tools/simulate/config_scenario.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace weir::simulate::config_scenario_test {
namespace {

/// Returns how many of five runs with fixed seeds have a violation.
int violations_in_five(const ConfigReader::ChangeInput& change) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const sim::WorldReport report = run_config({.seed = seed}, change).report;
    if (report.text().contains("config: ")) ++found;
  }
  return found;
}

TEST(ConfigScenarioTest, HoldsIfTheSourcesAreAsExpected) {
  EXPECT_EQ(violations_in_five({}), 0);
}

TEST(ConfigScenarioTest, FailsFilesInSomeRunsOnly) {
  int failing = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    failing += run_config({.seed = seed}, {}).injected_faults != 0 ? 1 : 0;
  }
  EXPECT_GT(failing, 0);
  EXPECT_LT(failing, 10);
}

TEST(ConfigScenarioTest, FindsAnotherValue) {
  EXPECT_EQ(violations_in_five([](ConfigInput& input) {
              input.environment.emplace_back("APP_LIMITS_PATIENCE=3ms");
            }),
            5);
  EXPECT_EQ(violations_in_five([](ConfigInput& input) { input.file = "offset = 3\n"; }), 5);
}

TEST(ConfigScenarioTest, FindsAnErrorAtAnotherPlace) {
  EXPECT_EQ(violations_in_five([](ConfigInput& input) { input.file = "\n" + input.file; }), 5);
}

TEST(ConfigScenarioTest, FindsMissingErrors) {
  EXPECT_EQ(violations_in_five([](ConfigInput& input) {
              if (input.errors.empty()) return;
              input.file.clear();
              input.environment.clear();
              input.arguments.clear();
            }),
            5);
}

}  // namespace
}  // namespace weir::simulate::config_scenario_test
