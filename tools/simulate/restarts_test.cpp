// Hot restarts hurt nobody, whoever of the processes dies at whichever step; and one that does hurt
// is found out.
#include "tools/simulate/restarts.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace weir::simulate {
namespace {

WorldOptions with_seed(std::uint64_t seed) {
  return options_for(*find_scenario("restarts"), seed);
}

TEST(Restarts, NewerProcessesServe) {
  const RestartOutcome all = run_restarts(with_seed(fresh_seed()), {});
  ASSERT_TRUE(all.outcome.report.ok()) << all.outcome.report.text();
  EXPECT_GT(all.outcome.answered, all.served_by_newer);
  EXPECT_GT(all.served_by_newer, 0U);
  for (const std::uint64_t steps : all.steps) EXPECT_GT(steps, 0U);
}

TEST(Restarts, AProcessThatJustEndsAndBeginsAgainIsFound) {
  const RestartOutcome all = run_restarts(with_seed(fresh_seed()), {.careless = true});
  EXPECT_FALSE(all.outcome.report.ok());
}

TEST(Restarts, EachOfThreeProcessesDiesAtEachStepInTurn) {
  const std::uint64_t seed = fresh_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const RestartOutcome without = run_restarts(with_seed(seed), {});
  ASSERT_TRUE(without.outcome.report.ok()) << without.outcome.report.text();
  std::size_t without_outage = 0;
  for (std::size_t process = 0; process < without.steps.size(); ++process) {
    for (std::uint64_t step = 0; step < without.steps[process]; ++step) {
      const RestartDeath death{.process = process, .step = step};
      const RestartOutcome all = run_restarts(with_seed(seed), {.death = death});
      ASSERT_TRUE(all.outcome.report.ok())
          << "process " << process << " at step " << step << ": " << all.outcome.report.text();
      EXPECT_EQ(all.outcome.struck, 1U) << "process " << process << " at step " << step;
      without_outage += all.outage ? 0 : 1;
    }
  }
  // The checks have excused but those whom the dead process had accepted.
  EXPECT_GT(without_outage, 10U);
}

}  // namespace
}  // namespace weir::simulate
