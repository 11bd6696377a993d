// Tests that the scenario of names finds servers whose answers differ from what the client expects.
#include "tools/simulate/name_scenario.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

namespace weir::simulate::name_scenario_test {
namespace {

using Change = std::function<void(ZoneName&)>;

NameRun with_change(const Change& change, bool exact = true) {
  NameRun run{.exact = exact};
  run.change = [change](Zone& zone) {
    for (auto& [name, entry] : zone.names) change(entry);
    change(zone.unknown);
  };
  return run;
}

/// Returns how many of ten runs with fixed seeds have a violation. It begins with the name of the
/// check.
int violations_in_ten(const NameRun& run) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const sim::WorldReport report = run_names({.seed = seed}, run).report;
    if (report.text().contains("names: ")) ++found;
  }
  return found;
}

void change_ttls(ZoneName& name, std::uint32_t by) {
  for (auto& records : name.addresses) {
    for (ZoneAddress& each : records) each.ttl += by;
  }
  for (ZoneAlias& each : name.aliases) each.ttl += by;
}

TEST(NameScenarioTest, HoldsIfTheServersAnswerAsExpected) {
  EXPECT_EQ(violations_in_ten({}), 0);
  EXPECT_EQ(violations_in_ten({.exact = false}), 0);
}

TEST(NameScenarioTest, FindsWrongAddresses) {
  const Change first = [](ZoneName& name) {
    for (auto& records : name.addresses) {
      if (!records.empty()) records.front().address = Endpoint::ipv4({10, 1, 1, 1}, 0);
    }
  };
  EXPECT_GT(violations_in_ten(with_change(first)), 0);
  EXPECT_GT(violations_in_ten(with_change(first, false)), 0);
  const Change order = [](ZoneName& name) {
    for (auto& records : name.addresses) std::ranges::reverse(records);
  };
  EXPECT_GT(violations_in_ten(with_change(order)), 0);
  const Change fewer = [](ZoneName& name) {
    for (auto& records : name.addresses) {
      if (!records.empty()) records.pop_back();
    }
  };
  EXPECT_GT(violations_in_ten(with_change(fewer)), 0);
}

TEST(NameScenarioTest, FindsNamesWhoseExistenceIsWrong) {
  EXPECT_GT(violations_in_ten(with_change([](ZoneName& name) { name.exists = true; })), 0);
  EXPECT_GT(violations_in_ten(with_change([](ZoneName& name) { name.exists = false; })), 0);
}

TEST(NameScenarioTest, FindsResultsThatAreCachedTooLongOrTooShort) {
  EXPECT_GT(violations_in_ten(with_change([](ZoneName& name) { change_ttls(name, 1); })), 0);
  EXPECT_GT(violations_in_ten(with_change([](ZoneName& name) { name.absence.reset(); })), 0);
}

TEST(NameScenarioTest, FindsQueriesToOtherServersThanExpected) {
  const Change refused = [](ZoneName& name) {
    for (AnswerMode& each : name.modes) {
      const bool answers = each == AnswerMode::correct || each == AnswerMode::truncated;
      if (!answers) each = AnswerMode::refused;
    }
  };
  EXPECT_GT(violations_in_ten(with_change(refused)), 0);
  const Change connection = [](ZoneName& name) {
    std::ranges::replace(name.modes, AnswerMode::truncated, AnswerMode::correct);
  };
  EXPECT_GT(violations_in_ten(with_change(connection)), 0);
}

TEST(NameScenarioTest, FindsAnswersThatComeTooLate) {
  const Change slow = [](ZoneName& name) {
    for (Duration& each : name.delay) {
      if (each == Duration::zero()) each = std::chrono::milliseconds(200);
    }
  };
  EXPECT_GT(violations_in_ten(with_change(slow)), 0);
}

}  // namespace
}  // namespace weir::simulate::name_scenario_test
