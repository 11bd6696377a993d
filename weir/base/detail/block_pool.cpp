#include "weir/base/detail/block_pool.hpp"

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
  free_cached();
  const auto out = static_cast<std::ptrdiff_t>(blocks_in_use());
  // acq_rel: the one who deletes the home has seen all others finish with it.
  if (home_->orphans.fetch_add(out, std::memory_order_acq_rel) + out == 0) delete home_;
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
  kept_bytes_max_ = 0;
  until_failure_ = count + 1;
}

void* BlockPool::allocate_slowly(std::size_t bytes, std::size_t bucket, BlockUse use) {
  if (current_ != nullptr && bucket < bucket_count) return current_->take(bucket, use);
  auto* header = static_cast<Header*>(heap_allocate(sizeof(Header) + bytes));
  *header = {nullptr, bucket_count, use, 0};
  return header + 1;
}

void* BlockPool::take(std::size_t bucket, BlockUse use) {
  if (until_failure_ != 0 && --until_failure_ == 0) {
    kept_bytes_max_ = cached_bytes_max;
    throw std::bad_alloc();
  }
  // Read without order: collect() takes the list with the order that its blocks need.
  if (home_->returned.load(std::memory_order_relaxed) != nullptr) collect();
  if (free_[bucket] != nullptr) return pop(bucket, use);
  const std::size_t bytes = bucket_bytes(bucket);
  auto* header = static_cast<Header*>(heap_allocate(sizeof(Header) + bytes));
  *header = {home_, static_cast<std::uint16_t>(bucket), use, static_cast<std::uint32_t>(bytes)};
  counter_of(use).add();
  return header + 1;
}

void BlockPool::release_elsewhere(void* block) noexcept {
  Header* header = header_of(block);
  Home* home = header->home;
  if (home == nullptr) {
    std::free(header);
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

void BlockPool::prefault(std::size_t bytes) noexcept {
  if (!keeps_free_blocks) return;
  for (std::size_t bucket = 0; bucket < bucket_count; ++bucket) {
    const std::size_t size = bucket_bytes(bucket);
    FreeBlock* taken = nullptr;
    try {
      for (std::size_t left = std::max<std::size_t>(bytes / bucket_count / size, 1); left > 0;
           --left) {
        void* const block = take(bucket, BlockUse::other);
        std::memset(block, 0, size);
        taken = ::new (block) FreeBlock{taken};
      }
    } catch (const std::bad_alloc&) {
      // What there is must do.
    }
    while (taken != nullptr) {
      FreeBlock* const next = taken->next;
      give_back(taken);
      taken = next;
    }
  }
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
