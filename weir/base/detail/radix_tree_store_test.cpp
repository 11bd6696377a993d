// Tests of the memory of radix trees: blocks of the heap, slabs, and the bytes that they take.
#include "weir/base/detail/radix_tree_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace weir::radix::radix_tree_store_test {
namespace {

constexpr std::size_t heap_max = Memory::heap_bytes_max;
constexpr std::size_t slab_bytes = Memory::slab_bytes;
constexpr std::size_t line = Memory::line_bytes;

struct Block {
  void* memory;
  std::size_t bytes;
  std::size_t alignment;
};

/// A Memory and its blocks, which the test releases at its end.
class MemoryTest : public testing::Test {
 protected:
  ~MemoryTest() override {
    while (!blocks_.empty()) release(0);
    EXPECT_EQ(memory_.bytes(), 0U);
  }

  /// Allocates a block and fills it with its number. Returns its index.
  std::size_t allocate(std::size_t bytes, std::size_t alignment = 8) {
    void* const memory = memory_.allocate(bytes, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % alignment, 0U);
    std::memset(memory, static_cast<int>(blocks_.size() % 251), bytes);
    blocks_.push_back({memory, bytes, alignment});
    return blocks_.size() - 1;
  }
  void allocate_many(std::size_t count, std::size_t bytes) {
    for (std::size_t index = 0; index < count; ++index) allocate(bytes);
  }
  /// Releases the block at `index` and moves the last block there.
  void release(std::size_t index) {
    const Block block = blocks_[index];
    blocks_[index] = blocks_.back();
    blocks_.pop_back();
    memory_.release(block.memory, block.bytes, block.alignment);
  }
  /// Releases all blocks of one size that lie in the given slab.
  void release_slab(std::uintptr_t slab) {
    for (std::size_t index = blocks_.size(); index-- > 0;) {
      if (slab_at(index) == slab) release(index);
    }
  }
  /// Takes as many small blocks from the heap as a tree may have without slabs.
  void fill_heap() {
    for (std::size_t index = 0; index < heap_max / 256; ++index) allocate(256);
    ASSERT_EQ(memory_.bytes(), heap_max);
  }
  std::uintptr_t slab_at(std::size_t index) const {
    return reinterpret_cast<std::uintptr_t>(blocks_[index].memory) / slab_bytes;
  }
  std::size_t slabs() const { return (memory_.bytes() - heap_max) / slab_bytes; }

  Memory memory_;
  std::vector<Block> blocks_;
};

TEST_F(MemoryTest, ASmallTreeTakesOnlyItsOwnBytes) {
  allocate(24);
  EXPECT_EQ(memory_.bytes(), 24U);
  allocate(100, 64);
  EXPECT_EQ(memory_.bytes(), 124U);
  release(0);
  EXPECT_EQ(memory_.bytes(), 100U);
}

TEST_F(MemoryTest, SlabsBeginWhenSmallBlocksReachTheLimit) {
  allocate_many(heap_max / 256 - 1, 256);
  allocate(255);
  EXPECT_EQ(memory_.bytes(), heap_max - 1);
  allocate(32);
  EXPECT_EQ(memory_.bytes(), heap_max + 31) << "one byte below the limit";
  allocate(32);
  EXPECT_EQ(memory_.bytes(), heap_max + 31 + slab_bytes);
}

TEST_F(MemoryTest, SlabsBeginExactlyAtTheLimit) {
  fill_heap();
  allocate(32);
  EXPECT_EQ(memory_.bytes(), heap_max + slab_bytes);
}

TEST_F(MemoryTest, ReleasedHeapBlocksMakeRoomForOthers) {
  fill_heap();
  release(0);
  allocate(100);
  EXPECT_EQ(memory_.bytes(), heap_max - 156);
  allocate(156);
  EXPECT_EQ(memory_.bytes(), heap_max);
  allocate(1);
  EXPECT_EQ(memory_.bytes(), heap_max + slab_bytes);
}

TEST_F(MemoryTest, LargeBlocksNeitherCountNorUseSlabs) {
  allocate(2 * heap_max);
  allocate(2 * heap_max, 64);
  allocate(32);
  EXPECT_EQ(memory_.bytes(), 4 * heap_max + 32);
  while (!blocks_.empty()) release(0);
  fill_heap();
}

TEST_F(MemoryTest, OnlySmallBlocksWithAUsualAlignmentUseSlabs) {
  struct {
    std::size_t bytes;
    std::size_t alignment;
    bool in_slab;
  } const cases[] = {{1, 8, true},     {32, 8, true},   {33, 8, true},    {256, 8, true},
                     {256, 32, true},  {257, 8, false}, {256, 64, false}, {64, 64, false},
                     {1000, 8, false}, {40, 16, true}};
  fill_heap();
  for (const auto& each : cases) {
    SCOPED_TRACE(std::to_string(each.bytes) + " aligned to " + std::to_string(each.alignment));
    const std::size_t index = allocate(each.bytes, each.alignment);
    EXPECT_EQ(memory_.bytes(), heap_max + (each.in_slab ? slab_bytes : each.bytes));
    release(index);
    EXPECT_EQ(memory_.bytes(), heap_max + (each.in_slab ? slab_bytes : 0));
    while (!blocks_.empty()) release(0);  // the last block frees the slabs
    EXPECT_EQ(memory_.bytes(), 0U);
    fill_heap();
  }
}

TEST_F(MemoryTest, ABlockOfASlabNeverCrossesALineNeedlessly) {
  fill_heap();
  for (const std::size_t bytes : {1U, 31U, 32U, 33U, 64U, 65U, 128U, 129U, 192U, 193U, 256U}) {
    for (int round = 0; round < 3; ++round) {
      const std::size_t index = allocate(bytes);
      const auto address = reinterpret_cast<std::uintptr_t>(blocks_[index].memory);
      EXPECT_TRUE(address % line == 0 || address % line + bytes <= line) << bytes;
    }
  }
}

TEST_F(MemoryTest, BlocksOfASlabDoNotOverlap) {
  fill_heap();
  for (const std::size_t bytes : {32U, 64U, 65U, 128U, 130U, 200U, 256U}) {
    allocate_many(100, bytes);
  }
  for (std::size_t index = 0; index < blocks_.size(); ++index) {
    const auto* const bytes = static_cast<const unsigned char*>(blocks_[index].memory);
    for (std::size_t at = 0; at < blocks_[index].bytes; ++at) {
      ASSERT_EQ(bytes[at], index % 251) << index;
    }
  }
}

TEST_F(MemoryTest, ASlabHoldsAsManySlotsAsFitBehindItsHeader) {
  fill_heap();
  for (const std::size_t slot : {32U, 64U, 128U, 192U, 256U}) {
    SCOPED_TRACE(slot);
    const std::size_t before = memory_.bytes();
    const std::size_t count = (slab_bytes - line) / slot;
    allocate_many(count, slot);
    EXPECT_EQ(memory_.bytes(), before + slab_bytes);
    allocate(slot);
    EXPECT_EQ(memory_.bytes(), before + 2 * slab_bytes);
  }
}

TEST_F(MemoryTest, AFullSlabTakesBlocksAgainAfterARelease) {
  fill_heap();
  const std::size_t first = blocks_.size();
  const std::size_t count = (slab_bytes - line) / 256;
  allocate_many(count, 256);
  ASSERT_EQ(slabs(), 1U);
  std::vector<void*> released;
  for (int each = 0; each < 3; ++each) {
    released.push_back(blocks_[first + 10].memory);
    release(first + 10);
  }
  for (int each = 0; each < 3; ++each) {
    const void* const again = blocks_[allocate(256)].memory;
    EXPECT_EQ(std::erase(released, again), 1U) << "a slot that was released";
  }
  EXPECT_EQ(slabs(), 1U);
  allocate(256);
  EXPECT_EQ(slabs(), 2U);
}

/// Three slabs of blocks of 256 bytes, of which each has two free slots.
class ThreeSlabsTest : public MemoryTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(fill_heap());
    const std::size_t first = blocks_.size();
    for (int each = 0; each < 3; ++each) {
      slabs_in_order_.push_back(allocate(256));
      allocate_many(count_ - 1, 256);
    }
    ASSERT_EQ(slabs(), 3U);
    for (std::uintptr_t& each : slabs_in_order_) each = slab_at(each);
    // Releases from the end, so that the indices of the other blocks stay.
    for (const int slab : {2, 1, 0}) {
      release(first + static_cast<std::size_t>(slab) * count_ + 5);
      release(first + static_cast<std::size_t>(slab) * count_ + 4);
    }
    EXPECT_EQ(slabs(), 3U);
  }

  static constexpr std::size_t count_ = (slab_bytes - line) / 256;
  std::vector<std::uintptr_t> slabs_in_order_;
};

TEST_F(ThreeSlabsTest, AnEmptySlabIsFreedIfAnotherHasRoom) {
  for (const std::size_t order : {0U, 1U}) {
    release_slab(slabs_in_order_[order]);
    EXPECT_EQ(slabs(), 2U - order);
  }
  release_slab(slabs_in_order_[2]);
  EXPECT_EQ(slabs(), 1U) << "the last one is spare";
  allocate(256);
  EXPECT_EQ(slabs(), 1U);
}

TEST_F(ThreeSlabsTest, TheSlabsAreFreedInTheOtherOrderToo) {
  for (const std::size_t order : {2U, 1U, 0U}) {
    release_slab(slabs_in_order_[order]);
    EXPECT_EQ(slabs(), std::max<std::size_t>(order, 1));
  }
}

TEST_F(ThreeSlabsTest, TheMiddleSlabIsFreedAndTheOthersStillTakeBlocks) {
  release_slab(slabs_in_order_[1]);
  EXPECT_EQ(slabs(), 2U);
  allocate_many(4, 256);
  EXPECT_EQ(slabs(), 2U) << "two free slots in each";
  allocate(256);
  EXPECT_EQ(slabs(), 3U);
}

TEST_F(ThreeSlabsTest, FreeSlotsOfAllSlabsAreUsedBeforeAnotherSlab) {
  allocate_many(6, 256);
  EXPECT_EQ(slabs(), 3U);
  allocate(256);
  EXPECT_EQ(slabs(), 4U);
}

TEST_F(ThreeSlabsTest, SlabsOfAnotherSizeAreNotSpare) {
  const std::size_t small = allocate(64);
  EXPECT_EQ(slabs(), 4U);
  release(small);
  EXPECT_EQ(slabs(), 4U) << "the only slab of its size";
  release_slab(slabs_in_order_[0]);
  EXPECT_EQ(slabs(), 3U);
}

TEST_F(ThreeSlabsTest, TheLastBlockFreesAllSlabs) {
  while (blocks_.size() > 1) release(blocks_.size() - 1);
  EXPECT_EQ(memory_.bytes(), 256U + slab_bytes);
  release(0);
  EXPECT_EQ(memory_.bytes(), 0U);
}

TEST_F(MemoryTest, SwapExchangesAllBlocksAndSlabs) {
  Memory other;
  fill_heap();
  const std::size_t index = allocate(128);
  const std::size_t all = memory_.bytes();
  memory_.swap(other);
  EXPECT_EQ(memory_.bytes(), 0U);
  EXPECT_EQ(other.bytes(), all);
  // The empty memory begins with the heap again; the other continues with its slab.
  void* const heap = memory_.allocate(128, 8);
  EXPECT_EQ(memory_.bytes(), 128U);
  void* const slot = other.allocate(128, 8);
  EXPECT_EQ(other.bytes(), all);
  memory_.release(heap, 128, 8);
  EXPECT_EQ(memory_.bytes(), 0U);
  other.release(slot, 128, 8);
  memory_.swap(other);
  EXPECT_EQ(memory_.bytes(), all);
  release(index);
}

TEST(ValueLayout, IsAMultipleOfEightAndOfTheAlignment) {
  struct Nine {
    char bytes[9];
  };
  struct alignas(64) Line {
    char bytes[65];
  };
  struct alignas(16) Sixteen {
    char byte;
  };
  const auto expect = [](ValueLayout layout, std::size_t size, std::size_t alignment) {
    EXPECT_EQ(layout.size, size);
    EXPECT_EQ(layout.alignment, alignment);
  };
  expect(ValueLayout::of<char>(), 8, 8);
  expect(ValueLayout::of<std::uint64_t>(), 8, 8);
  expect(ValueLayout::of<Nine>(), 16, 8);
  expect(ValueLayout::of<Sixteen>(), 16, 16);
  expect(ValueLayout::of<Line>(), 128, 64);
}

TEST(Store, CountsLeavesWithTheirValuesAndKeys) {
  Store store(ValueLayout::of<std::uint64_t>());
  Leaf* const leaf = store.make_leaf("key");
  EXPECT_EQ(leaf->key(), "key");
  EXPECT_EQ(store.bytes(), 8U + sizeof(Leaf) + 3U);
  Leaf* const empty = store.make_leaf("");
  EXPECT_EQ(empty->key(), "");
  EXPECT_EQ(store.bytes(), 16U + 2 * sizeof(Leaf) + 3U);
  store.free_leaf(leaf);
  store.free_leaf(empty);
  EXPECT_EQ(store.bytes(), 0U);
}

}  // namespace
}  // namespace weir::radix::radix_tree_store_test
