#include "weir/base/block_pool.hpp"

#include <bit>
#include <cassert>
#include <cstdlib>

namespace weir {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool keep_free_blocks = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool keep_free_blocks = false;  // so that the sanitizer sees each use after release
#else
constexpr bool keep_free_blocks = true;
#endif
#else
constexpr bool keep_free_blocks = true;
#endif

constexpr std::size_t small_step = 64;
constexpr std::size_t small_max = 1024;
constexpr std::size_t small_buckets = small_max / small_step;

void* heap_allocate(std::size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// What foreign threads may touch. It outlives the pool while blocks are in use elsewhere.
struct BlockPool::Home {
  static FreeBlock* closed() noexcept {
    static FreeBlock mark{nullptr};
    return &mark;
  }

  std::atomic<FreeBlock*> returned{nullptr};
  // Blocks still out after the pool was destroyed. Foreign threads may count down before the
  // destructor has counted up, so it may be negative; whoever brings it to zero deletes the home.
  std::atomic<std::ptrdiff_t> orphans{0};
};

constinit thread_local BlockPool* BlockPool::current_ = nullptr;

BlockPool::BlockPool() : home_(new Home) {}

BlockPool::~BlockPool() {
  // acquire: what foreign threads wrote into the blocks happens before they are freed here.
  // From now on a foreign release sees the mark and frees its block itself.
  FreeBlock* returned = home_->returned.exchange(Home::closed(), std::memory_order_acq_rel);
  while (returned != nullptr) {
    FreeBlock* next = returned->next;
    give_back(returned);
    returned = next;
  }
  for (FreeBlock* block : free_) {
    while (block != nullptr) {
      FreeBlock* next = block->next;
      std::free(header_of(block));
      block = next;
    }
  }
  const auto out = static_cast<std::ptrdiff_t>(in_use_);
  // acq_rel: the one who deletes the home has seen all others finish with it.
  if (home_->orphans.fetch_add(out, std::memory_order_acq_rel) + out == 0) delete home_;
}

std::size_t BlockPool::bucket_of(std::size_t bytes) noexcept {
  if (bytes <= small_max) return bytes == 0 ? 0 : (bytes - 1) / small_step;
  if (bytes > block_max) return bucket_count;
  // 1025..2048 is the first bucket behind the small ones, then 4096, and so on.
  return small_buckets + static_cast<std::size_t>(std::bit_width(bytes - 1)) - 11;
}

std::size_t BlockPool::bucket_bytes(std::size_t bucket) noexcept {
  if (bucket < small_buckets) return (bucket + 1) * small_step;
  return std::size_t{2048} << (bucket - small_buckets);
}

void* BlockPool::allocate(std::size_t bytes) {
  const std::size_t bucket = bucket_of(bytes);
  BlockPool* pool = current_;
  if (pool != nullptr && bucket < bucket_count) return pool->take(bucket);
  auto* header = static_cast<Header*>(heap_allocate(sizeof(Header) + bytes));
  *header = {nullptr, bucket_count};
  return header + 1;
}

void* BlockPool::take(std::size_t bucket) {
  if (free_[bucket] == nullptr && home_->returned.load(std::memory_order_relaxed) != nullptr) {
    collect();
  }
  FreeBlock* block = free_[bucket];
  if (block != nullptr) {
    free_[bucket] = block->next;
    cached_bytes_ -= bucket_bytes(bucket);
    ++in_use_;
    return block;
  }
  auto* header = static_cast<Header*>(heap_allocate(sizeof(Header) + bucket_bytes(bucket)));
  *header = {home_, bucket};
  ++in_use_;
  return header + 1;
}

void BlockPool::release(void* block) noexcept {
  if (block == nullptr) return;
  Header* header = header_of(block);
  Home* home = header->home;
  if (home == nullptr) {
    std::free(header);
    return;
  }
  BlockPool* pool = current_;
  if (pool != nullptr && pool->home_ == home) {
    pool->give_back(block);
    return;
  }
  auto* returning = static_cast<FreeBlock*>(block);
  // acquire on failure and success keeps the order with the destructor's exchange; release: the
  // owner that takes the list sees everything that was written to the block here.
  FreeBlock* head = home->returned.load(std::memory_order_acquire);
  while (head != Home::closed()) {
    returning->next = head;
    if (home->returned.compare_exchange_weak(head, returning, std::memory_order_acq_rel,
                                             std::memory_order_acquire)) {
      return;
    }
  }
  std::free(header);
  if (home->orphans.fetch_sub(1, std::memory_order_acq_rel) == 1) delete home;
}

void BlockPool::give_back(void* block) noexcept {
  const std::size_t bucket = header_of(block)->bucket;
  assert(in_use_ > 0);
  --in_use_;
  if (!keep_free_blocks || cached_bytes_ + bucket_bytes(bucket) > cached_bytes_max) {
    std::free(header_of(block));
    return;
  }
  auto* free_block = static_cast<FreeBlock*>(block);
  free_block->next = free_[bucket];
  free_[bucket] = free_block;
  cached_bytes_ += bucket_bytes(bucket);
}

void BlockPool::collect() noexcept {
  // acquire pairs with the release in a foreign thread's compare_exchange.
  FreeBlock* returned = home_->returned.exchange(nullptr, std::memory_order_acquire);
  while (returned != nullptr) {
    FreeBlock* next = returned->next;
    give_back(returned);
    returned = next;
  }
}

}  // namespace weir
