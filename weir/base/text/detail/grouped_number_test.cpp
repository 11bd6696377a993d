#include "weir/base/text/detail/grouped_number.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace weir::detail::grouped_number_test {
namespace {

TEST(GroupedNumber, HasACommaBeforeEachGroupOfThreeDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1'000), "1,000");
  EXPECT_EQ(grouped(123'456), "123,456");
  EXPECT_EQ(grouped(std::numeric_limits<std::uint64_t>::max()), "18,446,744,073,709,551,615");
}

}  // namespace
}  // namespace weir::detail::grouped_number_test
