// Tests of the free blocks that a pool keeps. Each sets the limit, so that they hold under the
// address sanitizer too, where a pool usually keeps none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "weir/base/detail/block_pool.hpp"

namespace weir::block_pool_cache_test {
namespace {

/// A pool that keeps free blocks, and is the current one.
class BlockPoolCache : public testing::Test {
 protected:
  BlockPoolCache() : use_(pool_) { pool_.set_cache_limit(BlockPool::cached_bytes_max); }

  BlockPool pool_;

 private:
  const ScopedBlockPool use_;
};

TEST_F(BlockPoolCache, TrimFreesTheLargestBlocksFirst) {
  constexpr std::size_t large = 16'384;
  std::vector<void*> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(BlockPool::allocate(large));
  for (int i = 0; i < 10; ++i) blocks.push_back(BlockPool::allocate(1032));
  EXPECT_EQ(pool_.surplus_bytes(), 0U);
  for (void* block : blocks) BlockPool::release(block);
  EXPECT_EQ(pool_.surplus_bytes(), 40 * large + 10 * 1032 - BlockPool::idle_bytes);
  pool_.trim(3 * large - 1);
  EXPECT_EQ(pool_.cached_bytes(), 38 * large) << "then smaller ones";
  pool_.trim(large);
  EXPECT_EQ(pool_.cached_bytes(), 37 * large);
  pool_.trim(pool_.surplus_bytes());
  EXPECT_EQ(pool_.cached_bytes(), BlockPool::idle_bytes);
  EXPECT_EQ(pool_.surplus_bytes(), 0U);
}

TEST_F(BlockPoolCache, SurplusIsAtLeastABlockOfAnySize) {
  std::vector<void*> blocks;
  for (std::size_t bytes = 0; bytes < BlockPool::idle_bytes + BlockPool::block_max; bytes += 2048) {
    blocks.push_back(BlockPool::allocate(2048));
  }
  BlockPool::release(blocks.back());
  for (std::size_t i = 0; i + 2 < blocks.size(); ++i) BlockPool::release(blocks[i]);
  EXPECT_EQ(pool_.surplus_bytes(), 0U) << "trim() might free nothing";
  BlockPool::release(blocks[blocks.size() - 2]);
  EXPECT_EQ(pool_.surplus_bytes(), BlockPool::block_max);
}

TEST_F(BlockPoolCache, TrimFreesALimitedNumberOfBlocks) {
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < BlockPool::trimmed_blocks_max + 7; ++i) {
    blocks.push_back(BlockPool::allocate(24));
  }
  for (void* block : blocks) BlockPool::release(block);
  EXPECT_EQ(pool_.trim(pool_.cached_bytes()), 7U * 24);
  EXPECT_EQ(pool_.cached_bytes(), 7U * 24);
  EXPECT_EQ(pool_.trim(7U * 24), 0U);
  EXPECT_EQ(pool_.cached_bytes(), 0U);
}

TEST_F(BlockPoolCache, PrefaultedBlocksAreNoSurplus) {
  pool_.prefault(4 << 20);
  EXPECT_GT(pool_.cached_bytes(), BlockPool::idle_bytes);
  EXPECT_EQ(pool_.surplus_bytes(), 0U);
}

TEST_F(BlockPoolCache, BlocksHaveTheSmallestSizeThatFits) {
  struct {
    std::size_t requested;
    std::size_t kept;
  } const cases[] = {{0, 8},         {1, 8},         {8, 8},         {9, 24},        {24, 24},
                     {25, 40},       {40, 40},       {1016, 1016},   {1017, 1032},   {1031, 1032},
                     {1032, 1032},   {1033, 2048},   {2047, 2048},   {2048, 2048},   {2049, 4096},
                     {4096, 4096},   {4097, 8192},   {8192, 8192},   {8193, 16384},  {16384, 16384},
                     {16385, 32768}, {32768, 32768}, {32769, 65536}, {65535, 65536}, {65536, 65536},
                     {65537, 0},     {1'000'000, 0}};
  for (const auto& each : cases) {
    SCOPED_TRACE(each.requested);
    BlockPool pool;
    pool.set_cache_limit(BlockPool::cached_bytes_max);
    const ScopedBlockPool use(pool);
    void* const block = BlockPool::allocate(each.requested);
    std::memset(block, 1, each.requested);
    EXPECT_EQ(pool.blocks_in_use(), each.kept == 0 ? 0U : 1U);
    BlockPool::release(block);
    EXPECT_EQ(pool.cached_bytes(), each.kept);
    EXPECT_EQ(pool.blocks_in_use(), 0U);
  }
}

TEST_F(BlockPoolCache, ABlockIsReusedForEveryRequestOfItsSize) {
  void* const block = BlockPool::allocate(25);
  BlockPool::release(block);
  EXPECT_EQ(pool_.cached_bytes(), 40U);
  void* const other = BlockPool::allocate(24);
  EXPECT_NE(other, block);
  EXPECT_EQ(pool_.cached_bytes(), 40U) << "a block of another size";
  void* const again = BlockPool::allocate(40, BlockUse::frame);
  EXPECT_EQ(again, block);
  EXPECT_EQ(pool_.cached_bytes(), 0U);
  EXPECT_EQ(pool_.blocks_in_use(BlockUse::frame), 1U);
  EXPECT_EQ(pool_.blocks_in_use(BlockUse::other), 1U);
  BlockPool::release(again);
  EXPECT_EQ(pool_.blocks_in_use(BlockUse::frame), 0U) << "the use of its last allocation";
  BlockPool::release(other);
  EXPECT_EQ(pool_.cached_bytes(), 64U);
}

TEST_F(BlockPoolCache, TheBlockThatWasReleasedLastIsReusedFirst) {
  std::vector<void*> blocks;
  for (int each = 0; each < 4; ++each) blocks.push_back(BlockPool::allocate(72));
  for (void* const block : blocks) BlockPool::release(block);
  EXPECT_EQ(pool_.cached_bytes(), 288U);
  for (std::size_t at = blocks.size(); at-- > 0;) {
    EXPECT_EQ(BlockPool::allocate(72), blocks[at]);
    EXPECT_EQ(pool_.cached_bytes(), 72 * at);
  }
  EXPECT_EQ(pool_.blocks_in_use(), 4U);
  for (void* const block : blocks) BlockPool::release(block);
}

TEST_F(BlockPoolCache, KeepsExactlyItsLimit) {
  for (const std::size_t limit : {0U, 23U, 24U, 25U, 47U, 48U, 71U, 72U, 100U}) {
    SCOPED_TRACE(limit);
    BlockPool pool;
    pool.set_cache_limit(limit);
    const ScopedBlockPool use(pool);
    std::vector<void*> blocks;
    for (int each = 0; each < 3; ++each) blocks.push_back(BlockPool::allocate(24));
    for (void* const block : blocks) BlockPool::release(block);
    EXPECT_EQ(pool.cached_bytes(), std::min<std::size_t>(limit, 72) / 24 * 24);
    EXPECT_EQ(pool.blocks_in_use(), 0U);
  }
}

TEST_F(BlockPoolCache, ForeignReleasesAreReusedWhenAFreeListIsEmpty) {
  std::vector<void*> blocks;
  for (int each = 0; each < 3; ++each) blocks.push_back(BlockPool::allocate(100));
  void* const large = BlockPool::allocate(5000, BlockUse::buffer);
  std::thread([&] {
    for (void* const block : blocks) BlockPool::release(block);
    BlockPool::release(large);
  }).join();
  EXPECT_EQ(pool_.cached_bytes(), 0U);
  EXPECT_EQ(pool_.blocks_in_use(), 4U);
  void* const next = BlockPool::allocate(100);
  EXPECT_EQ(std::erase(blocks, next), 1U);
  EXPECT_EQ(pool_.cached_bytes(), 2 * 104U + 8192U);
  EXPECT_EQ(pool_.blocks_in_use(), 1U);
  BlockPool::release(next);
}

TEST_F(BlockPoolCache, FreesItsBlocksBeforeAFailureAndKeepsBlocksAgainAfterwards) {
  for (int each = 0; each < 2; ++each) {
    BlockPool::release(BlockPool::allocate(100));
    EXPECT_EQ(pool_.cached_bytes(), 104U);
    pool_.fail_after(1);
    EXPECT_EQ(pool_.cached_bytes(), 0U);
    BlockPool::release(BlockPool::allocate(100));
    EXPECT_EQ(pool_.cached_bytes(), 0U) << "a block that is kept would not be counted";
    EXPECT_TRUE(pool_.will_fail());
    EXPECT_THROW(BlockPool::allocate(100), std::bad_alloc);
    EXPECT_EQ(pool_.blocks_in_use(), 0U);
  }
  BlockPool::release(BlockPool::allocate(100));
  EXPECT_EQ(pool_.cached_bytes(), 104U);
}

TEST_F(BlockPoolCache, PrefaultsOneBlockOfEachSizeAtLeast) {
  pool_.prefault(0);
  EXPECT_EQ(pool_.blocks_in_use(), 0U);
  std::vector<std::size_t> sizes;
  for (std::size_t size = 8; size <= 1032; size += 16) sizes.push_back(size);
  for (std::size_t size = 2048; size <= BlockPool::block_max; size *= 2) sizes.push_back(size);
  std::size_t left = 0;
  for (const std::size_t size : sizes) left += size;
  EXPECT_EQ(pool_.cached_bytes(), left);
  std::vector<void*> blocks;
  for (const std::size_t size : sizes) {
    blocks.push_back(BlockPool::allocate(size));
    std::memset(blocks.back(), 1, size);
    left -= size;
    EXPECT_EQ(pool_.cached_bytes(), left) << size;
  }
  EXPECT_EQ(pool_.blocks_in_use(), sizes.size());
  for (void* const block : blocks) BlockPool::release(block);
}

TEST_F(BlockPoolCache, PrefaultsEqualPartsForEachSize) {
  constexpr std::size_t sizes = 71;
  pool_.prefault(sizes * 3000);
  struct {
    std::size_t size;
    std::size_t count;
  } const cases[] = {{24, 125}, {40, 75}, {1032, 2}, {2048, 1}, {4096, 1}, {65536, 1}};
  std::vector<void*> blocks;
  for (const auto& each : cases) {
    SCOPED_TRACE(each.size);
    std::size_t before = pool_.cached_bytes();
    for (std::size_t block = 0; block < each.count; ++block) {
      blocks.push_back(BlockPool::allocate(each.size));
      before -= each.size;
      ASSERT_EQ(pool_.cached_bytes(), before);
    }
    blocks.push_back(BlockPool::allocate(each.size));
    EXPECT_EQ(pool_.cached_bytes(), before) << "the next comes from the heap";
  }
  for (void* const block : blocks) BlockPool::release(block);
}

TEST_F(BlockPoolCache, PrefaultKeepsWhatMemoryAllows) {
  pool_.fail_after(3);
  pool_.set_cache_limit(BlockPool::cached_bytes_max);
  pool_.prefault(0);
  EXPECT_FALSE(pool_.will_fail());
  EXPECT_EQ(pool_.blocks_in_use(), 0U);
  std::size_t all = 0;
  for (std::size_t size = 8; size <= 1032; size += 16) all += size;
  for (std::size_t size = 2048; size <= BlockPool::block_max; size *= 2) all += size;
  EXPECT_EQ(pool_.cached_bytes(), all - 56) << "without the fourth size";
}

TEST_F(BlockPoolCache, PrefaultDoesNothingIfFreeBlocksAreNotKept) {
  pool_.set_cache_limit(0);
  pool_.fail_after(0);
  pool_.prefault(1000);
  EXPECT_TRUE(pool_.will_fail()) << "nothing was allocated";
  EXPECT_THROW(BlockPool::allocate(1), std::bad_alloc);
  EXPECT_EQ(pool_.cached_bytes(), 0U);
}

}  // namespace
}  // namespace weir::block_pool_cache_test
