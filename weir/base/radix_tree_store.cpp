// Making, growing, shrinking and freeing the nodes of a radix tree.
#include "weir/base/radix_tree_store.hpp"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

namespace weir::radix {
namespace {

// A node shrinks some children below the smaller one's capacity, so that a key that comes and goes
// does not make it change back and forth.
constexpr unsigned shrink_256_at = 36;
constexpr unsigned shrink_48_at = 12;
constexpr unsigned shrink_16_at = 3;

template <class Sorted>
void insert_sorted(Sorted& node, std::uint8_t byte, Ref child) noexcept {
  unsigned index = node.count;
  for (; index > 0 && node.bytes[index - 1] > byte; --index) {
    node.bytes[index] = node.bytes[index - 1];
    node.children[index] = node.children[index - 1];
  }
  node.bytes[index] = byte;
  node.children[index] = child;
  ++node.count;
}

void insert(Node4& node, std::uint8_t byte, Ref child) noexcept {
  insert_sorted(node, byte, child);
}

void insert(Node16& node, std::uint8_t byte, Ref child) noexcept {
  insert_sorted(node, byte, child);
}

void insert(Node48& node, std::uint8_t byte, Ref child) noexcept {
  const auto place = static_cast<unsigned>(std::countr_one(node.used));
  node.used |= std::uint64_t{1} << place;
  node.slots[byte] = static_cast<std::uint8_t>(place + 1);
  node.children[place] = child;
  ++node.count;
}

void insert(Node256& node, std::uint8_t byte, Ref child) noexcept {
  node.children[byte] = child;
  ++node.count;
}

template <class Sorted>
void erase_sorted(Sorted& node, std::uint8_t byte) noexcept {
  const unsigned found = index_of(node, byte);
  --node.count;
  for (unsigned index = found; index < node.count; ++index) {
    node.bytes[index] = node.bytes[index + 1];
    node.children[index] = node.children[index + 1];
  }
}

void erase(Node48& node, std::uint8_t byte) noexcept {
  const unsigned place = node.slots[byte] - 1u;
  node.used &= ~(std::uint64_t{1} << place);
  node.slots[byte] = 0;
  --node.count;
}

}  // namespace

void Store::swap(Store& other) noexcept {
  std::swap(room_, other.room_);
  memory_.swap(other.memory_);
  std::swap(nodes_, other.nodes_);
}

std::size_t Store::leaf_bytes(std::size_t key_size) const noexcept {
  return room_.size + sizeof(Leaf) + key_size;
}

Leaf* Store::make_leaf(std::string_view key) {
  assert(key.size() <= UINT32_MAX);
  void* memory = memory_.allocate(leaf_bytes(key.size()), room_.alignment);
  auto* leaf =
      new (static_cast<char*>(memory) + room_.size) Leaf{static_cast<std::uint32_t>(key.size())};
  if (!key.empty()) std::memcpy(leaf + 1, key.data(), key.size());
  return leaf;
}

void Store::free_leaf(Leaf* leaf) noexcept {
  memory_.release(reinterpret_cast<char*>(leaf) - room_.size, leaf_bytes(leaf->key_size),
                  room_.alignment);
}

template <class N>
N* Store::make_node(const Node& head) {
  auto* node = new (memory_.allocate(sizeof(N), alignof(N))) N{};
  static_cast<Node&>(*node) = head;
  node->count = 0;
  ++nodes_[static_cast<std::size_t>(N::kind)];
  return node;
}

Ref Store::make_node4(std::uint32_t depth) {
  return {make_node<Node4>(Node{.depth = depth}), Kind::node4};
}

void Store::free_node(Ref ref) noexcept {
  const auto release = [&]<class N>(N* node) {
    --nodes_[static_cast<std::size_t>(N::kind)];
    memory_.release(node, sizeof(N), alignof(N));
  };
  switch (ref.kind()) {
    case Kind::node4:
      return release(ref.node<Node4>());
    case Kind::node16:
      return release(ref.node<Node16>());
    case Kind::node48:
      return release(ref.node<Node48>());
    case Kind::node256:
      return release(ref.node<Node256>());
    case Kind::leaf:
      break;
  }
  assert(false);
}

template <class To>
static void move_children(Ref from, To& to) noexcept {
  unsigned position = 0;
  for (Child each = next_child(from, position); each.ref; each = next_child(from, position)) {
    insert(to, each.byte, each.ref);
  }
}

template <class Larger, class Smaller>
void Store::grow(Ref& slot) {
  const Ref old = slot;
  auto* node = make_node<Larger>(*old.node());
  move_children(old, *node);
  slot = Ref(node, Larger::kind);
  free_node(old);
}

template <class Smaller, class Larger>
void Store::shrink(Ref& slot) noexcept {
  try {
    grow<Smaller, Larger>(slot);
  } catch (const std::bad_alloc&) {
    // The larger node serves as well.
  }
}

void Store::add_child(Ref& slot, std::uint8_t byte, Ref child) {
  const unsigned count = slot.node()->count;
  if (slot.kind() == Kind::node4 && count == Node4::capacity) grow<Node16, Node4>(slot);
  if (slot.kind() == Kind::node16 && count == Node16::capacity) grow<Node48, Node16>(slot);
  if (slot.kind() == Kind::node48 && count == Node48::capacity) grow<Node256, Node48>(slot);
  switch (slot.kind()) {
    case Kind::node4:
      return insert(*slot.node<Node4>(), byte, child);
    case Kind::node16:
      return insert(*slot.node<Node16>(), byte, child);
    case Kind::node48:
      return insert(*slot.node<Node48>(), byte, child);
    case Kind::node256:
      return insert(*slot.node<Node256>(), byte, child);
    case Kind::leaf:
      break;
  }
  assert(false);
}

void Store::remove_child(Ref& slot, std::uint8_t byte) noexcept {
  switch (slot.kind()) {
    case Kind::node4:
      erase_sorted(*slot.node<Node4>(), byte);
      return collapse(slot);
    case Kind::node16:
      erase_sorted(*slot.node<Node16>(), byte);
      if (slot.node()->count <= shrink_16_at) shrink<Node4, Node16>(slot);
      return;
    case Kind::node48:
      erase(*slot.node<Node48>(), byte);
      if (slot.node()->count <= shrink_48_at) shrink<Node16, Node48>(slot);
      return;
    case Kind::node256:
      slot.node<Node256>()->children[byte] = Ref();
      if (--slot.node()->count <= shrink_256_at) shrink<Node48, Node256>(slot);
      return;
    case Kind::leaf:
      break;
  }
  assert(false);
}

void Store::remove_terminal(Ref& slot) noexcept {
  slot.node()->terminal = nullptr;
  collapse(slot);
}

// A node with one entry branches no longer.
void Store::collapse(Ref& slot) noexcept {
  const Ref old = slot;
  Node* node = old.node();
  if (node->count + (node->terminal != nullptr ? 1 : 0) > 1) return;
  unsigned position = 0;
  slot = node->terminal != nullptr ? Ref(node->terminal) : next_child(old, position).ref;
  free_node(old);
}

}  // namespace weir::radix
