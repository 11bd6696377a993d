// Memory of one core: size-class free lists behind coroutine frames, connections and read buffers.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "weir/base/detail/counter.hpp"

namespace weir {

/// What a block is for, as far as that is counted apart.
enum class BlockUse : std::uint16_t {
  frame,   ///< of a coroutine
  buffer,  ///< of bytes that came or are to leave
  other,
};

/// Blocks of memory that belong to a core. A block is taken from the pool that is current on the
/// calling thread (set by the loop for each turn; without one, from the heap) and may be released
/// on any thread: a foreign thread sends it home through a lock-free list, which the owner empties
/// when it next runs short. After the first rounds of a steady load it asks the heap for nothing.
///
/// Threads: allocate(), release(), blocks_in_use() and cached_bytes() anywhere; everything else
/// only the owner's. Lifetime: a pool may be destroyed while blocks of it are in use; they are
/// freed when released. Errors: allocate() throws std::bad_alloc.
class BlockPool {
 public:
  /// Larger blocks than this bypass the lists.
  static constexpr std::size_t block_max = 64 * 1024;
  /// Free blocks are kept up to this many bytes; more go back to the heap.
  static constexpr std::size_t cached_bytes_max = 64 * 1024 * 1024;

  BlockPool();
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// At least `bytes` bytes, aligned for any ordinary type.
  static void* allocate(std::size_t bytes, BlockUse use = BlockUse::other) {
    const std::size_t bucket = bucket_of(bytes);
    BlockPool* const pool = current_;
    if (pool == nullptr || bucket >= bucket_count || pool->free_[bucket] == nullptr) {
      return allocate_slowly(bytes, bucket, use);
    }
    return pool->pop(bucket, use);
  }
  static void release(void* block) noexcept {
    if (block == nullptr) return;
    BlockPool* const pool = current_;
    if (pool != nullptr && header_of(block)->home == pool->home_) {
      pool->give_back(block);
    } else {
      release_elsewhere(block);
    }
  }

  /// False under the address sanitizer: there every block goes back to the heap at once, so that
  /// each use after release is seen.
#if defined(__SANITIZE_ADDRESS__)
  static constexpr bool keeps_free_blocks = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  static constexpr bool keeps_free_blocks = false;
#else
  static constexpr bool keeps_free_blocks = true;
#endif
#else
  static constexpr bool keeps_free_blocks = true;
#endif

  /// The pool of the core that runs on this thread now, or nullptr.
  static BlockPool* current() noexcept { return current_; }

  /// Makes a pool the current one of this thread for the length of a C++ scope.
  class Use {
   public:
    explicit Use(BlockPool& pool) noexcept : before_(std::exchange(current_, &pool)) {}
    ~Use() { current_ = before_; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    BlockPool* before_;
  };

  /// Blocks given out and not yet seen to be back.
  std::size_t blocks_in_use() const noexcept {
    std::size_t all = 0;
    for (const Counter& each : in_use_) all += each.value();
    return all;
  }
  std::size_t blocks_in_use(BlockUse use) const noexcept {
    return in_use_[static_cast<std::size_t>(use)].value();
  }
  /// In free blocks that are kept.
  std::size_t cached_bytes() const noexcept { return cached_bytes_.value(); }
  /// Takes back what foreign threads have released. Owner only.
  void collect() noexcept;
  /// Makes and touches free blocks of every size, `bytes` in all (and one of each at least), as far
  /// as there is memory: so that the first ones cost no system call and no page fault. Does nothing
  /// where free blocks are not kept.
  void prefault(std::size_t bytes) noexcept;

  /// For tests: the allocation that follows `count` others throws std::bad_alloc, once. Until then
  /// free blocks are not kept, so that none is given out uncounted. Owner only.
  void fail_after(std::size_t count) noexcept;
  /// Whether that is still to come.
  bool will_fail() const noexcept { return until_failure_ != 0; }

 private:
  struct Home;
  struct Header {
    Home* home;            // nullptr: from the heap, outside any pool
    std::uint16_t bucket;  // index of the free list, or bucket_count for oversized ones
    BlockUse use;          // while it is in use
    std::uint32_t bytes;   // of a block in that list
  };
  struct FreeBlock {
    FreeBlock* next;
  };
  // 16, 32 … 1024, then 2048, 4096 … block_max.
  static constexpr std::size_t small_step = 16;
  static constexpr std::size_t small_max = 1024;
  static constexpr std::size_t small_buckets = small_max / small_step;
  static constexpr std::size_t bucket_count = small_buckets + 6;

  static constexpr std::size_t bucket_of(std::size_t bytes) noexcept {
    if (bytes <= small_max) return bytes == 0 ? 0 : (bytes - 1) / small_step;
    if (bytes > block_max) return bucket_count;
    return small_buckets + static_cast<std::size_t>(std::bit_width(bytes - 1)) - 11;
  }
  static constexpr std::size_t bucket_bytes(std::size_t bucket) noexcept {
    if (bucket < small_buckets) return (bucket + 1) * small_step;
    return std::size_t{2048} << (bucket - small_buckets);
  }
  static Header* header_of(void* block) noexcept { return static_cast<Header*>(block) - 1; }

  static void* allocate_slowly(std::size_t bytes, std::size_t bucket, BlockUse use);
  static void release_elsewhere(void* block) noexcept;
  void* take(std::size_t bucket, BlockUse use);
  // Of a block that is ours: not looked at again on each release.
  Counter& counter_of(BlockUse use) noexcept {
    return in_use_.data()[static_cast<std::size_t>(use)];
  }
  void free_cached() noexcept;

  void* pop(std::size_t bucket, BlockUse use) noexcept {
    FreeBlock* const block = free_[bucket];
    free_[bucket] = block->next;
    Header& header = *header_of(block);
    cached_bytes_.subtract(header.bytes);
    header.use = use;
    counter_of(use).add();
    return block;
  }
  void give_back(void* block) noexcept {
    const Header& header = *header_of(block);
    assert(blocks_in_use(header.use) > 0);
    counter_of(header.use).subtract();
    if (!keeps_free_blocks || cached_bytes_.value() + header.bytes > kept_bytes_max_) {
      std::free(header_of(block));
      return;
    }
    auto* const free_block = static_cast<FreeBlock*>(block);
    free_block->next = free_[header.bucket];
    free_[header.bucket] = free_block;
    cached_bytes_.add(header.bytes);
  }

  static constinit thread_local BlockPool* current_;
  std::array<FreeBlock*, bucket_count> free_{};
  static constexpr std::size_t use_count = 3;
  std::array<Counter, use_count> in_use_;
  Counter cached_bytes_;
  std::size_t kept_bytes_max_ = cached_bytes_max;
  std::size_t until_failure_ = 0;  // allocations, the one that fails included; 0: none does
  Home* home_;
};

/// An object in a block of the current core's pool.
template <class T>
struct BlockDeleter {
  void operator()(T* object) const noexcept {
    object->~T();
    BlockPool::release(object);
  }
};
template <class T>
using BlockPtr = std::unique_ptr<T, BlockDeleter<T>>;

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
