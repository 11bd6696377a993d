// The seed of a random test: new each time, printed, and taken back.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

namespace weir::tests {

/// New each time, unless --gtest_random_seed asks for one.
inline std::uint32_t choose_seed() {
  const int asked = testing::UnitTest::GetInstance()->random_seed();
  return asked != 0 ? static_cast<std::uint32_t>(asked) : std::random_device()() % 99999 + 1;
}

/// For SCOPED_TRACE.
inline std::string replay_of(std::uint32_t seed) {
  return "replay with --gtest_random_seed=" + std::to_string(seed);
}

}  // namespace weir::tests
