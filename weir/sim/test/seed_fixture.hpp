// Seeds of random tests, and Worlds that say how to run them again. Included by tests only.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "weir/testing/world_state.hpp"

namespace weir {

/// New each time, unless --gtest_random_seed asks for one: then that one each time, so that a test
/// of many seeds begins with it. Fits into that flag.
inline std::uint64_t test_seed() {
  const auto asked = GTEST_FLAG_GET(random_seed);
  return asked > 0 ? static_cast<std::uint64_t>(asked) : fresh_seed() % INT32_MAX + 1;
}

/// The command that runs the test that runs now again, to which the seed is added.
inline std::string test_replay() {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  return std::filesystem::read_symlink("/proc/self/exe").string() +
         " --gtest_filter=" + test.test_suite_name() + "." + test.name() + " --gtest_random_seed=";
}

/// A seed that nobody has tried before, and its replay.
inline WorldOptions fresh_world() {
  WorldOptions options{.seed = test_seed()};
  options.replay = test_replay();
  return options;
}

}  // namespace weir
