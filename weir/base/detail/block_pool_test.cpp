#include "weir/base/detail/block_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace weir::block_pool_test {
namespace {

constexpr bool keeps = BlockPool::caches_free_blocks;

TEST(BlockPool, CountsBlocksInUse) {
  BlockPool pool;
  const ScopedBlockPool use(pool);
  void* one = BlockPool::allocate(100);
  void* two = BlockPool::allocate(5000);
  EXPECT_EQ(pool.blocks_in_use(), 2U);
  BlockPool::release(one);
  BlockPool::release(two);
  BlockPool::release(nullptr);
  EXPECT_EQ(pool.blocks_in_use(), 0U);
}

TEST(BlockPool, CountsBlocksPerUse) {
  BlockPool pool;
  const ScopedBlockPool use(pool);
  const auto counts = [&pool] {
    return std::vector{pool.blocks_in_use(BlockUse::frame), pool.blocks_in_use(BlockUse::buffer),
                       pool.blocks_in_use(BlockUse::other), pool.blocks_in_use()};
  };
  void* frame = BlockPool::allocate(100, BlockUse::frame);
  void* buffer = BlockPool::allocate(5000, BlockUse::buffer);
  void* another = BlockPool::allocate(BlockPool::block_max, BlockUse::buffer);
  void* other = BlockPool::allocate(100);
  EXPECT_EQ(counts(), (std::vector<std::size_t>{1, 2, 1, 4}));
  BlockPool::release(frame);
  BlockPool::release(buffer);
  EXPECT_EQ(counts(), (std::vector<std::size_t>{0, 1, 1, 2}));
  frame = BlockPool::allocate(5000, BlockUse::frame);  // the block of the former buffer
  std::thread([another] { BlockPool::release(another); }).join();
  pool.collect();
  EXPECT_EQ(counts(), (std::vector<std::size_t>{1, 0, 1, 2}));
  BlockPool::release(frame);
  BlockPool::release(other);
  EXPECT_EQ(counts(), (std::vector<std::size_t>{0, 0, 0, 0}));
}

TEST(BlockPool, KnowsTheAgeOfAFrame) {
  using namespace std::chrono_literals;
  constexpr Duration unit{1 << 24};
  BlockPool pool;
  pool.set_cache_limit(BlockPool::cached_bytes_max);
  const ScopedBlockPool use(pool);
  pool.set_time(Instant(10s));
  void* const first = BlockPool::allocate(100, BlockUse::frame);
  void* const buffer = BlockPool::allocate(100, BlockUse::buffer);
  pool.set_time(Instant(15s));
  void* second = BlockPool::allocate(2000, BlockUse::frame);
  pool.set_time(Instant(16s));
  const auto old = pool.frame_info(first);
  ASSERT_TRUE(old);
  EXPECT_GE(old->bytes, 100U);
  EXPECT_NEAR(static_cast<double>(old->age.count()), 6e9, static_cast<double>(unit.count()));
  EXPECT_FALSE(pool.frame_info(buffer));
  // A block from the free list is as young as one from the heap.
  BlockPool::release(second);
  second = BlockPool::allocate(2000, BlockUse::frame);
  ASSERT_TRUE(pool.frame_info(second));
  EXPECT_EQ(pool.frame_info(second)->age, 0s);
  EXPECT_EQ(pool.frame_info(second)->bytes, 2048U);
  {
    BlockPool other;
    EXPECT_FALSE(other.frame_info(first)) << "a frame of another core";
  }
  for (void* const each : {first, buffer, second}) BlockPool::release(each);
}

TEST(BlockPool, AgesWrapAround) {
  using namespace std::chrono_literals;
  BlockPool pool;
  const ScopedBlockPool use(pool);
  pool.set_time(Instant(Duration((std::int64_t{1} << 56) - 1)));
  void* const frame = BlockPool::allocate(100, BlockUse::frame);
  pool.set_time(Instant(Duration((std::int64_t{1} << 56) + (std::int64_t{3} << 24))));
  ASSERT_TRUE(pool.frame_info(frame));
  EXPECT_EQ(pool.frame_info(frame)->age, Duration(std::int64_t{4} << 24));
  BlockPool::release(frame);
}

TEST(BlockPool, ScopesNest) {
  EXPECT_EQ(BlockPool::current(), nullptr);
  BlockPool outer, inner;
  {
    const ScopedBlockPool one(outer);
    {
      const ScopedBlockPool two(inner);
      EXPECT_EQ(BlockPool::current(), &inner);
    }
    EXPECT_EQ(BlockPool::current(), &outer);
  }
  EXPECT_EQ(BlockPool::current(), nullptr);
}

TEST(BlockPool, BlocksOfEverySizeAreAlignedAndDoNotOverlap) {
  BlockPool pool;
  const ScopedBlockPool use(pool);
  std::vector<std::pair<unsigned char*, std::size_t>> blocks;
  std::vector<std::size_t> sizes{0,    1,    63,   64,    65,    1023, 1024,
                                 1025, 2048, 2049, 65535, 65536, 65537};
  for (std::size_t size = 128; size < 300'000; size = size * 5 / 4) sizes.push_back(size);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      auto* block = static_cast<unsigned char*>(BlockPool::allocate(sizes[i]));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % __STDCPP_DEFAULT_NEW_ALIGNMENT__, 0U);
      std::memset(block, static_cast<int>(i), sizes[i]);
      blocks.emplace_back(block, sizes[i]);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      for (std::size_t at = 0; at < blocks[i].second; ++at) {
        ASSERT_EQ(blocks[i].first[at], static_cast<unsigned char>(i));
      }
      BlockPool::release(blocks[i].first);
    }
    blocks.clear();
  }
  EXPECT_EQ(pool.blocks_in_use(), 0U);
}

TEST(BlockPool, ReusesAReleasedBlock) {
  BlockPool pool;
  const ScopedBlockPool use(pool);
  void* block = BlockPool::allocate(216);
  BlockPool::release(block);
  EXPECT_EQ(pool.cached_bytes(), keeps ? 216U : 0U);
  void* again = BlockPool::allocate(201);
  if (keeps) {
    EXPECT_EQ(again, block);
  }
  EXPECT_EQ(pool.cached_bytes(), 0U);
  BlockPool::release(again);
}

TEST(BlockPool, CachesAtMost64MiB) {
  EXPECT_EQ(BlockPool::cached_bytes_max, 64U << 20);
  BlockPool pool;
  const ScopedBlockPool use(pool);
  std::vector<void*> blocks;
  for (std::size_t taken = 0; taken < BlockPool::cached_bytes_max + (8U << 20);
       taken += BlockPool::block_max) {
    blocks.push_back(BlockPool::allocate(BlockPool::block_max));
  }
  for (void* block : blocks) BlockPool::release(block);
  EXPECT_LE(pool.cached_bytes(), BlockPool::cached_bytes_max);
  if (keeps) {
    EXPECT_EQ(pool.cached_bytes(), BlockPool::cached_bytes_max);
  }
}

TEST(BlockPool, AllocatesFromTheHeapWithoutAPool) {
  void* block = BlockPool::allocate(100);
  BlockPool pool;
  const ScopedBlockPool use(pool);
  EXPECT_EQ(pool.blocks_in_use(), 0U);
  BlockPool::release(block);
  EXPECT_EQ(pool.blocks_in_use(), 0U);
}

TEST(BlockPool, AForeignReleaseReturnsTheBlockToTheOwner) {
  BlockPool owner, foreign;
  void* block = nullptr;
  {
    const ScopedBlockPool use(owner);
    block = BlockPool::allocate(100);
  }
  {
    const ScopedBlockPool use(foreign);
    BlockPool::release(block);
    EXPECT_EQ(foreign.cached_bytes(), 0U);
  }
  EXPECT_EQ(owner.blocks_in_use(), 1U) << "not yet seen";
  owner.collect();
  EXPECT_EQ(owner.blocks_in_use(), 0U);
}

TEST(BlockPool, AnEmptyFreeListCollectsForeignReleases) {
  BlockPool owner;
  void* block = nullptr;
  {
    const ScopedBlockPool use(owner);
    block = BlockPool::allocate(100);
  }
  BlockPool::release(block);
  const ScopedBlockPool use(owner);
  void* next = BlockPool::allocate(100);
  if (keeps) {
    EXPECT_EQ(next, block);
  }
  EXPECT_EQ(owner.blocks_in_use(), 1U);
  BlockPool::release(next);
}

TEST(BlockPool, MayBeDestroyedWhileBlocksAreInUse) {
  std::vector<void*> out;
  void* returned = nullptr;
  {
    BlockPool pool;
    const ScopedBlockPool use(pool);
    for (int i = 0; i < 10; ++i) out.push_back(BlockPool::allocate(100));
    returned = BlockPool::allocate(100);
    std::thread([&] { BlockPool::release(returned); }).join();
  }
  BlockPool another;
  const ScopedBlockPool use(another);
  for (void* block : out) BlockPool::release(block);
  EXPECT_EQ(another.blocks_in_use(), 0U);
  EXPECT_EQ(another.cached_bytes(), 0U);
}

// Owners pass blocks to foreign threads, which write to the blocks and release them. The owners
// continue to allocate and are destroyed at any time meanwhile.
TEST(BlockPool, ForeignThreadsReleaseWhileTheOwnerAllocatesAndIsDestroyed) {
  for (int round = 0; round < 20; ++round) {
    constexpr std::size_t count = 2000;
    std::vector<std::atomic<int*>> handed(count);
    std::thread owner([&] {
      BlockPool pool;
      const ScopedBlockPool use(pool);
      for (auto& slot : handed) {
        auto* block = static_cast<int*>(BlockPool::allocate(64));
        *block = 1;
        slot.store(block, std::memory_order_release);
        BlockPool::release(BlockPool::allocate(64));
      }
    });
    std::vector<std::thread> foreigners;
    for (std::size_t f = 0; f < 2; ++f) {
      foreigners.emplace_back([&, f] {
        for (std::size_t i = f; i < count; i += 2) {
          int* block = nullptr;
          while ((block = handed[i].load(std::memory_order_acquire)) == nullptr) {
            std::this_thread::yield();
          }
          *block += 1;
          BlockPool::release(block);
        }
      });
    }
    owner.join();
    for (std::thread& foreigner : foreigners) foreigner.join();
  }
}

TEST(BlockPool, PrefaultedBlocksServeEverySize) {
  BlockPool pool;
  const ScopedBlockPool use(pool);
  pool.prefault(1 << 20);
  EXPECT_EQ(pool.blocks_in_use(), 0U);
  if (!keeps) {
    EXPECT_EQ(pool.cached_bytes(), 0U);
    return;
  }
  const std::size_t cached = pool.cached_bytes();
  EXPECT_GT(cached, std::size_t{512} * 1024);
  EXPECT_LT(cached, std::size_t{2048} * 1024);
  // The allocations use the cached blocks: the cached bytes decrease by the allocated bytes.
  std::vector<void*> taken;
  for (std::size_t bytes = 1; bytes <= BlockPool::block_max; bytes += bytes / 8 + 1) {
    const std::size_t before = pool.cached_bytes();
    void* const block = BlockPool::allocate(bytes);
    if (bytes <= 1024) {
      EXPECT_GE(before - pool.cached_bytes(), bytes);
    }
    taken.push_back(block);
  }
  for (void* const block : taken) BlockPool::release(block);
  pool.prefault(1 << 20);
  EXPECT_LT(pool.cached_bytes(), std::size_t{2048} * 1024) << "there are enough already";
}

TEST(BlockPool, OneAllocationFailsOnRequest) {
  BlockPool pool;
  const ScopedBlockPool use(pool);
  BlockPool::release(BlockPool::allocate(100));
  pool.fail_after(2);
  EXPECT_TRUE(pool.will_fail());
  BlockPool::release(BlockPool::allocate(100));
  BlockPool::release(BlockPool::allocate(100));
  EXPECT_EQ(pool.cached_bytes(), 0U) << "a block that is kept would be given out uncounted";
  EXPECT_THROW(BlockPool::allocate(100), std::bad_alloc);
  EXPECT_FALSE(pool.will_fail());
  BlockPool::release(BlockPool::allocate(100));
  EXPECT_EQ(pool.blocks_in_use(), 0U);
  EXPECT_FALSE(pool.will_fail()) << "only one allocation fails";
}

TEST(BlockPool, TheNextAllocationFailsAfterZero) {
  BlockPool pool;
  const ScopedBlockPool use(pool);
  pool.fail_after(0);
  EXPECT_THROW(BlockPool::allocate(100), std::bad_alloc);
  void* const block = BlockPool::allocate(100);
  EXPECT_EQ(pool.blocks_in_use(), 1U);
  BlockPool::release(block);
}

TEST(MakeBlock, OwnsAnObject) {
  struct Thing {
    Thing(std::shared_ptr<int> of, bool bad) : held(std::move(of)) {
      if (bad) throw std::runtime_error("bad");
    }
    std::shared_ptr<int> held;
  };
  BlockPool pool;
  const ScopedBlockPool use(pool);
  auto held = std::make_shared<int>(1);
  {
    const auto thing = make_block<Thing>(held, false);
    EXPECT_EQ(held.use_count(), 2);
    EXPECT_EQ(pool.blocks_in_use(), 1U);
  }
  EXPECT_THROW(make_block<Thing>(held, true), std::runtime_error);
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(pool.blocks_in_use(), 0U);
}

}  // namespace
}  // namespace weir::block_pool_test
