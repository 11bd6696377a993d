// Tests that random bits fill every byte and do not repeat.
#include "weir/os/detail/io/random.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace weir::os::random_test {
namespace {

TEST(Random, DoesNotRepeat) {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random_bits());
  EXPECT_EQ(seen.size(), 1000u);  // fails once in 10^13 runs
}

TEST(Random, FillsExactlyTheGivenBytes) {
  std::array<std::byte, 64> bytes{};
  std::array<bool, 64> changed{};
  for (int round = 0; round < 32; ++round) {
    fill_random(std::span(bytes).subspan(1, 62));
    for (std::size_t i = 0; i < bytes.size(); ++i) changed[i] |= bytes[i] != std::byte{0};
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(changed[i], i != 0 && i != 63) << i;
}

}  // namespace
}  // namespace weir::os::random_test
