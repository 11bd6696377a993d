// Ordered iteration over the children of one node.
#include "weir/base/detail/radix_tree_node.hpp"

namespace weir::radix {
namespace {

template <class Sorted>
Child next_sorted(const Sorted& node, unsigned& position) noexcept {
  if (position >= node.count) return {};
  const unsigned index = position++;
  return {node.children[index], node.bytes[index]};
}

template <class Sorted>
unsigned sorted_behind(const Sorted& node, std::uint8_t byte) noexcept {
  unsigned index = 0;
  while (index < node.count && node.bytes[index] <= byte) ++index;
  return index;
}

template <class Sorted>
void prefetch_sorted(const Sorted& node) noexcept {
  for (unsigned index = 0; index < node.count; ++index) {
    __builtin_prefetch(node.children[index].node());
  }
}

}  // namespace

Child next_child(NodeRef ref, unsigned& position) noexcept {
  switch (ref.kind()) {
    case NodeType::node4:
      return next_sorted(*ref.node<Node4>(), position);
    case NodeType::node16:
      return next_sorted(*ref.node<Node16>(), position);
    case NodeType::node48: {
      const auto& node = *ref.node<Node48>();
      while (position < 256) {
        const unsigned byte = position++;
        const unsigned slot = node.slots[byte];
        if (slot != 0) return {node.children[slot - 1], static_cast<std::uint8_t>(byte)};
      }
      return {};
    }
    case NodeType::node256: {
      const auto& node = *ref.node<Node256>();
      while (position < 256) {
        const unsigned byte = position++;
        if (node.children[byte]) return {node.children[byte], static_cast<std::uint8_t>(byte)};
      }
      return {};
    }
    case NodeType::leaf:
      break;
  }
  return {};
}

unsigned position_after(NodeRef ref, std::uint8_t byte) noexcept {
  switch (ref.kind()) {
    case NodeType::node4:
      return sorted_behind(*ref.node<Node4>(), byte);
    case NodeType::node16:
      return sorted_behind(*ref.node<Node16>(), byte);
    default:
      return byte + 1u;
  }
}

void prefetch_all(NodeRef ref) noexcept {
  if (ref.kind() == NodeType::node4) prefetch_sorted(*ref.node<Node4>());
  if (ref.kind() == NodeType::node16) prefetch_sorted(*ref.node<Node16>());
}

}  // namespace weir::radix
