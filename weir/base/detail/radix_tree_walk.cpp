// Walks through the adaptive radix tree in byte order.
#include <vector>

#include "weir/base/detail/radix_tree_core.hpp"

namespace weir::radix {
namespace {

/// A Walk holds the position of a walk on its own stack, because a path may be deeper than the
/// stack of a thread.
class Walk {
 public:
  Walk(void* context, UntypedTree::Visit visit) : context_(context), visit_(visit) {}

  /// Visits everything below `ref` next. Returns false if the visit ended the walk.
  bool enter(NodeRef ref) {
    if (!ref.is_inner()) return !ref || visit_(context_, ref.leaf());
    prefetch_all(ref);
    steps_.push_back({ref, 0});
    Leaf* terminal = ref.node()->terminal;
    return terminal == nullptr || visit_(context_, terminal);
  }

  /// Visits the children of `node` with a greater byte than `byte`, after all later entries.
  void enter_after(NodeRef node, std::uint8_t byte) {
    steps_.push_back({node, position_after(node, byte)});
  }

  void run() {
    while (!steps_.empty()) {
      Step& step = steps_.back();
      const NodeRef child = next_child(step.node, step.position).ref;
      if (!child) {
        steps_.pop_back();
      } else if (!enter(child)) {
        return;
      }
    }
  }

 private:
  struct Step {
    NodeRef node;
    unsigned position;
  };

  void* context_;
  UntypedTree::Visit visit_;
  std::vector<Step> steps_;
};

}  // namespace

void UntypedTree::walk(void* context, Visit visit) const {
  Walk walk(context, visit);
  if (walk.enter(root_)) walk.run();
}

void UntypedTree::walk_prefix(std::string_view prefix, void* context, Visit visit) const {
  const InsertPoint place = locate(prefix);
  if (place.nearest == nullptr || place.common < prefix.size()) return;
  NodeRef ref = root_;
  while (ref.is_inner() && ref.node()->depth < prefix.size()) {
    ref = *child_at(ref, static_cast<std::uint8_t>(prefix[ref.node()->depth]));
  }
  Walk walk(context, visit);
  if (walk.enter(ref)) walk.run();
}

void UntypedTree::walk_from(std::string_view key, void* context, Visit visit) const {
  const InsertPoint place = locate(key);
  if (place.nearest == nullptr) return;
  Walk walk(context, visit);
  NodeRef ref = root_;
  while (ref.is_inner() && ref.node()->depth < place.common) {
    const auto byte = static_cast<std::uint8_t>(key[ref.node()->depth]);
    walk.enter_after(ref, byte);
    ref = *child_at(ref, byte);
  }
  // All keys below this node share `common` bytes with `key`, and none shares more.
  if (ref.is_inner() && ref.node()->depth == place.common && place.common < key.size()) {
    walk.enter_after(ref, static_cast<std::uint8_t>(key[place.common]));
  } else if (place.nearest->key() >= key) {
    if (!walk.enter(ref)) return;
  }
  walk.run();
}

}  // namespace weir::radix
