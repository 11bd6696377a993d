// The nodes of the adaptive radix tree: leaves, the four inner sizes, and references to them.
//
// An inner node stores the index of the one key byte it branches on, not the bytes that all keys
// below it share: a search skips those and compares the whole key once, at the leaf. So a split or
// a merge of paths changes no other node, and shared prefixes of any length cost nothing.
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

/// One key, in one allocation with its value: the value in front of it, the key's bytes behind.
/// Both are reached without knowing the other's size.
struct Leaf {
  std::uint32_t key_size;

  const char* bytes() const noexcept { return reinterpret_cast<const char*>(this + 1); }
  std::string_view key() const noexcept { return {bytes(), key_size}; }
};

enum class Kind : std::uint8_t { leaf = 0, node4 = 1, node16 = 2, node48 = 3, node256 = 4 };

struct Node;

/// A pointer to a leaf or an inner node with its kind in the low bits, so that the kind is known
/// before the memory is touched. Leaves and nodes are aligned to 8. Owns nothing.
class Ref {
 public:
  constexpr Ref() noexcept = default;
  explicit Ref(Leaf* leaf) noexcept : bits_(reinterpret_cast<std::uintptr_t>(leaf)) {}
  Ref(Node* node, Kind kind) noexcept
      : bits_(reinterpret_cast<std::uintptr_t>(node) | static_cast<std::uintptr_t>(kind)) {}

  explicit operator bool() const noexcept { return bits_ != 0; }
  Kind kind() const noexcept { return static_cast<Kind>(bits_ & 7); }
  bool is_inner() const noexcept { return (bits_ & 7) != 0; }

  Leaf* leaf() const noexcept { return reinterpret_cast<Leaf*>(bits_); }
  template <class N = Node>
  N* node() const noexcept {
    return reinterpret_cast<N*>(bits_ & ~std::uintptr_t{7});
  }

 private:
  std::uintptr_t bits_ = 0;
};

/// What all inner nodes begin with. A node has at least two entries: children and terminal
/// together.
struct Node {
  std::uint32_t depth;       ///< index of the key byte that this node branches on
  std::uint16_t count = 0;   ///< number of children
  Leaf* terminal = nullptr;  ///< the key that ends here: it has exactly `depth` bytes
};

/// What the two small nodes share: children sorted by byte, and both arrays at the same place, so
/// that one search without a branch on the kind serves both.
struct SortedNode : Node {
  alignas(16) std::array<std::uint8_t, 16> bytes{};
};

/// One cache line.
struct Node4 : SortedNode {
  static constexpr Kind kind = Kind::node4;
  static constexpr unsigned capacity = 4;
  std::array<Ref, 4> children;
};

struct Node16 : SortedNode {
  static constexpr Kind kind = Kind::node16;
  static constexpr unsigned capacity = 16;
  std::array<Ref, 16> children;
};

static_assert(sizeof(Node4) == 64 && sizeof(Node4) == sizeof(SortedNode) + 4 * sizeof(Ref));

/// `slots[byte]` is one more than the place of the child, 0 where there is none.
struct Node48 : Node {
  static constexpr Kind kind = Kind::node48;
  static constexpr unsigned capacity = 48;
  std::uint64_t used = 0;  ///< bit i: children[i] is taken
  std::array<std::uint8_t, 256> slots{};
  std::array<Ref, 48> children;
};

struct Node256 : Node {
  static constexpr Kind kind = Kind::node256;
  static constexpr unsigned capacity = 256;
  std::array<Ref, 256> children;
};

/// Where `byte` is among a small node's bytes: an index, or something >= count.
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

inline Ref* children_of(SortedNode& node) noexcept {
  return reinterpret_cast<Ref*>(&node + 1);
}

/// The place of the child for `byte`, or nullptr. Inline: this is the search's inner loop.
inline Ref* child_at(Ref ref, std::uint8_t byte) noexcept {
  if (ref.kind() <= Kind::node16) {
    auto& node = *ref.node<SortedNode>();
    const unsigned index = index_of(node, byte);
    return index < node.count ? children_of(node) + index : nullptr;
  }
  if (ref.kind() == Kind::node48) {
    auto& node = *ref.node<Node48>();
    const unsigned slot = node.slots[byte];
    return slot != 0 ? &node.children[slot - 1] : nullptr;
  }
  Ref& child = ref.node<Node256>()->children[byte];
  return child ? &child : nullptr;
}

/// Asks for the line of a node's children that a search reads behind the first, without a branch:
/// bit 1 of the kind is set for the nodes that have one.
inline void prefetch_children(Ref ref) noexcept {
  static_assert(static_cast<unsigned>(Kind::node4) == 1 &&
                static_cast<unsigned>(Kind::node16) == 2);
  const char* start = reinterpret_cast<const char*>(ref.node());
  __builtin_prefetch(start + ((static_cast<unsigned>(ref.kind()) & 2) << 5));
}

/// A child in byte order. `position` is opaque: 0 is before the first, next_child() advances it.
struct Child {
  Ref ref;
  std::uint8_t byte = 0;
};

/// The first child at or after `position`, which then is behind it; a null ref at the end.
Child next_child(Ref node, unsigned& position) noexcept;

/// The position of the first child whose byte is greater than `byte`.
unsigned position_behind(Ref node, std::uint8_t byte) noexcept;

/// Asks for the memory of all children of a small node, which are about to be visited.
void prefetch_all(Ref node) noexcept;

}  // namespace weir::radix
