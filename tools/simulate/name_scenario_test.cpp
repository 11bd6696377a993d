// Tests that the scenario of names finds servers whose answers differ from what the client expects.
#include "tools/simulate/name_scenario.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "weir/sim/test/seed_fixture.hpp"

namespace weir::simulate {
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

/// Returns how many of ten runs have a violation, which begins with the name of the check.
int violations_in_ten(const NameRun& run) {
  int found = 0;
  for (int each = 0; each < 10; ++each) {
    const sim::WorldReport report = run_names(fresh_world_options(), run).report;
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
  EXPECT_GT(violations_in_ten(with_change(first)), 5);
  EXPECT_GT(violations_in_ten(with_change(first, false)), 5);
  const Change order = [](ZoneName& name) {
    for (auto& records : name.addresses) std::ranges::reverse(records);
  };
  EXPECT_GT(violations_in_ten(with_change(order)), 5);
  const Change fewer = [](ZoneName& name) {
    for (auto& records : name.addresses) {
      if (!records.empty()) records.pop_back();
    }
  };
  EXPECT_GT(violations_in_ten(with_change(fewer)), 5);
}

TEST(NameScenarioTest, FindsNamesWhoseExistenceIsWrong) {
  EXPECT_GT(violations_in_ten(with_change([](ZoneName& name) { name.exists = true; })), 5);
  EXPECT_GT(violations_in_ten(with_change([](ZoneName& name) { name.exists = false; })), 5);
}

TEST(NameScenarioTest, FindsResultsThatAreCachedTooLongOrTooShort) {
  EXPECT_GT(violations_in_ten(with_change([](ZoneName& name) { change_ttls(name, 1); })), 5);
  EXPECT_GT(violations_in_ten(with_change([](ZoneName& name) { name.absence.reset(); })), 5);
}

TEST(NameScenarioTest, FindsQueriesToOtherServersThanExpected) {
  const Change refused = [](ZoneName& name) {
    for (AnswerMode& each : name.modes) {
      const bool answers = each == AnswerMode::correct || each == AnswerMode::truncated;
      if (!answers) each = AnswerMode::refused;
    }
  };
  EXPECT_GT(violations_in_ten(with_change(refused)), 5);
  const Change connection = [](ZoneName& name) {
    std::ranges::replace(name.modes, AnswerMode::truncated, AnswerMode::correct);
  };
  EXPECT_GT(violations_in_ten(with_change(connection)), 5);
}

TEST(NameScenarioTest, FindsAnswersThatComeTooLate) {
  const Change slow = [](ZoneName& name) {
    for (Duration& each : name.delay) {
      if (each == Duration::zero()) each = std::chrono::milliseconds(200);
    }
  };
  EXPECT_GT(violations_in_ten(with_change(slow)), 5);
}

}  // namespace
}  // namespace weir::simulate
