// UntypedTree: search, linking, unlinking and walks of the radix tree without the type of values.
#pragma once

#include <cstddef>
#include <string_view>

#include "weir/base/detail/radix_tree_store.hpp"

namespace weir::radix {

/// An UntypedTree implements RadixTree<V> without the type of the values in its leaves. The owner
/// calls drain() before it destroys the tree.
/// Threads: the rule of the standard containers.
class UntypedTree {
 public:
  explicit UntypedTree(ValueLayout layout) noexcept : store_(layout) {}
  UntypedTree(UntypedTree&& other) noexcept;
  UntypedTree& operator=(UntypedTree&&) = delete;
  void swap(UntypedTree& other) noexcept;

  std::size_t size() const noexcept { return size_; }
  const Store& store() const noexcept { return store_; }

  Leaf* find(std::string_view key) const noexcept;
  Leaf* longest_prefix(std::string_view key) const noexcept;

  /// The position of a key, or the position at which it would be inserted. Valid until the tree
  /// changes.
  struct InsertPoint {
    Leaf* match = nullptr;           ///< the key's leaf, or null
    Leaf* nearest = nullptr;         ///< a leaf that shares the most bytes; null in an empty tree
    std::size_t common = 0;          ///< number of bytes that `nearest` shares with the key
    const NodeRef* start = nullptr;  ///< the reference to the last node on the search path
  };
  InsertPoint locate(std::string_view key) const noexcept;

  Leaf* make_leaf(std::string_view key) { return store_.make_leaf(key); }
  void free_leaf(Leaf* leaf) noexcept { store_.free_leaf(leaf); }

  /// Links a leaf whose key is absent at the point that locate() returned for the key.
  /// Errors: throws std::bad_alloc and then leaves the tree unchanged.
  void link(Leaf* leaf, const InsertPoint& point);

  /// Unlinks the leaf of `key`. The caller frees the leaf.
  /// Returns: the leaf, or nullptr if the tree does not have the key.
  Leaf* unlink(std::string_view key) noexcept;

  /// A walk calls this with each leaf in byte order of the keys. False ends the walk.
  using Visit = bool (*)(void* context, Leaf* leaf);
  void walk(void* context, Visit visit) const;
  void walk_from(std::string_view key, void* context, Visit visit) const;
  void walk_prefix(std::string_view prefix, void* context, Visit visit) const;

  /// Unlinks all leaves, in no particular order, and frees all nodes. `release` destroys the leaf's
  /// value and calls free_leaf().
  void drain(void* context, void (*release)(void* context, Leaf* leaf)) noexcept;

 private:
  void fork(Leaf* leaf, const InsertPoint& point, NodeRef& slot);

  NodeRef root_;
  std::size_t size_ = 0;
  Store store_;
};

}  // namespace weir::radix
