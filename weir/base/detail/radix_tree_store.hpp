// Store: creates, grows, shrinks, frees and counts the nodes and leaves of a radix tree.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "weir/base/detail/radix_tree_node.hpp"

namespace weir::radix {

// Memory of one radix tree comes from the heap while the tree is small. A large tree uses slabs of
// equal slots.
//
// A lookup in a large tree mostly waits for memory. The wait is shorter if nodes begin at a cache
// line and share a huge page.

/// A Memory allocates nodes and leaves and counts the bytes. A small tree uses the heap, so that it
/// takes only the bytes that it holds. Further small blocks come from slabs while small heap
/// blocks take at least `heap_bytes_max`. An empty slab is freed if another slab of its slot size
/// has a free slot. All slabs are freed with the last block.
/// Threads: those of the tree.
/// Lifetime: the tree has released all blocks before it destroys the Memory.
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

  /// Allocates a block. A block from a slab lies within one cache line or begins at one.
  /// Errors: throws std::bad_alloc.
  void* allocate(std::size_t bytes, std::size_t alignment);
  /// Releases a block. `bytes` and `alignment` are the arguments of its allocate() call.
  void release(void* block, std::size_t bytes, std::size_t alignment) noexcept;

  /// Returns the bytes from the heap: whole slabs, and the requested sizes of other blocks.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Slab;
  static constexpr std::size_t half_line_bytes = line_bytes / 2;
  static constexpr std::size_t slot_max = 4 * line_bytes;

  /// Returns the slot size for a block: half a cache line, or a number of whole lines.
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
  std::size_t heap_small_bytes_ = 0;  // in heap blocks that would fit into a slab
  std::size_t blocks_ = 0;            // allocated
  std::vector<Slab*> slabs_;          // sorted by address, to find a block's slab
  std::array<Slab*, slot_max / line_bytes + 1> open_{};  // with a free slot, by size
};

/// The number of nodes of each size in a tree.
struct Stats {
  std::size_t node4 = 0;
  std::size_t node16 = 0;
  std::size_t node48 = 0;
  std::size_t node256 = 0;
  friend bool operator==(const Stats&, const Stats&) = default;
};

/// A ValueLayout is the size and alignment of the space for a value before its leaf. Leaves are
/// aligned to 8, so `size` is a multiple of 8 and of `alignment`, a power of two.
struct ValueLayout {
  std::size_t size;
  std::size_t alignment;

  template <class V>
  static constexpr ValueLayout of() noexcept {
    const std::size_t alignment = alignof(V) < 8 ? 8 : alignof(V);
    return {(sizeof(V) + alignment - 1) & ~(alignment - 1), alignment};
  }
};

/// A Store allocates the nodes and leaves of one tree. It does not own them; the tree frees them.
/// Threads: those of the tree.
class Store {
 public:
  explicit Store(ValueLayout layout) noexcept : layout_(layout) {}
  void swap(Store& other) noexcept;

  /// Creates a leaf for `key`. The space for its value is raw memory.
  /// Errors: throws std::bad_alloc.
  Leaf* make_leaf(std::string_view key);
  void free_leaf(Leaf* leaf) noexcept;

  /// Creates a node without entries that branches on byte `depth`.
  /// Errors: throws std::bad_alloc.
  NodeRef make_node4(std::uint32_t depth);
  void free_node(NodeRef ref) noexcept;

  /// Adds a child for a byte that has none. A full node at `slot` is replaced by a larger one.
  /// Errors: throws std::bad_alloc and then leaves the tree unchanged.
  void add_child(NodeRef& slot, std::uint8_t byte, NodeRef child);

  /// Removes the child for `byte`, which exists. The node at `slot` is replaced by a smaller node
  /// if few children are left, or by its only entry. The call never fails; a node stays too large
  /// if there is no memory for a smaller one.
  void remove_child(NodeRef& slot, std::uint8_t byte) noexcept;

  /// Removes the terminal of the node at `slot`. The node is replaced by its child if only one is
  /// left.
  void remove_terminal(NodeRef& slot) noexcept;

  ValueLayout layout() const noexcept { return layout_; }
  std::size_t bytes() const noexcept { return memory_.bytes(); }
  Stats stats() const noexcept { return {nodes_[1], nodes_[2], nodes_[3], nodes_[4]}; }

 private:
  template <class N>
  N* make_node(const Node& head);
  template <class Larger, class Smaller>
  void grow(NodeRef& slot);
  template <class Smaller, class Larger>
  void shrink(NodeRef& slot) noexcept;
  void collapse(NodeRef& slot) noexcept;
  std::size_t leaf_bytes(std::size_t key_size) const noexcept;

  ValueLayout layout_;
  Memory memory_;
  std::array<std::size_t, 5> nodes_{};  // by NodeType
};

}  // namespace weir::radix
