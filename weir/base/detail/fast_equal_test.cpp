#include "weir/base/detail/fast_equal.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

TEST(SameText, SeesEveryByteOfEveryLength) {
  EXPECT_TRUE(same_text({}, {}));
  for (std::size_t size = 1; size <= 40; ++size) {
    const std::string text(size, 'x');
    EXPECT_TRUE(same_text(text, std::string(text))) << size;
    EXPECT_FALSE(same_text(text, text + "x")) << size;
    EXPECT_FALSE(same_text(text, std::string_view(text).substr(1))) << size;
    for (std::size_t place = 0; place < size; ++place) {
      std::string other = text;
      other[place] = '\0';
      EXPECT_FALSE(same_text(text, other)) << size << " at " << place;
    }
  }
}

}  // namespace
}  // namespace weir
