// BlockPool: one core's size-class free lists for coroutine frames, connections and read buffers.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "weir/base/detail/counter.hpp"
#include "weir/base/time.hpp"

namespace weir {

/// The purpose of a block. The pool counts the blocks of each purpose separately.
enum class BlockUse : std::uint8_t {
  frame,   ///< a coroutine frame
  buffer,  ///< bytes that were received or will be sent
  other,   ///< any other purpose
};

/// A BlockPool caches blocks of memory for one core. A block comes from the pool that is current on
/// the calling thread. The loop sets the current pool for each turn; a thread without one uses the
/// heap. Any thread may release a block. A foreign thread returns it through a lock-free list,
/// which the owner empties when a free list of the pool runs out. The pool soon allocates nothing
/// from the heap under a steady load.
/// Errors: allocate() throws std::bad_alloc.
/// Threads: any for allocate(), release(), blocks_in_use() and cached_bytes(); the owner's for all
/// other members.
/// Lifetime: a pool may be destroyed while its blocks are in use. They are freed when released.
class BlockPool {
 public:
  /// The size of the largest block that is cached. Larger blocks bypass the lists.
  static constexpr std::size_t block_max = 64 * 1024;
  /// The most bytes of free blocks that a pool keeps. Further blocks are freed to the heap.
  static constexpr std::size_t cached_bytes_max = 64 * 1024 * 1024;

  BlockPool();
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// Returns a block of at least `bytes` bytes, aligned for any type that is not over-aligned.
  static void* allocate(std::size_t bytes, BlockUse use = BlockUse::other) {
    const std::size_t bucket = bucket_of(bytes);
    BlockPool* const pool = current_;
    if (pool == nullptr || bucket >= bucket_count || pool->free_[bucket] == nullptr) {
      return allocate_slow(bytes, bucket, use);
    }
    return pool->pop(bucket, use);
  }
  /// Returns a block from allocate() to its pool. A null pointer is allowed.
  static void release(void* block) noexcept {
    if (block == nullptr) return;
    BlockPool* const pool = current_;
    if (pool != nullptr && header_of(block)->owner == pool->owner_) {
      pool->push(block);
    } else {
      release_foreign(block);
    }
  }

  /// False under the address sanitizer. Every block is then freed to the heap immediately, so that
  /// the sanitizer detects each use after release, unless a test calls set_cache_limit().
#if defined(__SANITIZE_ADDRESS__)
  static constexpr bool caches_free_blocks = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  static constexpr bool caches_free_blocks = false;
#else
  static constexpr bool caches_free_blocks = true;
#endif
#else
  static constexpr bool caches_free_blocks = true;
#endif

  /// Returns the pool of the core that currently runs on this thread, or nullptr.
  static BlockPool* current() noexcept { return current_; }

  /// Returns the number of allocated blocks. A block that a foreign thread has released counts
  /// until the owner collects it.
  std::size_t blocks_in_use() const noexcept {
    std::size_t all = 0;
    for (const detail::Counter& each : in_use_) all += each.value();
    return all;
  }
  std::size_t blocks_in_use(BlockUse use) const noexcept {
    return in_use_[static_cast<std::size_t>(use)].value();
  }
  /// Returns the bytes in cached free blocks.
  std::size_t cached_bytes() const noexcept { return cached_bytes_.value(); }
  /// Moves the blocks that foreign threads have released to the free lists.
  /// Threads: the owner's.
  void collect() noexcept;
  /// Allocates and touches free blocks of every size, as far as memory allows: `bytes` in total in
  /// equal parts for each size, and at least one block of each. The first allocations then cost no
  /// system call and no page fault. Does nothing if free blocks are not cached.
  void prefault(std::size_t bytes) noexcept;

  /// The bytes of free blocks that an idle core keeps, unless prefault() has allocated more.
  static constexpr std::size_t idle_bytes = 64 * 1024;
  /// Returns the bytes of free blocks beyond those that an idle core keeps; 0 for less than a block
  /// of any size.
  std::size_t surplus_bytes() const noexcept {
    return cached_bytes() >= kept_bytes_ + block_max ? cached_bytes() - kept_bytes_ : 0;
  }
  /// Frees free blocks, the largest ones first: at most `bytes` bytes and `trimmed_blocks_max`
  /// blocks. Returns the memory of the last call for some bytes to the system, if it is much.
  /// Returns: the bytes that are left for another call, because of the limit of blocks.
  /// Threads: the owner's.
  std::size_t trim(std::size_t bytes) noexcept;
  static constexpr std::size_t trimmed_blocks_max = 4096;

  /// Sets the time that the pool notes in each frame from now on, in units of 17 ms. The loop sets
  /// it once a turn.
  /// Threads: the owner's.
  void set_time(Instant now) noexcept {
    time_ = static_cast<std::uint32_t>(now.time_since_epoch().count() >> time_shift);
  }
  /// A frame that is in use.
  struct FrameInfo {
    Duration age;        ///< since its allocation, to 17 ms
    std::uint32_t time;  ///< of its allocation, in the units of set_time()
    std::size_t bytes;   ///< of its block
  };
  /// Returns the facts of a frame of this pool. Returns nothing for a frame without a block of its
  /// own: one that the compiler has put into another frame, or that a thread without a loop has
  /// allocated.
  /// Threads: the owner's.
  std::optional<FrameInfo> frame_info(const void* frame) const noexcept;

  /// Sets the most bytes of free blocks that the pool keeps from now on, for tests. The usual value
  /// is `cached_bytes_max`, or 0 if `caches_free_blocks` is false.
  /// Threads: the owner's.
  void set_cache_limit(std::size_t bytes) noexcept { cache_limit_ = cache_limit_set_ = bytes; }
  /// Makes the allocation after the next `count` ones throw std::bad_alloc, once, for tests. No
  /// free block is cached until that failure, so that every allocation is counted.
  /// Threads: the owner's.
  void fail_after(std::size_t count) noexcept;
  /// Returns true if the failure that fail_after() set has not happened yet.
  bool will_fail() const noexcept { return allocations_until_failure_ != 0; }

 private:
  struct Owner;
  struct Header {
    Owner* owner;         // nullptr: a heap block without a pool
    std::uint8_t bucket;  // index of the free list; bucket_count: oversized
    BlockUse use;         // valid while the block is in use
    std::uint16_t units;  // size of the blocks in that list, in units of 8 bytes
    std::uint32_t time;   // when a frame was allocated; see set_time()

    std::size_t bytes() const noexcept { return std::size_t{units} * 8; }
  };
  struct FreeBlock {
    FreeBlock* next;
  };
  // 8, 24 … 1032, then 2048, 4096 … block_max. With its header of 16 bytes, a small block fills a
  // piece of glibc's heap, whose sizes are multiples of 16 and whose own header has 8 bytes.
  static constexpr std::size_t small_step = 16;
  static constexpr std::size_t small_min = 8;
  static constexpr std::size_t small_max = small_min + 1024;
  static constexpr std::size_t small_buckets = (small_max - small_min) / small_step + 1;
  static constexpr std::size_t bucket_count = small_buckets + 6;
  static constexpr int time_shift = 24;  // of nanoseconds, for Header::time

  static constexpr std::size_t bucket_of(std::size_t bytes) noexcept {
    if (bytes <= small_max) return (bytes + small_step - 1 - small_min) / small_step;
    if (bytes > block_max) return bucket_count;
    return small_buckets + static_cast<std::size_t>(std::bit_width(bytes - 1)) - 11;
  }
  static constexpr std::size_t bucket_bytes(std::size_t bucket) noexcept {
    if (bucket < small_buckets) return small_min + bucket * small_step;
    return std::size_t{2048} << (bucket - small_buckets);
  }
  static Header* header_of(void* block) noexcept { return static_cast<Header*>(block) - 1; }

  static void* allocate_slow(std::size_t bytes, std::size_t bucket, BlockUse use);
  static void release_foreign(void* block) noexcept;
  void* pop_or_allocate(std::size_t bucket, BlockUse use);
  // data() skips the index check: `use` comes from a block of this pool.
  detail::Counter& counter_of(BlockUse use) noexcept {
    return in_use_.data()[static_cast<std::size_t>(use)];
  }
  void free_cached() noexcept;

  void* pop(std::size_t bucket, BlockUse use) noexcept {
    FreeBlock* const block = free_[bucket];
    free_[bucket] = block->next;
    Header& header = *header_of(block);
    cached_bytes_.subtract(header.bytes());
    header.use = use;
    if (use == BlockUse::frame) header.time = time_;
    counter_of(use).add();
    return block;
  }
  void push(void* block) noexcept {
    const Header& header = *header_of(block);
    assert(blocks_in_use(header.use) > 0);
    counter_of(header.use).subtract();
    const std::size_t bytes = header.bytes();
    if (cached_bytes_.value() + bytes > cache_limit_) {
      std::free(header_of(block));
      return;
    }
    auto* const free_block = static_cast<FreeBlock*>(block);
    free_block->next = free_[header.bucket];
    free_[header.bucket] = free_block;
    cached_bytes_.add(bytes);
  }

  friend class ScopedBlockPool;

  static constinit thread_local BlockPool* current_;
  std::array<FreeBlock*, bucket_count> free_{};
  static constexpr std::size_t use_count = 3;
  std::array<detail::Counter, use_count> in_use_;
  detail::Counter cached_bytes_;
  std::size_t kept_bytes_ = idle_bytes;
  std::uint32_t time_ = 0;  // see set_time()
  static constexpr std::size_t system_bytes_min = 512 * 1024;
  std::size_t trimmed_bytes_ = 0;  // not yet returned to the system
  std::size_t cache_limit_set_ = caches_free_blocks ? cached_bytes_max : 0;
  std::size_t cache_limit_ = cache_limit_set_;  // 0 until the failure that fail_after() set
  std::size_t allocations_until_failure_ = 0;   // counts the failing allocation too; 0: none fails
  Owner* owner_;
};

/// A ScopedBlockPool makes a pool the current one of this thread until the end of a C++ scope.
class ScopedBlockPool {
 public:
  explicit ScopedBlockPool(BlockPool& pool) noexcept
      : previous_(std::exchange(BlockPool::current_, &pool)) {}
  ~ScopedBlockPool() { BlockPool::current_ = previous_; }
  ScopedBlockPool(const ScopedBlockPool&) = delete;
  ScopedBlockPool& operator=(const ScopedBlockPool&) = delete;

 private:
  BlockPool* previous_;
};

/// Destroys an object that make_block() created and releases its block.
template <class T>
struct BlockDeleter {
  void operator()(T* object) const noexcept {
    object->~T();
    BlockPool::release(object);
  }
};
template <class T>
using BlockPtr = std::unique_ptr<T, BlockDeleter<T>>;

/// Creates a T in a block of the current core's pool.
/// Errors: throws std::bad_alloc, or the exception of the constructor.
template <class T, class... Args>
BlockPtr<T> make_block(Args&&... args) {
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  void* memory = BlockPool::allocate(sizeof(T));
  try {
    return BlockPtr<T>(::new (memory) T(std::forward<Args>(args)...));
  } catch (...) {
    BlockPool::release(memory);
    throw;
  }
}

}  // namespace weir
