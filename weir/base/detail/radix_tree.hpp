// RadixTree<V>: an ordered map from byte strings to values, as fast as a hash table on long keys.
//
// It is an adaptive radix tree (Leis, Kemper, Neumann: "The Adaptive Radix Tree", ICDE 2013). Inner
// nodes have at most 4, 16, 48 or 256 children. Paths are compressed to the bytes that distinguish
// keys. The time of every operation depends on the key's length, not on the number of keys.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/base/detail/radix_tree_core.hpp"

namespace weir {

using RadixStats = radix::Stats;

/// A RadixTree maps keys to values. A key holds any bytes, including NUL, and has less than 4 GiB;
/// the empty key is allowed.
/// Errors: insert() throws std::bad_alloc and then leaves the tree unchanged.
/// Threads: the rule of the standard containers; const members may run at the same time.
/// Lifetime: a pointer to a value is valid until its key is removed. insert(), remove() and moving
/// the tree move no value.
template <class V>
class RadixTree {
  static_assert(std::is_nothrow_destructible_v<V>);

 public:
  /// The result of insert(): the key's value, and true if this call added the key.
  struct InsertResult {
    V* value;
    bool added;
  };

  /// A key in the tree and its value. `value` is null if no key was found.
  template <class Value>
  struct Entry {
    std::string_view key;
    Value* value = nullptr;
    explicit operator bool() const noexcept { return value != nullptr; }
  };

  RadixTree() noexcept : core_(value_layout) {}
  RadixTree(RadixTree&& other) noexcept = default;
  RadixTree& operator=(RadixTree&& other) noexcept {
    RadixTree taken(std::move(other));
    core_.swap(taken.core_);
    return *this;
  }
  ~RadixTree() { clear(); }

  std::size_t size() const noexcept { return core_.size(); }
  bool empty() const noexcept { return size() == 0; }

  /// Constructs the value of `key` from `arguments`. A key that is already in the tree keeps its
  /// value, and the arguments are not touched.
  template <class... Arguments>
  InsertResult insert(std::string_view key, Arguments&&... arguments) {
    const radix::UntypedTree::InsertPoint point = core_.locate(key);
    if (point.match != nullptr) return {value_of(point.match), false};
    NewLeaf leaf(core_, key);
    leaf.construct(std::forward<Arguments>(arguments)...);
    core_.link(leaf.get(), point);
    return {value_of(leaf.release()), true};
  }

  /// Returns the value of `key`, or nullptr.
  V* find(std::string_view key) noexcept { return value_or_null(core_.find(key)); }
  const V* find(std::string_view key) const noexcept { return value_or_null(core_.find(key)); }
  bool contains(std::string_view key) const noexcept { return core_.find(key) != nullptr; }

  /// Returns the longest key in the tree that is a prefix of `text`. The empty key is a prefix of
  /// every text.
  Entry<V> longest_prefix(std::string_view text) noexcept {
    return entry<V>(core_.longest_prefix(text));
  }
  Entry<const V> longest_prefix(std::string_view text) const noexcept {
    return entry<const V>(core_.longest_prefix(text));
  }

  /// Removes `key`. Nodes shrink, and their memory is freed immediately.
  /// Returns: true if the key was in the tree.
  bool remove(std::string_view key) noexcept {
    radix::Leaf* leaf = core_.unlink(key);
    if (leaf == nullptr) return false;
    destroy(&core_, leaf);
    return true;
  }

  /// Removes `key` and returns its value, or nullopt if the tree does not have the key.
  std::optional<V> take(std::string_view key) noexcept(std::is_nothrow_move_constructible_v<V>) {
    radix::Leaf* leaf = core_.unlink(key);
    if (leaf == nullptr) return std::nullopt;
    NewLeaf owner(core_, leaf);
    return std::optional<V>(std::move(*value_of(leaf)));
  }

  /// Removes all keys. It allocates nothing and does not recurse, even for very deep trees.
  void clear() noexcept { core_.drain(&core_, &destroy); }

  /// Calls a copy of `visit(std::string_view key, V& value)` for each key in byte order. If `visit`
  /// returns a bool, false ends the walk. The tree must not change during the walk; values may.
  template <class F>
  void walk(F visit) {
    core_.walk(&visit, &call<V, F>);
  }
  template <class F>
  void walk(F visit) const {
    core_.walk(&visit, &call<const V, F>);
  }

  /// Walks like walk(), beginning with the first key that is not less than `key`.
  template <class F>
  void walk_from(std::string_view key, F visit) const {
    core_.walk_from(key, &visit, &call<const V, F>);
  }

  /// Walks like walk(), but visits only the keys that begin with `prefix`.
  template <class F>
  void walk_prefix(std::string_view prefix, F visit) const {
    core_.walk_prefix(prefix, &visit, &call<const V, F>);
  }

  /// Returns the bytes of heap memory in nodes, keys and values, without the memory that values
  /// own. A tree of more than 1 MiB allocates small blocks in slabs of 2 MiB and frees the empty
  /// slabs.
  std::size_t memory_bytes() const noexcept { return core_.store().bytes(); }
  RadixStats stats() const noexcept { return core_.store().stats(); }

 private:
  static constexpr radix::ValueLayout value_layout = radix::ValueLayout::of<V>();

  static V* value_of(radix::Leaf* leaf) noexcept {
    return std::launder(reinterpret_cast<V*>(reinterpret_cast<char*>(leaf) - value_layout.size));
  }
  static V* value_or_null(radix::Leaf* leaf) noexcept {
    return leaf == nullptr ? nullptr : value_of(leaf);
  }
  template <class Value>
  static Entry<Value> entry(radix::Leaf* leaf) noexcept {
    if (leaf == nullptr) return {};
    return {leaf->key(), value_of(leaf)};
  }

  static void destroy(void* core, radix::Leaf* leaf) noexcept {
    std::destroy_at(value_of(leaf));
    static_cast<radix::UntypedTree*>(core)->free_leaf(leaf);
  }

  template <class Value, class F>
  static bool call(void* visit, radix::Leaf* leaf) {
    auto& f = *static_cast<F*>(visit);
    Value& value = *value_of(leaf);
    if constexpr (std::is_same_v<decltype(f(leaf->key(), value)), bool>) {
      return f(leaf->key(), value);
    } else {
      f(leaf->key(), value);
      return true;
    }
  }

  /// A NewLeaf owns a leaf that is not in the tree.
  class NewLeaf {
   public:
    NewLeaf(radix::UntypedTree& core, std::string_view key)
        : core_(core), leaf_(core.make_leaf(key)) {}
    NewLeaf(radix::UntypedTree& core, radix::Leaf* leaf) noexcept
        : core_(core), leaf_(leaf), constructed_(true) {}
    NewLeaf(const NewLeaf&) = delete;
    NewLeaf& operator=(const NewLeaf&) = delete;
    ~NewLeaf() {
      if (leaf_ == nullptr) return;
      if (constructed_) std::destroy_at(value_of(leaf_));
      core_.free_leaf(leaf_);
    }

    template <class... Arguments>
    void construct(Arguments&&... arguments) {
      std::construct_at(value_of(leaf_), std::forward<Arguments>(arguments)...);
      constructed_ = true;
    }
    radix::Leaf* get() const noexcept { return leaf_; }
    radix::Leaf* release() noexcept { return std::exchange(leaf_, nullptr); }

   private:
    radix::UntypedTree& core_;
    radix::Leaf* leaf_;
    bool constructed_ = false;
  };

  radix::UntypedTree core_;
};

}  // namespace weir
