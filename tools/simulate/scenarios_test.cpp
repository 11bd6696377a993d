// Tests that every scenario holds for fresh seeds. processes_test.py tests that equal seeds give
// equal runs.
#include "tools/simulate/scenarios.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/task/test/sweep_budget.hpp"

namespace weir::simulate::scenarios_test {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Scenario& each : scenarios()) names.emplace_back(each.name);
  return names;
}

class Scenarios : public testing::TestWithParam<std::string> {
 protected:
  const Scenario& scenario_ = *find_scenario(GetParam());
};

TEST_P(Scenarios, HoldsForFreshSeeds) {
  // A client of websocket_cuts vanishes before the first answer in about half of the runs.
  constexpr int seeds = 12, seeds_until_answered = 50;
  std::size_t answered = 0;
  const SweepBudget budget;
  const auto needs_another = [&](int runs) {
    return answered == 0 ? runs < seeds_until_answered : runs < seeds && !budget.spent();
  };
  for (int runs = 0; needs_another(runs); ++runs) {
    const Outcome outcome = scenario_.run(options_for(scenario_, sim::fresh_seed()));
    ASSERT_TRUE(outcome.report.ok()) << outcome.report.text();
    answered += outcome.answered;
  }
  EXPECT_GT(answered, 0U);
}

INSTANTIATE_TEST_SUITE_P(All, Scenarios, testing::ValuesIn(names()),
                         [](const auto& scenario) { return scenario.param; });

TEST(Simulate, InjectsFaults) {
  for (const char* const name : {"faults", "memory", "routes", "services", "datagrams"}) {
    const Scenario& scenario = *find_scenario(name);
    std::uint64_t injected_faults = 0;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      injected_faults += scenario.run(options_for(scenario, seed)).injected_faults;
    }
    EXPECT_GT(injected_faults, 0U) << name;
  }
}

/// Returns the options of a World in which the server makes `least` to `most` operations in this
/// run.
sim::WorldOptions world_of(const HttpRun& run, std::uint64_t least, std::uint64_t most,
                           std::uint64_t& operations) {
  sim::WorldOptions options;
  for (int tries = 0; tries < 100; ++tries) {
    options = fresh_world_options();
    const Outcome outcome = run_http(options, run);
    EXPECT_TRUE(outcome.report.ok()) << outcome.report.text();
    operations = outcome.operations;
    if (operations >= least && operations <= most) break;
  }
  return options;
}

TEST(Simulate, SurvivesAFaultAtAnyOperation) {
  const HttpRun small{.connections = 1, .requests_max = 4};
  std::uint64_t operations = 0;
  const sim::WorldOptions options = world_of(small, 20, 80, operations);
  SCOPED_TRACE(options.replay + std::to_string(options.seed));
  EXPECT_GT(operations, 10U);
  for (const sim::Fault fault : {sim::Fault::reset, sim::Fault::half_close, sim::Fault::stall}) {
    for (std::uint64_t at = 0; at < operations; ++at) {
      HttpRun run = small;
      run.fault_schedule = inject_fault(at, fault);
      const Outcome outcome = run_http(options, run);
      ASSERT_TRUE(outcome.report.ok())
          << to_string(fault) << " at " << at << ": " << outcome.report.text();
      EXPECT_EQ(outcome.injected_faults, 1U) << to_string(fault) << " at " << at;
    }
  }
}

TEST(Simulate, SurvivesAFailureOfAnyAccept) {
  const sim::WorldOptions options = fresh_world_options();
  SCOPED_TRACE(options.replay + std::to_string(options.seed));
  const HttpRun small{.connections = 3, .requests_max = 2};
  // The run has two hosts of clients.
  for (std::uint64_t at = 0; at < 2 * small.connections; ++at) {
    HttpRun run = small;
    run.fault_schedule = inject_fault(at, sim::Fault::accept_failure);
    const Outcome outcome = run_http(options, run);
    ASSERT_TRUE(outcome.report.ok()) << "at " << at << ": " << outcome.report.text();
    EXPECT_EQ(outcome.injected_faults, 1U) << "at " << at;
  }
}

TEST(Simulate, SurvivesAFailureOfAnyAllocationOnceItServes) {
  const HttpRun small{.connections = 3, .requests_max = 3};
  std::uint64_t operations = 0;
  // A long streamed response has thousands of allocations, and each costs a run.
  const sim::WorldOptions options = world_of(small, 20, 200, operations);
  SCOPED_TRACE(options.replay + std::to_string(options.seed));
  std::size_t all = 0;
  EXPECT_GT(allocations_to_begin(), 3U);
  EXPECT_LT(allocations_to_begin(), 20U);
  for (const unsigned core : {0U, 1U}) {
    std::size_t number = 0;
    for (bool injected_faults = true; injected_faults; ++number) {
      HttpRun run = small;
      run.fault_schedule = fail_allocation(core, number);
      const Outcome outcome = run_http(options, run);
      injected_faults = outcome.injected_faults == 1;
      ASSERT_EQ(outcome.report.ok(), number >= allocations_to_begin())
          << "core " << core << ", allocation " << number << ": " << outcome.report.text();
    }
    EXPECT_GT(number, allocations_to_begin());
    all += number;
  }
  // One core may have accepted all connections.
  EXPECT_GT(all, 2 * allocations_to_begin() + 10);
}

TEST(Simulate, DrainsOrStopsAtAnyTurn) {
  HttpRun run{.connections = 1, .requests_max = 3};
  std::uint64_t operations = 0;
  const sim::WorldOptions options = world_of(run, 10, 80, operations);
  SCOPED_TRACE(options.replay + std::to_string(options.seed));
  for (const int signals : {1, 2}) {
    std::uint64_t turns = 0;
    run.fault_schedule = drain_at_turn(0, 0, turns);
    const Outcome without = run_http(options, run);
    ASSERT_TRUE(without.report.ok()) << without.report.text();
    const std::uint64_t all = turns;
    EXPECT_GT(all, 20U);
    for (std::uint64_t at = 0; at < all; ++at) {
      run.fault_schedule = drain_at_turn(at, signals, turns);
      const Outcome outcome = run_http(options, run);
      ASSERT_TRUE(outcome.report.ok())
          << signals << " signals at turn " << at << ": " << outcome.report.text();
    }
  }
}

/// A server that closes every connection immediately.
int serve_no_client(loop::Platform& host) {
  constexpr auto serve = [](Scope&) -> Task<Result<>> {
    WEIR_CO_TRY(auto listener, co_await tcp::listen(Endpoint::any(80)));
    for (;;) {
      WEIR_CO_TRY(auto peer, co_await listener.accept());
    }
  };
  return Runtime(host, {.cores = 2, .announce = false}).run_on_each_core(serve);
}

// Checks that a fault only excuses the connections that it affects.
TEST(Simulate, DetectsAServerThatServesNoClient) {
  std::uint64_t turns = 0;
  const HttpRun runs[] = {
      {},
      {.fault_schedule = random_faults},
      {.connections = 1, .fault_schedule = inject_fault(0, sim::Fault::reset)},
      {.connections = 1, .fault_schedule = inject_fault(0, sim::Fault::accept_failure)},
      {.fault_schedule = random_partitions},
      {.fault_schedule = drain_at_turn(1000, 1, turns)},
      {.fault_schedule = fail_allocation(1, allocations_to_begin() + 20)},
      limits_run(),
  };
  for (std::size_t number = 0; number < std::size(runs); ++number) {
    int found = 0;
    for (int each = 0; each < 10; ++each) {
      HttpRun run = runs[number];
      run.serve = serve_no_client;
      const sim::WorldReport report = run_http(fresh_world_options(), run).report;
      if (report.text().contains(": answered 0 of ")) ++found;
    }
    EXPECT_GT(found, 5) << "run " << number;
  }
}

TEST(Simulate, HandsConnectionsOver) {
  const Scenario& scenario = *find_scenario("balance");
  EXPECT_GT(scenario.run(options_for(scenario, 1)).handed_over, 0U);
}

TEST(Simulate, AnswersEveryRequestWithoutFaults) {
  const Scenario& scenario = *find_scenario("http");
  const Outcome outcome = scenario.run(options_for(scenario, 1));
  EXPECT_TRUE(outcome.report.ok()) << outcome.report.text();
  EXPECT_EQ(outcome.injected_faults, 0U);
  EXPECT_GT(outcome.answered, 20U);
}

}  // namespace
}  // namespace weir::simulate::scenarios_test
