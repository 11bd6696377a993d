// Tests the measurement of the memory of processes.
#include "tools/weir/process_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace weir::bench::process_memory_test {
namespace {

TEST(ProcessMemory, GrowsWithWhatAProcessUses) {
  const std::array own{static_cast<int>(::getpid())};
  const auto before = process_memory(own);
  ASSERT_TRUE(before);
  EXPECT_GT(*before, 1024U * 1024);
  constexpr std::size_t size = 64U * 1024 * 1024;
  std::vector<char> used(size);
  std::ranges::fill(used, '\1');
  const auto after = process_memory(own);
  ASSERT_TRUE(after);
  EXPECT_GT(*after, *before + size / 2);
  EXPECT_LT(*after, *before + 4 * size);
}

TEST(ProcessMemory, IsTheSumOfAllProcesses) {
  const int own = static_cast<int>(::getpid());
  const auto one = process_memory(std::array{own});
  const auto two = process_memory(std::array{own, own});
  ASSERT_TRUE(one && two);
  EXPECT_GT(*two, *one + *one / 2);
  EXPECT_EQ(process_memory({}), 0U);
}

TEST(ProcessMemory, NeedsAProcess) {
  EXPECT_EQ(process_memory(std::array{1'073'741'824}).error(), Errc::not_found);
}

}  // namespace
}  // namespace weir::bench::process_memory_test
