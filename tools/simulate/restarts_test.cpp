// Tests that hot restarts fail no client, even if a process dies at any step, and that a restart
// without a handover is detected.
#include "tools/simulate/restarts.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "weir/sim/test/seed_fixture.hpp"

namespace weir::simulate::restarts_test {
namespace {

TEST(Restarts, NewerProcessesServe) {
  const RestartOutcome all = run_restarts(fresh_world_options(), {});
  ASSERT_TRUE(all.outcome.report.ok()) << all.outcome.report.text();
  EXPECT_GT(all.outcome.answered, all.served_by_newer);
  EXPECT_GT(all.served_by_newer, 0U);
  for (const std::uint64_t steps : all.steps) EXPECT_GT(steps, 0U);
}

TEST(Restarts, DetectsARestartWithoutHandover) {
  const RestartOutcome all = run_restarts(fresh_world_options(), {.without_handover = true});
  EXPECT_FALSE(all.outcome.report.ok()) << all.outcome.report.text();
}

TEST(Restarts, EachOfThreeProcessesDiesAtEachStep) {
  const sim::WorldOptions options = fresh_world_options();
  SCOPED_TRACE(options.replay + std::to_string(options.seed));
  const RestartOutcome without = run_restarts(options, {});
  ASSERT_TRUE(without.outcome.report.ok()) << without.outcome.report.text();
  std::size_t without_outage = 0;
  for (std::size_t process = 0; process < without.steps.size(); ++process) {
    for (std::uint64_t step = 0; step < without.steps[process]; ++step) {
      const ProcessKill kill{.process = process, .step = step};
      const RestartOutcome all = run_restarts(options, {.kill = kill});
      ASSERT_TRUE(all.outcome.report.ok())
          << "process " << process << " at step " << step << ": " << all.outcome.report.text();
      EXPECT_EQ(all.outcome.injected_faults, 1U) << "process " << process << " at step " << step;
      without_outage += all.outage ? 0 : 1;
    }
  }
  // The checks have excused only the clients that the dead process had accepted.
  EXPECT_GT(without_outage, 10U);
}

}  // namespace
}  // namespace weir::simulate::restarts_test
