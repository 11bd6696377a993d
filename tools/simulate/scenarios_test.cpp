// Every scenario holds for seeds that nobody has tried. That one seed gives one run:
// processes_test.py.
#include "tools/simulate/scenarios.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weir/runtime/runtime.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/tcp.hpp"
#include "weir/sim/test/seed_fixture.hpp"

namespace weir::simulate {
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
  constexpr int seeds = 12;
  std::size_t answered = 0;
  for (int run = 0; run < seeds; ++run) {
    const Outcome outcome = scenario_.run(options_for(scenario_, fresh_seed()));
    ASSERT_TRUE(outcome.report.ok()) << outcome.report.text();
    answered += outcome.answered;
  }
  EXPECT_GT(answered, 0U);
}

INSTANTIATE_TEST_SUITE_P(All, Scenarios, testing::ValuesIn(names()),
                         [](const auto& scenario) { return scenario.param; });

TEST(Simulate, FaultsStrike) {
  for (const char* const name : {"faults", "memory", "routes", "services", "datagrams"}) {
    const Scenario& scenario = *find_scenario(name);
    std::uint64_t struck = 0;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      struck += scenario.run(options_for(scenario, seed)).struck;
    }
    EXPECT_GT(struck, 0U) << name;
  }
}

/// A World in which the server does so many operations in this run.
WorldOptions world_of(const HttpRun& run, std::uint64_t least, std::uint64_t most,
                      std::uint64_t& operations) {
  WorldOptions options;
  for (int tries = 0; tries < 100; ++tries) {
    options = fresh_world();
    const Outcome outcome = run_http(options, run);
    EXPECT_TRUE(outcome.report.ok()) << outcome.report.text();
    operations = outcome.operations;
    if (operations >= least && operations <= most) break;
  }
  return options;
}

TEST(Simulate, AFaultAtEveryOperationOfASmallRunInTurn) {
  const HttpRun small{.connections = 1, .requests_max = 4};
  std::uint64_t operations = 0;
  const WorldOptions options = world_of(small, 20, 80, operations);
  SCOPED_TRACE(options.replay + std::to_string(options.seed));
  EXPECT_GT(operations, 10U);
  for (const Fault fault : {Fault::reset, Fault::half_close, Fault::stall}) {
    for (std::uint64_t at = 0; at < operations; ++at) {
      HttpRun run = small;
      run.disturb = strike(at, fault);
      const Outcome outcome = run_http(options, run);
      ASSERT_TRUE(outcome.report.ok())
          << to_string(fault) << " at " << at << ": " << outcome.report.text();
      EXPECT_EQ(outcome.struck, 1U) << to_string(fault) << " at " << at;
    }
  }
}

TEST(Simulate, AcceptingFailsAtEachAcceptOfASmallRunInTurn) {
  const WorldOptions options = fresh_world();
  SCOPED_TRACE(options.replay + std::to_string(options.seed));
  const HttpRun small{.connections = 3, .requests_max = 2};
  // Two hosts of clients.
  for (std::uint64_t at = 0; at < 2 * small.connections; ++at) {
    HttpRun run = small;
    run.disturb = strike(at, Fault::accept_failure);
    const Outcome outcome = run_http(options, run);
    ASSERT_TRUE(outcome.report.ok()) << "at " << at << ": " << outcome.report.text();
    EXPECT_EQ(outcome.struck, 1U) << "at " << at;
  }
}

TEST(Simulate, AnAllocationOfASmallRunFailsInTurn) {
  const HttpRun small{.connections = 3, .requests_max = 3};
  std::uint64_t operations = 0;
  // A long streamed answer would be thousands of allocations, each of which is a run.
  const WorldOptions options = world_of(small, 20, 200, operations);
  SCOPED_TRACE(options.replay + std::to_string(options.seed));
  std::size_t all = 0;
  EXPECT_GT(allocations_to_begin(), 3U);
  EXPECT_LT(allocations_to_begin(), 20U);
  for (const unsigned core : {0U, 1U}) {
    std::size_t number = 0;
    for (bool struck = true; struck; ++number) {
      HttpRun run = small;
      run.disturb = fail_allocation(core, number);
      const Outcome outcome = run_http(options, run);
      struck = outcome.struck == 1;
      ASSERT_EQ(outcome.report.ok(), number >= allocations_to_begin())
          << "core " << core << ", allocation " << number << ": " << outcome.report.text();
    }
    EXPECT_GT(number, allocations_to_begin());
    all += number;
  }
  // One core may have got all connections.
  EXPECT_GT(all, 2 * allocations_to_begin() + 10);
}

TEST(Simulate, TheServerDrainsOrStopsAtEachTurnOfASmallRunInTurn) {
  HttpRun run{.connections = 1, .requests_max = 3};
  std::uint64_t operations = 0;
  const WorldOptions options = world_of(run, 10, 80, operations);
  SCOPED_TRACE(options.replay + std::to_string(options.seed));
  for (const int signals : {1, 2}) {
    std::uint64_t turns = 0;
    run.disturb = end_at_turn(0, 0, turns);
    const Outcome without = run_http(options, run);
    ASSERT_TRUE(without.report.ok()) << without.report.text();
    const std::uint64_t all = turns;
    EXPECT_GT(all, 20U);
    for (std::uint64_t at = 0; at < all; ++at) {
      run.disturb = end_at_turn(at, signals, turns);
      const Outcome outcome = run_http(options, run);
      ASSERT_TRUE(outcome.report.ok())
          << signals << " signals at turn " << at << ": " << outcome.report.text();
    }
  }
}

/// A server that closes every connection at once.
int serve_nobody(Host& host) {
  constexpr auto serve = [](Scope&) -> Task<Result<>> {
    auto listener = co_await tcp::listen(Endpoint::any(80));
    if (!listener) co_return fail(listener.error());
    for (;;) {
      auto peer = co_await listener->accept();
      if (!peer) co_return fail(peer.error());
    }
  };
  return Runtime(host, {.cores = 2, .announce = false}).run_on_each_core(serve);
}

// Whatever goes wrong, it excuses but those whom it hurts.
TEST(Simulate, AServerThatServesNobodyIsFound) {
  std::uint64_t turns = 0;
  const HttpRun runs[] = {
      {},
      {.disturb = faults_now_and_then},
      {.connections = 1, .disturb = strike(0, Fault::reset)},
      {.connections = 1, .disturb = strike(0, Fault::accept_failure)},
      {.disturb = cut_now_and_then},
      {.disturb = end_at_turn(1000, 1, turns)},
      {.disturb = fail_allocation(1, allocations_to_begin() + 20)},
      limits_run(),
  };
  for (std::size_t number = 0; number < std::size(runs); ++number) {
    int found = 0;
    for (int each = 0; each < 10; ++each) {
      HttpRun run = runs[number];
      run.serve = serve_nobody;
      const WorldReport report = run_http(fresh_world(), run).report;
      if (report.text().contains(": answered 0 of ")) ++found;
    }
    EXPECT_GT(found, 5) << "run " << number;
  }
}

TEST(Simulate, ConnectionsAreHandedOver) {
  const Scenario& scenario = *find_scenario("balance");
  EXPECT_GT(scenario.run(options_for(scenario, 1)).handed_over, 0U);
}

TEST(Simulate, EveryRequestIsAnsweredWhereNothingGoesWrong) {
  const Scenario& scenario = *find_scenario("http");
  const Outcome outcome = scenario.run(options_for(scenario, 1));
  EXPECT_TRUE(outcome.report.ok()) << outcome.report.text();
  EXPECT_EQ(outcome.struck, 0U);
  EXPECT_GT(outcome.answered, 20U);
}

}  // namespace
}  // namespace weir::simulate
