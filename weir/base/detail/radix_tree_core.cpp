// Searching, linking and unlinking in the adaptive radix tree.
//
// Nothing here recurses: paths are as deep as the longest chain of keys that are prefixes of each
// other, which may be a million.
#include "weir/base/detail/radix_tree_core.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "weir/base/detail/fast_equal.hpp"

namespace weir::radix {
namespace {

std::uint8_t byte_at(std::string_view key, std::size_t index) noexcept {
  return static_cast<std::uint8_t>(key[index]);
}

bool holds(const Leaf* leaf, std::string_view key) noexcept {
  return same_text({leaf->bytes(), leaf->key_size}, key);
}

std::size_t common_bytes(std::string_view a, std::string_view b) noexcept {
  const std::size_t limit = std::min(a.size(), b.size());
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.begin() + limit, b.begin()).first -
                                  a.begin());
}

/// Some leaf below `ref`: its shortest key if one ends at the node, the first otherwise.
Leaf* any_leaf(Ref ref) noexcept {
  while (ref.is_inner()) {
    if (ref.node()->terminal != nullptr) return ref.node()->terminal;
    unsigned position = 0;
    ref = next_child(ref, position).ref;
  }
  return ref.leaf();
}

}  // namespace

Core::Core(Core&& other) noexcept : store_(other.store_.room()) {
  swap(other);
}

void Core::swap(Core& other) noexcept {
  std::swap(root_, other.root_);
  std::swap(size_, other.size_);
  store_.swap(other.store_);
}

Leaf* Core::find(std::string_view key) const noexcept {
  Ref ref = root_;
  while (ref.is_inner()) {
    prefetch_children(ref);
    const Node* node = ref.node();
    if (node->depth >= key.size()) {
      if (node->depth != key.size()) return nullptr;
      ref = Ref(node->terminal);
      break;
    }
    const Ref* child = child_at(ref, byte_at(key, node->depth));
    if (child == nullptr) return nullptr;
    ref = *child;
  }
  Leaf* leaf = ref.leaf();
  return leaf != nullptr && holds(leaf, key) ? leaf : nullptr;
}

// The search skips bytes, so the deepest candidate may differ from the key early on. It then tells
// how many bytes are right, and the answer is the deepest candidate no longer than that: all of
// its bytes lie on the path that the first one proved.
Leaf* Core::longest_prefix(std::string_view key) const noexcept {
  std::size_t limit = key.size();
  for (;;) {
    Leaf* candidate = nullptr;
    Ref ref = root_;
    while (ref.is_inner()) {
      const Node* node = ref.node();
      if (node->depth > limit) break;
      if (node->terminal != nullptr) candidate = node->terminal;
      if (node->depth == key.size()) break;
      const Ref* child = child_at(ref, byte_at(key, node->depth));
      if (child == nullptr) break;
      ref = *child;
    }
    if (ref && !ref.is_inner() && ref.leaf()->key_size <= limit) candidate = ref.leaf();
    if (candidate == nullptr) return nullptr;
    const std::size_t common = common_bytes(candidate->key(), key);
    if (common == candidate->key_size) return candidate;
    limit = common;
  }
}

Core::Place Core::locate(std::string_view key) const noexcept {
  Place place;
  const Ref* slot = &root_;
  place.start = slot;
  while (slot->is_inner()) {
    place.start = slot;
    prefetch_children(*slot);
    const Node* node = slot->node();
    if (node->depth >= key.size()) break;
    const Ref* child = child_at(*slot, byte_at(key, node->depth));
    if (child == nullptr) break;
    slot = child;
  }
  if (!*slot) return place;
  place.near = any_leaf(*slot);
  place.common = common_bytes(place.near->key(), key);
  if (place.common == key.size() && place.near->key_size == key.size()) place.match = place.near;
  return place;
}

void Core::link(Leaf* leaf, const Place& place) {
  assert(place.match == nullptr);
  if (place.near == nullptr) {
    root_ = Ref(leaf);
    size_ = 1;
    return;
  }
  const std::string_view key = leaf->key();
  Ref* slot = const_cast<Ref*>(place.start);  // the tree is ours to change
  if (slot->is_inner() && slot->node()->depth > place.common) slot = &root_;
  while (slot->is_inner() && slot->node()->depth < place.common) {
    slot = child_at(*slot, byte_at(key, slot->node()->depth));
  }
  if (!slot->is_inner() || slot->node()->depth != place.common) {
    fork(leaf, place, *slot);
  } else if (key.size() == place.common) {
    slot->node()->terminal = leaf;
  } else {
    store_.add_child(*slot, byte_at(key, place.common), Ref(leaf));
  }
  ++size_;
}

// Puts a new node at `slot`, above what is there, which begins with the same `common` bytes.
void Core::fork(Leaf* leaf, const Place& place, Ref& slot) {
  const auto depth = static_cast<std::uint32_t>(place.common);
  Ref ref = store_.make_node4(depth);
  const auto add = [&](std::string_view key, Ref entry) {
    if (key.size() == depth) {
      ref.node()->terminal = entry.leaf();
    } else {
      store_.add_child(ref, byte_at(key, depth), entry);
    }
  };
  add(place.near->key(), slot);
  add(leaf->key(), Ref(leaf));
  slot = ref;
}

Leaf* Core::unlink(std::string_view key) noexcept {
  Ref* parent = nullptr;
  Ref* slot = &root_;
  while (slot->is_inner() && slot->node()->depth < key.size()) {
    Ref* child = child_at(*slot, byte_at(key, slot->node()->depth));
    if (child == nullptr) return nullptr;
    parent = slot;
    slot = child;
  }
  Leaf* leaf = slot->is_inner() ? slot->node()->terminal : slot->leaf();
  if (leaf == nullptr || !holds(leaf, key)) return nullptr;
  if (slot->is_inner()) {
    store_.remove_terminal(*slot);
  } else if (parent != nullptr) {
    store_.remove_child(*parent, byte_at(key, parent->node()->depth));
  } else {
    root_ = Ref();
  }
  --size_;
  return leaf;
}

// Works without memory of its own: the terminal of a node whose turn has not come links it to the
// next such node.
void Core::drain(void* context, void (*release)(void* context, Leaf* leaf)) noexcept {
  Ref todo;
  const auto take = [&](Ref ref) {
    if (ref.is_inner()) {
      if (ref.node()->terminal != nullptr) release(context, ref.node()->terminal);
      ref.node()->terminal = todo.leaf();
      todo = ref;
    } else if (ref) {
      release(context, ref.leaf());
    }
  };
  take(std::exchange(root_, Ref()));
  while (todo) {
    const Ref node = todo;
    todo = Ref(node.node()->terminal);
    prefetch_all(node);
    unsigned position = 0;
    for (Ref child = next_child(node, position).ref; child;
         child = next_child(node, position).ref) {
      take(child);
    }
    store_.free_node(node);
  }
  size_ = 0;
}

}  // namespace weir::radix
