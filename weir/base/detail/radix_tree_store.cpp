// Slabs of equal slots for large radix trees.
#include "weir/base/detail/radix_tree_store.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <functional>
#include <new>
#include <utility>

namespace weir::radix {

namespace {

void* allocate_aligned(std::size_t bytes, std::size_t alignment) {
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return ::operator new(bytes);
  return ::operator new(bytes, std::align_val_t{alignment});
}

void release_aligned(void* block, std::size_t bytes, std::size_t alignment) noexcept {
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
    ::operator delete(block, bytes);
  } else {
    ::operator delete(block, bytes, std::align_val_t{alignment});
  }
}

}  // namespace

/// Stands at the beginning of its memory, which is aligned to its size; slots follow.
struct Memory::Slab {
  struct FreeSlot {
    FreeSlot* next;
  };

  std::size_t slot;                // bytes of one
  std::size_t fresh = line_bytes;  // offset of what was never used
  std::size_t live = 0;            // slots in use
  FreeSlot* free = nullptr;        // slots that were used and are not
  Slab* previous = nullptr;        // in the list of slabs with room
  Slab* next = nullptr;

  bool has_room() const noexcept { return free != nullptr || fresh + slot <= slab_bytes; }

  void* take() noexcept {
    ++live;
    if (free != nullptr) return std::exchange(free, free->next);
    return reinterpret_cast<char*>(this) + std::exchange(fresh, fresh + slot);
  }

  void put(void* block) noexcept {
    --live;
    free = new (block) FreeSlot{free};
  }
};

Memory::~Memory() {
  assert(blocks_ == 0 && bytes_ == 0);
}

void Memory::swap(Memory& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(heap_small_bytes_, other.heap_small_bytes_);
  std::swap(blocks_, other.blocks_);
  std::swap(slabs_, other.slabs_);
  std::swap(open_, other.open_);
}

void* Memory::allocate(std::size_t bytes, std::size_t alignment) {
  void* block = nullptr;
  const bool small = is_small(bytes, alignment);
  if (small && heap_small_bytes_ >= heap_bytes_max) {
    const std::size_t slot = slot_for(bytes);
    Slab* slab = first_open(slot);
    if (slab == nullptr) slab = make_slab(slot);
    block = slab->take();
    if (!slab->has_room()) close(slab);
  } else {
    block = allocate_aligned(bytes, alignment);
    bytes_ += bytes;
    if (small) heap_small_bytes_ += bytes;
  }
  ++blocks_;
  return block;
}

void Memory::release(void* block, std::size_t bytes, std::size_t alignment) noexcept {
  if (Slab* slab = slab_of(block)) {
    if (!slab->has_room()) open(slab);
    slab->put(block);
    const bool spare = slab->previous == nullptr && slab->next == nullptr;
    if (slab->live == 0 && !spare) free_slab(slab);
  } else {
    release_aligned(block, bytes, alignment);
    bytes_ -= bytes;
    if (is_small(bytes, alignment)) heap_small_bytes_ -= bytes;
  }
  if (--blocks_ == 0) {
    while (!slabs_.empty()) free_slab(slabs_.back());
  }
}

Memory::Slab* Memory::slab_of(void* block) const noexcept {
  if (slabs_.empty()) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  auto* slab = reinterpret_cast<Slab*>(address & ~std::uintptr_t{slab_bytes - 1});
  return std::binary_search(slabs_.begin(), slabs_.end(), slab, std::less<>()) ? slab : nullptr;
}

Memory::Slab* Memory::make_slab(std::size_t slot) {
  slabs_.reserve(slabs_.size() + 1);
  void* memory = allocate_aligned(slab_bytes, slab_bytes);
  ::madvise(memory, slab_bytes, MADV_HUGEPAGE);  // a wish: without it everything works, slower
  auto* slab = new (memory) Slab{.slot = slot};
  static_assert(sizeof(Slab) <= line_bytes);
  slabs_.insert(std::upper_bound(slabs_.begin(), slabs_.end(), slab, std::less<>()), slab);
  bytes_ += slab_bytes;
  open(slab);
  return slab;
}

void Memory::free_slab(Slab* slab) noexcept {
  close(slab);
  slabs_.erase(std::lower_bound(slabs_.begin(), slabs_.end(), slab, std::less<>()));
  bytes_ -= slab_bytes;
  release_aligned(slab, slab_bytes, slab_bytes);
}

void Memory::open(Slab* slab) noexcept {
  Slab*& first = first_open(slab->slot);
  slab->previous = nullptr;
  slab->next = first;
  if (first != nullptr) first->previous = slab;
  first = slab;
}

void Memory::close(Slab* slab) noexcept {
  if (slab->previous != nullptr) {
    slab->previous->next = slab->next;
  } else {
    first_open(slab->slot) = slab->next;
  }
  if (slab->next != nullptr) slab->next->previous = slab->previous;
}

}  // namespace weir::radix
