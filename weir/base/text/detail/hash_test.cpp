// Tests of the hash of bytes.
#include "weir/base/text/detail/hash.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <memory>
#include <set>
#include <string>

namespace weir::hash_test {
namespace {

TEST(Hash, DiffersForEachLengthAndSeed) {
  std::set<std::uint64_t> seen;
  for (std::size_t size = 0; size < 200; ++size) {
    for (const std::uint64_t seed : {0U, 1U, 2U}) {
      const Hash128 hash = hash_bytes(std::string(size, '\0'), seed);
      EXPECT_TRUE(seen.insert(hash.low).second);
      EXPECT_TRUE(seen.insert(hash.high).second);
    }
  }
}

TEST(Hash, EachBitChangesHalfOfTheHash) {
  for (const std::size_t size : {1U, 7U, 8U, 9U, 15U, 16U, 17U, 31U, 32U, 100U}) {
    std::string text(size, 'x');
    const Hash128 before = hash_bytes(text, 7);
    int changed = 0;
    for (std::size_t bit = 0; bit < size * 8; ++bit) {
      char& each = text[bit / 8];
      each = static_cast<char>(each ^ (1 << (bit % 8)));
      const Hash128 after = hash_bytes(text, 7);
      each = static_cast<char>(each ^ (1 << (bit % 8)));
      const int low = std::popcount(before.low ^ after.low);
      const int high = std::popcount(before.high ^ after.high);
      EXPECT_GT(low, 8) << size << " " << bit;
      EXPECT_GT(high, 8) << size << " " << bit;
      changed += low + high;
    }
    const double share = changed / (static_cast<double>(size) * 8 * 128);
    EXPECT_NEAR(share, 0.5, 0.04) << size;
  }
}

TEST(Hash, ReadsOnlyTheText) {
  for (std::size_t size = 0; size < 40; ++size) {
    const std::unique_ptr<char[]> exact(new char[size]());
    EXPECT_EQ(hash_bytes({exact.get(), size}, 1), hash_bytes(std::string(size, '\0'), 1));
  }
}

TEST(Hash, IsTheSameInEveryRelease) {
  EXPECT_EQ(hash_bytes("weir", 0).low, 9960055788696041954U);
}

}  // namespace
}  // namespace weir::hash_test
