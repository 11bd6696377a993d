// Tests that an overloaded server keeps its limits, and that a server that exceeds them is
// detected.
#include "tools/simulate/overload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "weir/sim/test/seed_fixture.hpp"

namespace weir::simulate::overload_test {
namespace {

/// Succeeds if one of the failures contains `part`.
testing::AssertionResult has_failure(const sim::WorldReport& report, std::string_view part) {
  const bool found = std::ranges::any_of(
      report.failures, [&](const std::string& each) { return each.find(part) != each.npos; });
  return found ? testing::AssertionSuccess() : testing::AssertionFailure() << report.text();
}

TEST(Overload, TheServerShedsAttackersAndServesRegularClients) {
  std::size_t ended = 0;
  std::size_t rejected = 0;
  std::size_t timed_out = 0;
  for (int run = 0; run < 3; ++run) {
    const OverloadOutcome all = run_overload(fresh_world_options());
    ASSERT_TRUE(all.outcome.report.ok()) << all.outcome.report.text();
    EXPECT_LT(all.memory_peak, all.memory_bound);
    EXPECT_GT(all.memory_peak, std::size_t{1} << 20) << "the attack used too little memory";
    RecordProperty("bytes", std::to_string(all.memory_peak));
    ended += all.attackers_ended;
    rejected += all.rejected;
    timed_out += all.timed_out;
  }
  EXPECT_GT(ended, 500U);
  EXPECT_GT(rejected, 100U);
  EXPECT_GT(timed_out, 20U);
}

TEST(Overload, DetectsMemoryBeyondTheBound) {
  const sim::WorldReport report =
      run_overload(fresh_world_options(), {.excess_bytes = std::size_t{16} << 20}).outcome.report;
  EXPECT_TRUE(has_failure(report, " bytes are in use, the limit is ")) << report.text();
}

TEST(Overload, DetectsConnectionsBeyondTheLimit) {
  http::Limits limits = short_timeout_limits();
  limits.connections_max += 8;
  EXPECT_TRUE(has_failure(run_overload(fresh_world_options(), {.limits = limits}).outcome.report,
                          " connections"));
}

TEST(Overload, DetectsAServerWithoutTimeouts) {
  http::Limits limits = short_timeout_limits();
  limits.head_timeout = limits.idle_timeout = std::chrono::hours(2);
  limits.body_rate.grace = limits.body_rate.stall_max = std::chrono::hours(2);
  EXPECT_TRUE(has_failure(run_overload(fresh_world_options(), {.limits = limits}).outcome.report,
                          "neither answered nor closed"));
}

TEST(Overload, DetectsAServerThatClosesRegularClients) {
  http::Limits limits = short_timeout_limits();
  limits.idle_timeout = std::chrono::milliseconds(20);
  EXPECT_TRUE(has_failure(run_overload(fresh_world_options(), {.limits = limits}).outcome.report,
                          "regular: "));
}

}  // namespace
}  // namespace weir::simulate::overload_test
