// The store of a radix tree: makes, grows, shrinks and frees its nodes and leaves, and counts them.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "weir/base/detail/radix_tree_store.hpp"
#include "weir/base/detail/radix_tree_node.hpp"

namespace weir::radix {

/// How many nodes of each size a tree has.
struct Census {
  std::size_t node4 = 0;
  std::size_t node16 = 0;
  std::size_t node48 = 0;
  std::size_t node256 = 0;
  friend bool operator==(const Census&, const Census&) = default;
};

/// The room for a value in front of its leaf. Leaves are aligned to 8, so the room is a multiple
/// of 8 and of `alignment`, a power of two.
struct ValueRoom {
  std::size_t size;
  std::size_t alignment;

  template <class V>
  static constexpr ValueRoom of() noexcept {
    const std::size_t alignment = alignof(V) < 8 ? 8 : alignof(V);
    return {(sizeof(V) + alignment - 1) & ~(alignment - 1), alignment};
  }
};

/// Allocates for one tree. Owns no node: the tree frees what it made. Threads: the tree's.
class Store {
 public:
  explicit Store(ValueRoom room) noexcept : room_(room) {}
  void swap(Store& other) noexcept;

  /// A leaf for `key`; the room for its value is raw memory. Throws std::bad_alloc.
  Leaf* make_leaf(std::string_view key);
  void free_leaf(Leaf* leaf) noexcept;

  /// A node that branches on byte `depth`, without entries. Throws std::bad_alloc.
  Ref make_node4(std::uint32_t depth);
  void free_node(Ref ref) noexcept;

  /// Adds a child for a byte that has none; the node at `slot` is replaced by a larger one when it
  /// is full. On std::bad_alloc nothing has changed.
  void add_child(Ref& slot, std::uint8_t byte, Ref child);

  /// Forgets the child for `byte`, which exists. The node at `slot` is replaced by a smaller one
  /// when few children are left, or by its only entry. Never fails: a node that cannot be replaced
  /// for want of memory stays as it is.
  void remove_child(Ref& slot, std::uint8_t byte) noexcept;

  /// Forgets the terminal of the node at `slot`, which may then be replaced by its only child.
  void remove_terminal(Ref& slot) noexcept;

  ValueRoom room() const noexcept { return room_; }
  std::size_t bytes() const noexcept { return memory_.bytes(); }
  Census census() const noexcept { return {nodes_[1], nodes_[2], nodes_[3], nodes_[4]}; }

 private:
  template <class N>
  N* make_node(const Node& head);
  template <class Larger, class Smaller>
  void grow(Ref& slot);
  template <class Smaller, class Larger>
  void shrink(Ref& slot) noexcept;
  void collapse(Ref& slot) noexcept;
  std::size_t leaf_bytes(std::size_t key_size) const noexcept;

  ValueRoom room_;
  Memory memory_;
  std::array<std::size_t, 5> nodes_{};  // by Kind
};

}  // namespace weir::radix
