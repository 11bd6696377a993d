// Tests of base64.
#include "weir/base/detail/base64.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace weir {
namespace {

std::string base64(std::string_view text) {
  std::string out(base64_size(text.size()), '?');
  EXPECT_EQ(write_base64(to_bytes(text), out.data()), out.data() + out.size());
  return out;
}

TEST(Base64, WritesTheVectorsOfTheRfc) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

TEST(Base64, UsesAllCharacters) {
  std::string bytes;  // the six bits of each value in order
  for (unsigned value = 0; value < 64; value += 4) {
    const unsigned group = value << 18 | (value + 1) << 12 | (value + 2) << 6 | (value + 3);
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(group >> shift);
  }
  EXPECT_EQ(base64(bytes), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
}

}  // namespace
}  // namespace weir
