// A server under more than its limits allow holds what it has promised, and one that does not keep
// its promises is found out.
#include "tools/simulate/overload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "weir/sim/test/seed_fixture.hpp"

namespace weir::simulate {
namespace {

/// Whether one of the failures has this in it.
testing::AssertionResult has_failure(const WorldReport& report, std::string_view part) {
  const bool found = std::ranges::any_of(
      report.failures, [&](const std::string& each) { return each.find(part) != each.npos; });
  return found ? testing::AssertionSuccess() : testing::AssertionFailure() << report.text();
}

TEST(Overload, TheServerShedsByRuleAndServesWhoIsWithinLimits) {
  std::size_t ended = 0;
  std::size_t turned_away = 0;
  std::size_t timed_out = 0;
  for (int run = 0; run < 3; ++run) {
    const OverloadOutcome all = run_overload(fresh_world());
    ASSERT_TRUE(all.outcome.report.ok()) << all.outcome.report.text();
    EXPECT_LT(all.memory_most, all.memory_bound);
    EXPECT_GT(all.memory_most, std::size_t{1} << 20) << "that was no attack";
    RecordProperty("bytes", std::to_string(all.memory_most));
    ended += all.attackers_ended;
    turned_away += all.turned_away;
    timed_out += all.timed_out;
  }
  EXPECT_GT(ended, 500U);
  EXPECT_GT(turned_away, 100U);
  EXPECT_GT(timed_out, 20U);
}

TEST(Overload, MemoryBeyondTheBoundIsFound) {
  const WorldReport report =
      run_overload(fresh_world(), {.hoards = std::size_t{16} << 20}).outcome.report;
  EXPECT_TRUE(has_failure(report, " bytes are held, and ")) << report.text();
}

TEST(Overload, ConnectionsBeyondTheLimitAreFound) {
  http::Limits limits = impatient_limits();
  limits.connections_max += 8;
  EXPECT_TRUE(
      has_failure(run_overload(fresh_world(), {.limits = limits}).outcome.report, " connections"));
}

TEST(Overload, AServerThatWaitsForEverIsFound) {
  http::Limits limits = impatient_limits();
  limits.head_timeout = limits.idle_timeout = std::chrono::hours(2);
  limits.body_rate.grace = limits.body_rate.stall_max = std::chrono::hours(2);
  EXPECT_TRUE(has_failure(run_overload(fresh_world(), {.limits = limits}).outcome.report,
                          "neither answered nor closed"));
}

TEST(Overload, AServerThatSendsRegularClientsAwayIsFound) {
  http::Limits limits = impatient_limits();
  limits.idle_timeout = std::chrono::milliseconds(20);
  EXPECT_TRUE(
      has_failure(run_overload(fresh_world(), {.limits = limits}).outcome.report, "regular: "));
}

}  // namespace
}  // namespace weir::simulate
