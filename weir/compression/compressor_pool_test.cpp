// Tests of the compressors of a core: whole contents, reuse, the bound of borrowed ones.
#include "weir/compression/compressor_pool.hpp"

#include "weir/compression/test/contents_fixture.hpp"

namespace weir::compression::compressor_pool_test {
namespace {

TEST(CompressorPool, CompressesWholeContents) {
  CompressorPool pool;
  const std::string contents[] = {
      "", "a", words(1000), words(10'000), words(1'000'000), noise(100'000)};
  for (const Coding coding : available_codings()) {
    for (int level = 1; level <= 9; ++level) {
      for (const std::string& content : contents) {
        const auto data = pool.compress({coding, level}, to_bytes(content));
        ASSERT_TRUE(data.has_value());
        EXPECT_EQ(decompressed(coding, data->text()), content) << name_of(coding) << level;
      }
    }
  }
  EXPECT_EQ(pool.contents(), 9 * std::size(contents) * available_codings().size());
  EXPECT_LE(pool.idle(), CompressorPool::idle_max);
}

TEST(CompressorPool, ReusesABorrowedCompressor) {
  CompressorPool pool;
  for (const Coding coding : available_codings()) {
    const CodingLevel level{coding, 1};
    std::string first;
    for (int round = 0; round < 3; ++round) {
      auto borrowed = pool.borrow(level, 1);
      ASSERT_TRUE(borrowed.has_value());
      EXPECT_EQ(pool.borrowed(), 1u);
      const std::string data = compressed(**borrowed, words(3000));
      if (round == 0) first = data;
      EXPECT_EQ(data, first);
    }
    EXPECT_EQ(pool.borrowed(), 0u);
  }
  EXPECT_EQ(pool.idle(), available_codings().size());
}

TEST(CompressorPool, RefusesMoreThanItsBound) {
  if (!is_available(Coding::gzip)) GTEST_SKIP() << "the build is without zlib";
  CompressorPool pool;
  const CodingLevel level{Coding::gzip, 1};
  auto first = pool.borrow(level, 2);
  {
    const auto second = pool.borrow(level, 2);
    ASSERT_TRUE(second.has_value());
    EXPECT_EQ(pool.borrow(level, 2).error(), Errc::limit_reached);
    EXPECT_EQ(pool.refusals(), 1u);
  }
  EXPECT_TRUE(pool.borrow(level, 2).has_value());
  EXPECT_EQ(pool.refusals(), 1u);
}

TEST(CompressorPool, RejectsLevelsThatDoNotExist) {
  CompressorPool pool;
  EXPECT_EQ(pool.compress({Coding::identity, 1}, {}).error(), Errc::bad_configuration);
  EXPECT_EQ(pool.borrow({Coding::identity, 1}, 1).error(), Errc::bad_configuration);
  EXPECT_EQ(pool.borrowed(), 0u);
}

}  // namespace
}  // namespace weir::compression::compressor_pool_test
