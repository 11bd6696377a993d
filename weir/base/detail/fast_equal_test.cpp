#include "weir/base/detail/fast_equal.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::fast_equal_test {
namespace {

TEST(FastEqual, ComparesEveryByteOfEveryLength) {
  EXPECT_TRUE(fast_equal({}, {}));
  for (std::size_t size = 1; size <= 40; ++size) {
    const std::string text(size, 'x');
    EXPECT_TRUE(fast_equal(text, std::string(text))) << size;
    EXPECT_FALSE(fast_equal(text, text + "x")) << size;
    EXPECT_FALSE(fast_equal(text, std::string_view(text).substr(1))) << size;
    for (std::size_t place = 0; place < size; ++place) {
      std::string other = text;
      other[place] = '\0';
      EXPECT_FALSE(fast_equal(text, other)) << size << " at " << place;
    }
  }
}

}  // namespace
}  // namespace weir::fast_equal_test
