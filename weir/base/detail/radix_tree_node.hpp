// Nodes of the adaptive radix tree: leaves, inner nodes of four sizes, and references to them.
//
// An inner node stores the index of the key byte on which it branches, and not the bytes that all
// keys below the node share. A search skips the shared bytes and compares the whole key once, at
// the leaf. A split or merge of paths therefore changes no other node. Shared prefixes of any
// length cost nothing.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace weir::radix {

/// A Leaf is one key in one allocation with its value. The value lies before the Leaf and the bytes
/// of the key lie after it. Each is found without the size of the other.
struct Leaf {
  std::uint32_t key_size;

  const char* bytes() const noexcept { return reinterpret_cast<const char*>(this + 1); }
  std::string_view key() const noexcept { return {bytes(), key_size}; }
};

enum class NodeType : std::uint8_t { leaf = 0, node4 = 1, node16 = 2, node48 = 3, node256 = 4 };

struct Node;

/// A NodeRef points to a leaf or an inner node and holds its kind in the low bits. The kind is
/// known without a read of the node. Leaves and nodes are aligned to 8. A NodeRef owns nothing.
class NodeRef {
 public:
  constexpr NodeRef() noexcept = default;
  explicit NodeRef(Leaf* leaf) noexcept : bits_(reinterpret_cast<std::uintptr_t>(leaf)) {}
  NodeRef(Node* node, NodeType kind) noexcept
      : bits_(reinterpret_cast<std::uintptr_t>(node) | static_cast<std::uintptr_t>(kind)) {}

  explicit operator bool() const noexcept { return bits_ != 0; }
  NodeType kind() const noexcept { return static_cast<NodeType>(bits_ & 7); }
  bool is_inner() const noexcept { return (bits_ & 7) != 0; }

  Leaf* leaf() const noexcept { return reinterpret_cast<Leaf*>(bits_); }
  template <class N = Node>
  N* node() const noexcept {
    return reinterpret_cast<N*>(bits_ & ~std::uintptr_t{7});
  }

 private:
  std::uintptr_t bits_ = 0;
};

/// A Node is the common first part of all inner nodes. A node has at least two entries, counting
/// its children and its terminal.
struct Node {
  std::uint32_t depth;       ///< index of the key byte on which this node branches
  std::uint16_t count = 0;   ///< number of children
  Leaf* terminal = nullptr;  ///< the leaf whose key has exactly `depth` bytes, or null
};

/// A SortedNode is the common first part of Node4 and Node16. Children are sorted by byte. Both
/// arrays have the same offset in both types, so that a single search needs no branch on the kind.
struct SortedNode : Node {
  alignas(16) std::array<std::uint8_t, 16> bytes{};
};

/// A Node4 fills one cache line.
struct Node4 : SortedNode {
  static constexpr NodeType kind = NodeType::node4;
  static constexpr unsigned capacity = 4;
  std::array<NodeRef, 4> children;
};

struct Node16 : SortedNode {
  static constexpr NodeType kind = NodeType::node16;
  static constexpr unsigned capacity = 16;
  std::array<NodeRef, 16> children;
};

static_assert(sizeof(Node4) == 64 && sizeof(Node4) == sizeof(SortedNode) + 4 * sizeof(NodeRef));

/// `slots[byte]` is the index of the child plus one, or 0 if the byte has no child.
struct Node48 : Node {
  static constexpr NodeType kind = NodeType::node48;
  static constexpr unsigned capacity = 48;
  std::uint64_t used = 0;  ///< bit i is set if children[i] is in use
  std::array<std::uint8_t, 256> slots{};
  std::array<NodeRef, 48> children;
};

struct Node256 : Node {
  static constexpr NodeType kind = NodeType::node256;
  static constexpr unsigned capacity = 256;
  std::array<NodeRef, 256> children;
};

/// Returns the index of `byte` in a small node, or a number >= count if it is absent.
#if defined(__SSE2__)
inline unsigned index_of(const SortedNode& node, std::uint8_t byte) noexcept {
  const __m128i bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(node.bytes.data()));
  const __m128i equal = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(static_cast<char>(byte)));
  return static_cast<unsigned>(
      std::countr_zero(static_cast<std::uint32_t>(_mm_movemask_epi8(equal))));
}
#else
inline unsigned index_of(const SortedNode& node, std::uint8_t byte) noexcept {
  unsigned index = 0;
  while (index < node.count && node.bytes[index] != byte) ++index;
  return index;
}
#endif

inline NodeRef* children_of(SortedNode& node) noexcept {
  return reinterpret_cast<NodeRef*>(&node + 1);
}

/// Returns the slot of the child for `byte`, or nullptr. It is inline as the search's inner loop.
inline NodeRef* child_at(NodeRef ref, std::uint8_t byte) noexcept {
  if (ref.kind() <= NodeType::node16) {
    auto& node = *ref.node<SortedNode>();
    const unsigned index = index_of(node, byte);
    return index < node.count ? children_of(node) + index : nullptr;
  }
  if (ref.kind() == NodeType::node48) {
    auto& node = *ref.node<Node48>();
    const unsigned slot = node.slots[byte];
    return slot != 0 ? &node.children[slot - 1] : nullptr;
  }
  NodeRef& child = ref.node<Node256>()->children[byte];
  return child ? &child : nullptr;
}

/// Prefetches the second cache line of the nodes whose search reads it, without a branch. Bit 1 of
/// the kind is set for these nodes; for the others the function prefetches the first line.
inline void prefetch_children(NodeRef ref) noexcept {
  static_assert(static_cast<unsigned>(NodeType::node4) == 1 &&
                static_cast<unsigned>(NodeType::node16) == 2);
  const char* start = reinterpret_cast<const char*>(ref.node());
  __builtin_prefetch(start + ((static_cast<unsigned>(ref.kind()) & 2) << 5));
}

/// A child of a node and the byte that leads to it.
struct Child {
  NodeRef ref;
  std::uint8_t byte = 0;
};

/// Returns the first child at or after `position`, in byte order, and advances `position` past it.
/// The ref is null at the end. `position` is opaque; 0 is before the first child.
Child next_child(NodeRef node, unsigned& position) noexcept;

/// Returns the position of the first child whose byte is greater than `byte`.
unsigned position_after(NodeRef node, std::uint8_t byte) noexcept;

/// Prefetches the memory of all children of a small node before a visit to each of them.
void prefetch_all(NodeRef node) noexcept;

}  // namespace weir::radix
