// The adaptive radix tree without its values' type: searching, linking and unlinking leaves, walks.
#pragma once

#include <cstddef>
#include <string_view>

#include "weir/base/radix_tree_store.hpp"

namespace weir::radix {

/// The tree behind RadixTree<V>. Leaves hold values that it does not know: whoever uses it
/// calls drain() before it goes. Threads: as for a container.
class Core {
 public:
  explicit Core(ValueRoom room) noexcept : store_(room) {}
  Core(Core&& other) noexcept;
  Core& operator=(Core&&) = delete;
  void swap(Core& other) noexcept;

  std::size_t size() const noexcept { return size_; }
  const Store& store() const noexcept { return store_; }

  Leaf* find(std::string_view key) const noexcept;
  Leaf* longest_prefix(std::string_view key) const noexcept;

  /// Where a key is or would be. Valid until the tree changes.
  struct Place {
    Leaf* match = nullptr;       ///< the key's leaf, if there is one
    Leaf* near = nullptr;        ///< a leaf that shares the most bytes; null in an empty tree
    std::size_t common = 0;      ///< how many bytes `near` shares with the key
    const Ref* start = nullptr;  ///< the reference to the last node that the search went through
  };
  Place locate(std::string_view key) const noexcept;

  Leaf* make_leaf(std::string_view key) { return store_.make_leaf(key); }
  void free_leaf(Leaf* leaf) noexcept { store_.free_leaf(leaf); }

  /// Links a leaf whose key is absent, at the place that locate() found for it. On std::bad_alloc
  /// nothing has changed.
  void link(Leaf* leaf, const Place& place);

  /// Takes the leaf of `key` out of the tree: nullptr if there is none. The caller frees it.
  Leaf* unlink(std::string_view key) noexcept;

  /// Called with each leaf in byte order of the keys; false ends the walk.
  using Visit = bool (*)(void* context, Leaf* leaf);
  void walk(void* context, Visit visit) const;
  void walk_from(std::string_view key, void* context, Visit visit) const;
  void walk_prefix(std::string_view prefix, void* context, Visit visit) const;

  /// Takes all leaves out, in no order, and frees all nodes. `release` destroys the leaf's value
  /// and calls free_leaf().
  void drain(void* context, void (*release)(void* context, Leaf* leaf)) noexcept;

 private:
  void fork(Leaf* leaf, const Place& place, Ref& slot);

  Ref root_;
  std::size_t size_ = 0;
  Store store_;
};

}  // namespace weir::radix
