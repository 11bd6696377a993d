#include "weir/base/detail/block_pool.hpp"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

namespace weir {
namespace {

void* heap_allocate(std::size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// The part of a pool that foreign threads may access. It outlives the pool while blocks are in use.
struct BlockPool::Owner {
  static FreeBlock* closed() noexcept {
    static FreeBlock mark{nullptr};
    return &mark;
  }

  std::atomic<FreeBlock*> returned{nullptr};
  // Blocks in use after the destruction of the pool. The count may be negative, because foreign
  // threads may subtract before the destructor adds. The thread that makes it zero deletes the
  // owner.
  std::atomic<std::ptrdiff_t> blocks_outstanding{0};
};

constinit thread_local BlockPool* BlockPool::current_ = nullptr;

BlockPool::BlockPool() : owner_(new Owner) {}

BlockPool::~BlockPool() {
  // acquire: the writes of foreign threads to the blocks happen before this thread frees them. A
  // foreign release now sees the mark and frees its block itself.
  FreeBlock* returned = owner_->returned.exchange(Owner::closed(), std::memory_order_acq_rel);
  while (returned != nullptr) {
    FreeBlock* next = returned->next;
    push(returned);
    returned = next;
  }
  free_cached();
  const auto out = static_cast<std::ptrdiff_t>(blocks_in_use());
  // acq_rel: all other threads have finished with the owner when a thread deletes it.
  if (owner_->blocks_outstanding.fetch_add(out, std::memory_order_acq_rel) + out == 0)
    delete owner_;
}

void BlockPool::free_cached() noexcept {
  for (FreeBlock*& block : free_) {
    while (block != nullptr) {
      FreeBlock* next = block->next;
      std::free(header_of(block));
      block = next;
    }
  }
  cached_bytes_.subtract(cached_bytes_.value());
}

void BlockPool::fail_after(std::size_t count) noexcept {
  free_cached();
  cache_limit_ = 0;
  allocations_until_failure_ = count + 1;
}

void* BlockPool::allocate_slow(std::size_t bytes, std::size_t bucket, BlockUse use) {
  if (current_ != nullptr && bucket < bucket_count) return current_->pop_or_allocate(bucket, use);
  auto* header = static_cast<Header*>(heap_allocate(sizeof(Header) + bytes));
  *header = {nullptr, bucket_count, use, 0, 0};
  return header + 1;
}

void* BlockPool::pop_or_allocate(std::size_t bucket, BlockUse use) {
  if (allocations_until_failure_ != 0 && --allocations_until_failure_ == 0) {
    cache_limit_ = cache_limit_set_;
    throw std::bad_alloc();
  }
  // Relaxed is enough here: collect() reads the list with the order that its blocks need.
  if (owner_->returned.load(std::memory_order_relaxed) != nullptr) collect();
  if (free_[bucket] != nullptr) return pop(bucket, use);
  const std::size_t bytes = bucket_bytes(bucket);
  auto* header = static_cast<Header*>(heap_allocate(sizeof(Header) + bytes));
  static_assert(bucket_count <= 255 && block_max % 8 == 0 && block_max / 8 <= 65535);
  *header = {owner_, static_cast<std::uint8_t>(bucket), use, static_cast<std::uint16_t>(bytes / 8),
             time_};
  counter_of(use).add();
  return header + 1;
}

// A frame inside of another one has no header, so this may read any two words before it.
#if defined(__clang__) || defined(__GNUC__)
__attribute__((no_sanitize_address, no_sanitize_thread))
#endif
std::optional<BlockPool::FrameInfo>
BlockPool::frame_info(const void* frame) const noexcept {
  const Header& header = static_cast<const Header*>(frame)[-1];
  if (header.owner != owner_ || header.use != BlockUse::frame) return std::nullopt;
  const std::uint32_t age = time_ - header.time;
  return FrameInfo{Duration(std::int64_t{age} << time_shift), header.time, header.bytes()};
}

void BlockPool::release_foreign(void* block) noexcept {
  Header* header = header_of(block);
  Owner* owner = header->owner;
  if (owner == nullptr) {
    std::free(header);
    return;
  }
  auto* returning = static_cast<FreeBlock*>(block);
  // acquire on failure and success keeps the order with the destructor's exchange. Its release
  // makes the writes of this thread to the block visible to the owner that takes the list.
  FreeBlock* head = owner->returned.load(std::memory_order_acquire);
  while (head != Owner::closed()) {
    returning->next = head;
    if (owner->returned.compare_exchange_weak(head, returning, std::memory_order_acq_rel,
                                              std::memory_order_acquire)) {
      return;
    }
  }
  std::free(header);
  if (owner->blocks_outstanding.fetch_sub(1, std::memory_order_acq_rel) == 1) delete owner;
}

std::size_t BlockPool::trim(std::size_t bytes) noexcept {
  std::size_t blocks_left = trimmed_blocks_max;
  for (std::size_t bucket = bucket_count; bucket-- > 0;) {
    const std::size_t size = bucket_bytes(bucket);
    while (free_[bucket] != nullptr && size <= bytes) {
      if (blocks_left-- == 0) return bytes;
      FreeBlock* const block = free_[bucket];
      free_[bucket] = block->next;
      std::free(header_of(block));
      cached_bytes_.subtract(size);
      trimmed_bytes_ += size;
      bytes -= size;
    }
  }
  // free() gives the system only memory at the end of its heap, where a small block may remain.
  // malloc_trim() delays the allocations of all threads, so it waits for many bytes.
  if (trimmed_bytes_ >= system_bytes_min) {
    trimmed_bytes_ = 0;
    ::malloc_trim(0);
  }
  return 0;
}

void BlockPool::prefault(std::size_t bytes) noexcept {
  if (cache_limit_ == 0) return;
  for (std::size_t bucket = 0; bucket < bucket_count; ++bucket) {
    const std::size_t size = bucket_bytes(bucket);
    FreeBlock* taken = nullptr;
    try {
      for (std::size_t left = std::max<std::size_t>(bytes / bucket_count / size, 1); left > 0;
           --left) {
        void* const block = pop_or_allocate(bucket, BlockUse::other);
        std::memset(block, 0, size);
        taken = ::new (block) FreeBlock{taken};
      }
    } catch (const std::bad_alloc&) {
      // The pool keeps the blocks that it could allocate.
    }
    while (taken != nullptr) {
      FreeBlock* const next = taken->next;
      push(taken);
      taken = next;
    }
  }
  kept_bytes_ = std::max(kept_bytes_, cached_bytes());
}

void BlockPool::collect() noexcept {
  // acquire pairs with the release in a foreign thread's compare_exchange.
  FreeBlock* returned = owner_->returned.exchange(nullptr, std::memory_order_acquire);
  while (returned != nullptr) {
    FreeBlock* next = returned->next;
    push(returned);
    returned = next;
  }
}

}  // namespace weir
