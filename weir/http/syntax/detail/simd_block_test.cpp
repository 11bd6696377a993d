// Tests of SimdBlock and find_stop().
#include "weir/http/syntax/detail/simd_block.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <memory>
#include <string>

namespace weir::http::simd_block_test {
namespace {

TEST(SimdBlock, ClassifiesEveryByteAtEveryPositionLikeTheTable) {
  for (std::size_t place = 0; place < SimdBlock::size; ++place) {
    for (int each = 0; each < 256; ++each) {
      std::array<char, SimdBlock::size> bytes;
      bytes.fill('a');
      bytes[place] = static_cast<char>(each);
      const SimdBlock block(bytes.data());
      const unsigned bit = 1U << place;
      EXPECT_EQ(block.not_target(), is_in(bytes[place], CharClass::target) ? 0 : bit) << each;
      const bool value = is_in(bytes[place], CharClass::value) && each != '\t';
      EXPECT_EQ(block.controls(), value ? 0 : bit) << each;
      EXPECT_EQ(block.equal_to('?'), each == '?' ? bit : 0) << each;
      const bool plain = each == '-' || (each < 128 && std::isalnum(each) != 0);
      const bool token = is_in(bytes[place], CharClass::token);
      if (plain || !token) {
        EXPECT_EQ(block.not_plain_name(), plain ? 0 : bit) << each;
      }
      const bool lower = to_lower(bytes[place]) == bytes[place];
      if (plain || !token || !lower) {
        EXPECT_EQ(block.not_lower_name(), plain && lower ? 0 : bit) << each;
      }
      const bool path = plain || each == '/' || each == '_';
      EXPECT_EQ(block.not_plain_path(), path ? 0 : bit) << each;
      const bool host = is_in(bytes[place], CharClass::host);
      if (plain || each == '.' || !host) {
        EXPECT_EQ(block.not_plain_host(), host ? 0 : bit) << each;
      }
    }
  }
}

TEST(SimdBlock, FindStopFindsTheFirstStopInsideTheRange) {
  const auto stops = [](SimdBlock block) { return block.equal_to('!'); };
  for (std::size_t size = 0; size <= 50; ++size) {
    // The copy has exactly the size of the bytes, so that the address sanitizer detects every
    // overrun.
    const std::unique_ptr<char[]> bytes(new char[size]);
    for (std::size_t from = 0; from <= size; ++from) {
      for (std::size_t stop = 0; stop <= size; ++stop) {
        for (std::size_t each = 0; each < size; ++each) {
          bytes[each] = each < from || each >= stop ? '!' : 'a';
        }
        const char* const found =
            find_stop(bytes.get(), bytes.get() + from, bytes.get() + size, stops);
        EXPECT_EQ(found - bytes.get(), static_cast<std::ptrdiff_t>(std::max(from, stop)));
      }
    }
  }
}

}  // namespace
}  // namespace weir::http::simd_block_test
