// Tests of the comparison of secrets.
#include "weir/base/text/detail/constant_time.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace weir::constant_time_test {
namespace {

TEST(ConstantTime, FindsADifferenceInEachBit) {
  const std::string secret = "a secret of 23 bytes !!";
  EXPECT_TRUE(constant_time_equal(secret, std::string(secret)));
  for (std::size_t at = 0; at < secret.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = secret;
      other[at] = static_cast<char>(other[at] ^ (1 << bit));
      EXPECT_FALSE(constant_time_equal(secret, other)) << at << " " << bit;
    }
  }
}

TEST(ConstantTime, TellsSizesApart) {
  EXPECT_TRUE(constant_time_equal("", ""));
  EXPECT_FALSE(constant_time_equal("a", ""));
  EXPECT_FALSE(constant_time_equal("ab", "abc"));
  EXPECT_FALSE(constant_time_equal(std::string(1, '\0'), ""));
}

}  // namespace
}  // namespace weir::constant_time_test
