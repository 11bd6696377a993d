// RadixTree<V>: an ordered map from byte strings to values, as fast as a hash table on long keys.
//
// An adaptive radix tree (Leis, Kemper, Neumann: "The Adaptive Radix Tree", ICDE 2013): inner nodes
// of 4, 16, 48 and 256 children, paths compressed to the bytes that tell keys apart. The time of
// every operation depends on the key's length, not on how many keys there are.
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

using RadixCensus = radix::Census;

/// A map from keys of any bytes (NUL and the empty key too, below 4 GiB each) to values.
/// Lifetime: a pointer to a value is good until its key is removed; insert and remove move no
/// value, and moving the tree moves none. Threads: as the standard containers; const members may
/// run side by side. Errors: std::bad_alloc from insert() leaves the tree as it was.
template <class V>
class RadixTree {
  static_assert(std::is_nothrow_destructible_v<V>);

 public:
  /// Where a key's value is, and whether this call put it there.
  struct Inserted {
    V* value;
    bool added;
  };

  /// A key in the tree, and its value; null when nothing was found.
  template <class Value>
  struct Entry {
    std::string_view key;
    Value* value = nullptr;
    explicit operator bool() const noexcept { return value != nullptr; }
  };

  RadixTree() noexcept : core_(room) {}
  RadixTree(RadixTree&& other) noexcept = default;
  RadixTree& operator=(RadixTree&& other) noexcept {
    RadixTree taken(std::move(other));
    core_.swap(taken.core_);
    return *this;
  }
  ~RadixTree() { clear(); }

  std::size_t size() const noexcept { return core_.size(); }
  bool empty() const noexcept { return size() == 0; }

  /// Makes the value of `key` from `arguments`; a key that has one keeps it, and the arguments are
  /// not touched.
  template <class... Arguments>
  Inserted insert(std::string_view key, Arguments&&... arguments) {
    const radix::Core::Place place = core_.locate(key);
    if (place.match != nullptr) return {value_of(place.match), false};
    NewLeaf leaf(core_, key);
    leaf.construct(std::forward<Arguments>(arguments)...);
    core_.link(leaf.get(), place);
    return {value_of(leaf.release()), true};
  }

  /// The value of `key`, or nullptr.
  V* find(std::string_view key) noexcept { return value_or_null(core_.find(key)); }
  const V* find(std::string_view key) const noexcept { return value_or_null(core_.find(key)); }
  bool contains(std::string_view key) const noexcept { return core_.find(key) != nullptr; }

  /// The longest key in the tree that `text` begins with; the empty key is one.
  Entry<V> longest_prefix(std::string_view text) noexcept {
    return entry<V>(core_.longest_prefix(text));
  }
  Entry<const V> longest_prefix(std::string_view text) const noexcept {
    return entry<const V>(core_.longest_prefix(text));
  }

  /// Whether there was such a key. Nodes shrink and their memory is freed at once.
  bool remove(std::string_view key) noexcept {
    radix::Leaf* leaf = core_.unlink(key);
    if (leaf == nullptr) return false;
    destroy(&core_, leaf);
    return true;
  }

  /// Removes `key` and hands over its value.
  std::optional<V> take(std::string_view key) noexcept(std::is_nothrow_move_constructible_v<V>) {
    radix::Leaf* leaf = core_.unlink(key);
    if (leaf == nullptr) return std::nullopt;
    NewLeaf owner(core_, leaf);
    return std::optional<V>(std::move(*value_of(leaf)));
  }

  /// Frees everything. Takes no memory and no stack, whatever the keys.
  void clear() noexcept { core_.drain(&core_, &destroy); }

  /// Calls a copy of `visit(std::string_view key, V& value)` for each key in byte order. One that
  /// returns a bool ends the walk by false. The tree must not change meanwhile; values may.
  template <class F>
  void walk(F visit) {
    core_.walk(&visit, &call<V, F>);
  }
  template <class F>
  void walk(F visit) const {
    core_.walk(&visit, &call<const V, F>);
  }

  /// As walk(), from the first key that is not less than `key`.
  template <class F>
  void walk_from(std::string_view key, F visit) const {
    core_.walk_from(key, &visit, &call<const V, F>);
  }

  /// As walk(), the keys that begin with `prefix`.
  template <class F>
  void walk_prefix(std::string_view prefix, F visit) const {
    core_.walk_prefix(prefix, &visit, &call<const V, F>);
  }

  /// Bytes that nodes, keys and values take from the heap; what values own is theirs. A tree above
  /// 1 MiB takes 2 MiB at a time for small blocks of equal size, and gives them back when empty.
  std::size_t memory_bytes() const noexcept { return core_.store().bytes(); }
  RadixCensus census() const noexcept { return core_.store().census(); }

 private:
  static constexpr radix::ValueRoom room = radix::ValueRoom::of<V>();

  static V* value_of(radix::Leaf* leaf) noexcept {
    return std::launder(reinterpret_cast<V*>(reinterpret_cast<char*>(leaf) - room.size));
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
    static_cast<radix::Core*>(core)->free_leaf(leaf);
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

  /// A leaf that is not, or no longer, in the tree.
  class NewLeaf {
   public:
    NewLeaf(radix::Core& core, std::string_view key) : core_(core), leaf_(core.make_leaf(key)) {}
    NewLeaf(radix::Core& core, radix::Leaf* leaf) noexcept
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
    radix::Core& core_;
    radix::Leaf* leaf_;
    bool constructed_ = false;
  };

  radix::Core core_;
};

}  // namespace weir
