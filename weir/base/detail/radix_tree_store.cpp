// Creates, grows, shrinks and frees the nodes of a radix tree.
#include "weir/base/detail/radix_tree_store.hpp"

#include <sys/mman.h>
#include <algorithm>
#include <cassert>
#include <cstdint>
#include <functional>
#include <new>
#include <utility>

namespace weir::radix {
namespace {

// A node shrinks only when it has a few children fewer than the capacity of the smaller type. A key
// that is repeatedly added and removed then does not change the type of the node each time.
constexpr unsigned shrink_256_at = 36;
constexpr unsigned shrink_48_at = 12;
constexpr unsigned shrink_16_at = 3;

template <class Sorted>
void insert_sorted(Sorted& node, std::uint8_t byte, NodeRef child) noexcept {
  unsigned index = node.count;
  for (; index > 0 && node.bytes[index - 1] > byte; --index) {
    node.bytes[index] = node.bytes[index - 1];
    node.children[index] = node.children[index - 1];
  }
  node.bytes[index] = byte;
  node.children[index] = child;
  ++node.count;
}

void insert(Node4& node, std::uint8_t byte, NodeRef child) noexcept {
  insert_sorted(node, byte, child);
}

void insert(Node16& node, std::uint8_t byte, NodeRef child) noexcept {
  insert_sorted(node, byte, child);
}

void insert(Node48& node, std::uint8_t byte, NodeRef child) noexcept {
  const auto place = static_cast<unsigned>(std::countr_one(node.used));
  node.used |= std::uint64_t{1} << place;
  node.slots[byte] = static_cast<std::uint8_t>(place + 1);
  node.children[place] = child;
  ++node.count;
}

void insert(Node256& node, std::uint8_t byte, NodeRef child) noexcept {
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
  std::swap(layout_, other.layout_);
  memory_.swap(other.memory_);
  std::swap(nodes_, other.nodes_);
}

std::size_t Store::leaf_bytes(std::size_t key_size) const noexcept {
  return layout_.size + sizeof(Leaf) + key_size;
}

Leaf* Store::make_leaf(std::string_view key) {
  assert(key.size() <= UINT32_MAX);
  void* memory = memory_.allocate(leaf_bytes(key.size()), layout_.alignment);
  auto* leaf =
      new (static_cast<char*>(memory) + layout_.size) Leaf{static_cast<std::uint32_t>(key.size())};
  if (!key.empty()) std::memcpy(leaf + 1, key.data(), key.size());
  return leaf;
}

void Store::free_leaf(Leaf* leaf) noexcept {
  memory_.release(reinterpret_cast<char*>(leaf) - layout_.size, leaf_bytes(leaf->key_size),
                  layout_.alignment);
}

template <class N>
N* Store::make_node(const Node& head) {
  auto* node = new (memory_.allocate(sizeof(N), alignof(N))) N{};
  static_cast<Node&>(*node) = head;
  node->count = 0;
  ++nodes_[static_cast<std::size_t>(N::kind)];
  return node;
}

NodeRef Store::make_node4(std::uint32_t depth) {
  return {make_node<Node4>(Node{.depth = depth}), NodeType::node4};
}

void Store::free_node(NodeRef ref) noexcept {
  const auto release = [&]<class N>(N* node) {
    --nodes_[static_cast<std::size_t>(N::kind)];
    memory_.release(node, sizeof(N), alignof(N));
  };
  switch (ref.kind()) {
    case NodeType::node4:
      return release(ref.node<Node4>());
    case NodeType::node16:
      return release(ref.node<Node16>());
    case NodeType::node48:
      return release(ref.node<Node48>());
    case NodeType::node256:
      return release(ref.node<Node256>());
    case NodeType::leaf:
      break;
  }
  assert(false);
}

template <class To>
static void move_children(NodeRef from, To& to) noexcept {
  unsigned position = 0;
  for (Child each = next_child(from, position); each.ref; each = next_child(from, position)) {
    insert(to, each.byte, each.ref);
  }
}

template <class Larger, class Smaller>
void Store::grow(NodeRef& slot) {
  const NodeRef old = slot;
  auto* node = make_node<Larger>(*old.node());
  move_children(old, *node);
  slot = NodeRef(node, Larger::kind);
  free_node(old);
}

template <class Smaller, class Larger>
void Store::shrink(NodeRef& slot) noexcept {
  try {
    grow<Smaller, Larger>(slot);
  } catch (const std::bad_alloc&) {
    // The larger node remains in use.
  }
  // If there was no memory for a smaller node before, only one entry may be left.
  collapse(slot);
}

void Store::add_child(NodeRef& slot, std::uint8_t byte, NodeRef child) {
  const unsigned count = slot.node()->count;
  if (slot.kind() == NodeType::node4 && count == Node4::capacity) grow<Node16, Node4>(slot);
  if (slot.kind() == NodeType::node16 && count == Node16::capacity) grow<Node48, Node16>(slot);
  if (slot.kind() == NodeType::node48 && count == Node48::capacity) grow<Node256, Node48>(slot);
  switch (slot.kind()) {
    case NodeType::node4:
      return insert(*slot.node<Node4>(), byte, child);
    case NodeType::node16:
      return insert(*slot.node<Node16>(), byte, child);
    case NodeType::node48:
      return insert(*slot.node<Node48>(), byte, child);
    case NodeType::node256:
      return insert(*slot.node<Node256>(), byte, child);
    case NodeType::leaf:
      break;
  }
  assert(false);
}

void Store::remove_child(NodeRef& slot, std::uint8_t byte) noexcept {
  switch (slot.kind()) {
    case NodeType::node4:
      erase_sorted(*slot.node<Node4>(), byte);
      return collapse(slot);
    case NodeType::node16:
      erase_sorted(*slot.node<Node16>(), byte);
      if (slot.node()->count <= shrink_16_at) shrink<Node4, Node16>(slot);
      return;
    case NodeType::node48:
      erase(*slot.node<Node48>(), byte);
      if (slot.node()->count <= shrink_48_at) shrink<Node16, Node48>(slot);
      return;
    case NodeType::node256:
      slot.node<Node256>()->children[byte] = NodeRef();
      if (--slot.node()->count <= shrink_256_at) shrink<Node48, Node256>(slot);
      return;
    case NodeType::leaf:
      break;
  }
  assert(false);
}

void Store::remove_terminal(NodeRef& slot) noexcept {
  slot.node()->terminal = nullptr;
  collapse(slot);
}

// Replaces a node that has only one entry by this entry.
void Store::collapse(NodeRef& slot) noexcept {
  const NodeRef old = slot;
  Node* node = old.node();
  if (node->count + (node->terminal != nullptr ? 1 : 0) > 1) return;
  unsigned position = 0;
  slot = node->terminal != nullptr ? NodeRef(node->terminal) : next_child(old, position).ref;
  free_node(old);
}

}  // namespace weir::radix

// Slabs of equal slots for large radix trees.

namespace weir::radix {

namespace {

void* allocate_aligned(std::size_t bytes, std::size_t alignment) {
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return ::operator new(bytes);
  return ::operator new(bytes, std::align_val_t{alignment});
}

void release_aligned(void* block, std::size_t bytes, std::size_t alignment) noexcept {
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
    ::operator delete(block, bytes);
  } else {
    ::operator delete(block, bytes, std::align_val_t{alignment});
  }
}

}  // namespace

/// A Slab is the header of a memory block that is aligned to its size. The slots follow it.
struct Memory::Slab {
  struct FreeSlot {
    FreeSlot* next;
  };

  std::size_t slot;                // bytes of each slot
  std::size_t fresh = line_bytes;  // offset of the first slot that was never used
  std::size_t live = 0;            // slots in use
  FreeSlot* free = nullptr;        // slots that were used and released
  Slab* previous = nullptr;        // in the list of slabs with a free slot
  Slab* next = nullptr;

  bool has_room() const noexcept { return free != nullptr || fresh + slot <= slab_bytes; }

  void* take() noexcept {
    ++live;
    if (free != nullptr) return std::exchange(free, free->next);
    return reinterpret_cast<char*>(this) + std::exchange(fresh, fresh + slot);
  }

  void put(void* block) noexcept {
    --live;
    free = new (block) FreeSlot{free};
  }
};

Memory::~Memory() {
  assert(blocks_ == 0 && bytes_ == 0);
}

void Memory::swap(Memory& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(heap_small_bytes_, other.heap_small_bytes_);
  std::swap(blocks_, other.blocks_);
  std::swap(slabs_, other.slabs_);
  std::swap(open_, other.open_);
}

void* Memory::allocate(std::size_t bytes, std::size_t alignment) {
  void* block = nullptr;
  const bool small = is_small(bytes, alignment);
  if (small && heap_small_bytes_ >= heap_bytes_max) {
    const std::size_t slot = slot_for(bytes);
    Slab* slab = first_open(slot);
    if (slab == nullptr) slab = make_slab(slot);
    block = slab->take();
    if (!slab->has_room()) close(slab);
  } else {
    block = allocate_aligned(bytes, alignment);
    bytes_ += bytes;
    if (small) heap_small_bytes_ += bytes;
  }
  ++blocks_;
  return block;
}

void Memory::release(void* block, std::size_t bytes, std::size_t alignment) noexcept {
  if (Slab* slab = slab_of(block)) {
    if (!slab->has_room()) open(slab);
    slab->put(block);
    const bool spare = slab->previous == nullptr && slab->next == nullptr;
    if (slab->live == 0 && !spare) free_slab(slab);
  } else {
    release_aligned(block, bytes, alignment);
    bytes_ -= bytes;
    if (is_small(bytes, alignment)) heap_small_bytes_ -= bytes;
  }
  if (--blocks_ == 0) {
    while (!slabs_.empty()) free_slab(slabs_.back());
  }
}

Memory::Slab* Memory::slab_of(void* block) const noexcept {
  if (slabs_.empty()) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  auto* slab = reinterpret_cast<Slab*>(address & ~std::uintptr_t{slab_bytes - 1});
  return std::binary_search(slabs_.begin(), slabs_.end(), slab, std::less<>()) ? slab : nullptr;
}

Memory::Slab* Memory::make_slab(std::size_t slot) {
  slabs_.reserve(slabs_.size() + 1);
  void* memory = allocate_aligned(slab_bytes, slab_bytes);
  ::madvise(memory, slab_bytes, MADV_HUGEPAGE);  // only a hint; failure costs speed
  auto* slab = new (memory) Slab{.slot = slot};
  static_assert(sizeof(Slab) <= line_bytes);
  slabs_.insert(std::upper_bound(slabs_.begin(), slabs_.end(), slab, std::less<>()), slab);
  bytes_ += slab_bytes;
  open(slab);
  return slab;
}

void Memory::free_slab(Slab* slab) noexcept {
  close(slab);
  slabs_.erase(std::lower_bound(slabs_.begin(), slabs_.end(), slab, std::less<>()));
  bytes_ -= slab_bytes;
  release_aligned(slab, slab_bytes, slab_bytes);
}

void Memory::open(Slab* slab) noexcept {
  Slab*& first = first_open(slab->slot);
  slab->previous = nullptr;
  slab->next = first;
  if (first != nullptr) first->previous = slab;
  first = slab;
}

void Memory::close(Slab* slab) noexcept {
  if (slab->previous != nullptr) {
    slab->previous->next = slab->next;
  } else {
    first_open(slab->slot) = slab->next;
  }
  if (slab->next != nullptr) slab->next->previous = slab->previous;
}

}  // namespace weir::radix
