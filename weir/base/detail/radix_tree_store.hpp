// Memory of one radix tree: slabs of equal slots once the tree is large, the heap before.
//
// Looking up a key in a large tree waits for memory: a node that begins with a cache line and lies
// in a huge page with its like is waited for less.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace weir::radix {

/// Gives out memory for nodes and leaves; keeps count. Small trees ask the heap, so that they cost
/// what they hold; when small blocks take `heap_bytes_max` of it, more come from slabs. A slab goes
/// back to the heap when nothing is left in it and another of its kind has room, all do with the
/// last block. Threads: the tree's. Frees nothing when destroyed: the tree has released everything
/// by then.
class Memory {
 public:
  static constexpr std::size_t heap_bytes_max = 1024 * 1024;
  static constexpr std::size_t slab_bytes = 2 * 1024 * 1024;
  static constexpr std::size_t line_bytes = 64;

  Memory() noexcept = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  void swap(Memory& other) noexcept;

  /// Throws std::bad_alloc. A block from a slab lies in one line, or begins with one.
  void* allocate(std::size_t bytes, std::size_t alignment);
  /// With the numbers that it was allocated with.
  void release(void* block, std::size_t bytes, std::size_t alignment) noexcept;

  /// Bytes taken from the heap: slabs whole, the rest as asked for.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Slab;
  static constexpr std::size_t half_line_bytes = line_bytes / 2;
  static constexpr std::size_t slot_max = 4 * line_bytes;

  /// Half a line, or whole ones.
  static constexpr std::size_t slot_for(std::size_t bytes) noexcept {
    if (bytes <= half_line_bytes) return half_line_bytes;
    return (bytes + line_bytes - 1) / line_bytes * line_bytes;
  }
  static constexpr bool is_small(std::size_t bytes, std::size_t alignment) noexcept {
    return bytes <= slot_max && alignment <= half_line_bytes;
  }

  Slab* slab_of(void* block) const noexcept;
  Slab* make_slab(std::size_t slot);
  void free_slab(Slab* slab) noexcept;
  void open(Slab* slab) noexcept;
  void close(Slab* slab) noexcept;
  Slab*& first_open(std::size_t slot) noexcept { return open_[slot / line_bytes]; }

  std::size_t bytes_ = 0;
  std::size_t heap_small_bytes_ = 0;  // of blocks that a slab could have given
  std::size_t blocks_ = 0;            // given out
  std::vector<Slab*> slabs_;          // by address, to tell their blocks from the heap's
  std::array<Slab*, slot_max / line_bytes + 1> open_{};  // lists of those with room, by slot
};

}  // namespace weir::radix
