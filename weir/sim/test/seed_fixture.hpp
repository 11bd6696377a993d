// Seeds of random tests, and Worlds with a replay command. This file is for tests only.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "weir/sim/detail/world_state.hpp"

namespace weir {

/// Returns a new seed each time. It returns the number of --gtest_random_seed, if set, each time,
/// so a test of many seeds begins with it. The seed fits into that flag.
inline std::uint64_t test_seed() {
  const auto asked = GTEST_FLAG_GET(random_seed);
  return asked > 0 ? static_cast<std::uint64_t>(asked) : sim::fresh_seed() % INT32_MAX + 1;
}

/// Returns the command that runs the current test again; the seed is appended.
inline std::string test_replay() {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const char* const budget = std::getenv("WEIR_SWEEP_SECONDS");  // decides what runs: SweepBudget
  const std::string setting =
      budget == nullptr ? "" : "WEIR_SWEEP_SECONDS=" + std::string(budget) + " ";
  return setting + std::filesystem::read_symlink("/proc/self/exe").string() +
         " --gtest_filter=" + test.test_suite_name() + "." + test.name() + " --gtest_random_seed=";
}

/// Returns the options of a World with a new seed and the replay command of the current test.
inline sim::WorldOptions fresh_world_options() {
  sim::WorldOptions options{.seed = test_seed()};
  options.replay = test_replay();
  return options;
}

}  // namespace weir
