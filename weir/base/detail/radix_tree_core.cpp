// Search, linking and unlinking in the adaptive radix tree.
//
// No function in this file recurses. A path is as deep as the longest chain of keys that are
// prefixes of each other, which may be a million.
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

bool has_key(const Leaf* leaf, std::string_view key) noexcept {
  return fast_equal({leaf->bytes(), leaf->key_size}, key);
}

std::size_t common_bytes(std::string_view a, std::string_view b) noexcept {
  const std::size_t limit = std::min(a.size(), b.size());
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.begin() + limit, b.begin()).first -
                                  a.begin());
}

/// Returns a leaf below `ref`: the key that ends at the node if there is one, else the first leaf.
Leaf* any_leaf(NodeRef ref) noexcept {
  while (ref.is_inner()) {
    if (ref.node()->terminal != nullptr) return ref.node()->terminal;
    unsigned position = 0;
    ref = next_child(ref, position).ref;
  }
  return ref.leaf();
}

}  // namespace

UntypedTree::UntypedTree(UntypedTree&& other) noexcept : store_(other.store_.layout()) {
  swap(other);
}

void UntypedTree::swap(UntypedTree& other) noexcept {
  std::swap(root_, other.root_);
  std::swap(size_, other.size_);
  store_.swap(other.store_);
}

Leaf* UntypedTree::find(std::string_view key) const noexcept {
  NodeRef ref = root_;
  while (ref.is_inner()) {
    prefetch_children(ref);
    const Node* node = ref.node();
    if (node->depth >= key.size()) {
      if (node->depth != key.size()) return nullptr;
      ref = NodeRef(node->terminal);
      break;
    }
    const NodeRef* child = child_at(ref, byte_at(key, node->depth));
    if (child == nullptr) return nullptr;
    ref = *child;
  }
  Leaf* leaf = ref.leaf();
  return leaf != nullptr && has_key(leaf, key) ? leaf : nullptr;
}

// The search skips bytes, so the deepest candidate may differ from the key at an early byte. The
// number of common bytes then limits the next search. The result is the deepest candidate that is
// no longer than this limit, because all its bytes lie on a path that has been compared.
Leaf* UntypedTree::longest_prefix(std::string_view key) const noexcept {
  std::size_t limit = key.size();
  for (;;) {
    Leaf* candidate = nullptr;
    NodeRef ref = root_;
    while (ref.is_inner()) {
      const Node* node = ref.node();
      if (node->depth > limit) break;
      if (node->terminal != nullptr) candidate = node->terminal;
      if (node->depth == key.size()) break;
      const NodeRef* child = child_at(ref, byte_at(key, node->depth));
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

UntypedTree::InsertPoint UntypedTree::locate(std::string_view key) const noexcept {
  InsertPoint point;
  const NodeRef* slot = &root_;
  point.start = slot;
  while (slot->is_inner()) {
    point.start = slot;
    prefetch_children(*slot);
    const Node* node = slot->node();
    if (node->depth >= key.size()) break;
    const NodeRef* child = child_at(*slot, byte_at(key, node->depth));
    if (child == nullptr) break;
    slot = child;
  }
  if (!*slot) return point;
  point.nearest = any_leaf(*slot);
  point.common = common_bytes(point.nearest->key(), key);
  if (point.common == key.size() && point.nearest->key_size == key.size())
    point.match = point.nearest;
  return point;
}

void UntypedTree::link(Leaf* leaf, const InsertPoint& point) {
  assert(point.match == nullptr);
  if (point.nearest == nullptr) {
    root_ = NodeRef(leaf);
    size_ = 1;
    return;
  }
  const std::string_view key = leaf->key();
  NodeRef* slot = const_cast<NodeRef*>(point.start);  // the tree itself is not const here
  if (slot->is_inner() && slot->node()->depth > point.common) slot = &root_;
  while (slot->is_inner() && slot->node()->depth < point.common) {
    slot = child_at(*slot, byte_at(key, slot->node()->depth));
  }
  if (!slot->is_inner() || slot->node()->depth != point.common) {
    fork(leaf, point, *slot);
  } else if (key.size() == point.common) {
    slot->node()->terminal = leaf;
  } else {
    store_.add_child(*slot, byte_at(key, point.common), NodeRef(leaf));
  }
  ++size_;
}

// Puts a new node at `slot` above the present subtree, whose keys share the `common` bytes.
void UntypedTree::fork(Leaf* leaf, const InsertPoint& point, NodeRef& slot) {
  const auto depth = static_cast<std::uint32_t>(point.common);
  NodeRef ref = store_.make_node4(depth);
  const auto add = [&](std::string_view key, NodeRef entry) {
    if (key.size() == depth) {
      ref.node()->terminal = entry.leaf();
    } else {
      store_.add_child(ref, byte_at(key, depth), entry);
    }
  };
  add(point.nearest->key(), slot);
  add(leaf->key(), NodeRef(leaf));
  slot = ref;
}

Leaf* UntypedTree::unlink(std::string_view key) noexcept {
  NodeRef* parent = nullptr;
  NodeRef* slot = &root_;
  while (slot->is_inner() && slot->node()->depth < key.size()) {
    NodeRef* child = child_at(*slot, byte_at(key, slot->node()->depth));
    if (child == nullptr) return nullptr;
    parent = slot;
    slot = child;
  }
  Leaf* leaf = slot->is_inner() ? slot->node()->terminal : slot->leaf();
  if (leaf == nullptr || !has_key(leaf, key)) return nullptr;
  if (slot->is_inner()) {
    store_.remove_terminal(*slot);
  } else if (parent != nullptr) {
    store_.remove_child(*parent, byte_at(key, parent->node()->depth));
  } else {
    root_ = NodeRef();
  }
  --size_;
  return leaf;
}

// Allocates nothing. The terminal of a node that waits to be drained links it to the next such
// node.
void UntypedTree::drain(void* context, void (*release)(void* context, Leaf* leaf)) noexcept {
  NodeRef todo;
  const auto take = [&](NodeRef ref) {
    if (ref.is_inner()) {
      if (ref.node()->terminal != nullptr) release(context, ref.node()->terminal);
      ref.node()->terminal = todo.leaf();
      todo = ref;
    } else if (ref) {
      release(context, ref.leaf());
    }
  };
  take(std::exchange(root_, NodeRef()));
  while (todo) {
    const NodeRef node = todo;
    todo = NodeRef(node.node()->terminal);
    prefetch_all(node);
    unsigned position = 0;
    for (NodeRef child = next_child(node, position).ref; child;
         child = next_child(node, position).ref) {
      take(child);
    }
    store_.free_node(node);
  }
  size_ = 0;
}

}  // namespace weir::radix
