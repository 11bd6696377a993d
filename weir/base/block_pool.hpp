// Memory of one core: size-class free lists behind coroutine frames, connections and read buffers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace weir {

/// Blocks of memory that belong to a core. A block is taken from the pool that is current on the
/// calling thread (set by the loop for each turn; without one, from the heap) and may be released
/// on any thread: a foreign thread sends it home through a lock-free list, which the owner empties
/// when it next runs short. After the first rounds of a steady load it asks the heap for nothing.
///
/// Threads: allocate() and release() anywhere; everything else only the owner's.
/// Lifetime: a pool may be destroyed while blocks of it are in use; they are freed when released.
/// Errors: allocate() throws std::bad_alloc.
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
  static void* allocate(std::size_t bytes);
  static void release(void* block) noexcept;

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
  std::size_t blocks_in_use() const noexcept { return in_use_; }
  std::size_t cached_bytes() const noexcept { return cached_bytes_; }
  /// Takes back what foreign threads have released. Owner only.
  void collect() noexcept;

 private:
  struct Home;
  struct Header {
    Home* home;          // nullptr: from the heap, outside any pool
    std::size_t bucket;  // index of the free list, or bucket_count for oversized ones
  };
  struct FreeBlock {
    FreeBlock* next;
  };
  static constexpr std::size_t bucket_count = 16 + 6;

  static std::size_t bucket_of(std::size_t bytes) noexcept;
  static std::size_t bucket_bytes(std::size_t bucket) noexcept;
  static Header* header_of(void* block) noexcept { return static_cast<Header*>(block) - 1; }
  void* take(std::size_t bucket);
  void give_back(void* block) noexcept;

  static constinit thread_local BlockPool* current_;
  std::array<FreeBlock*, bucket_count> free_{};
  std::size_t in_use_ = 0;
  std::size_t cached_bytes_ = 0;
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
