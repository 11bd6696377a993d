// Walks through the adaptive radix tree in byte order.
#include <vector>

#include "weir/base/detail/radix_tree_core.hpp"

namespace weir::radix {
namespace {

/// Where a walk stands: a stack of its own, since paths may be deeper than a thread's.
class Walk {
 public:
  Walk(void* context, Core::Visit visit) : context_(context), visit_(visit) {}

  /// Everything below `ref` comes next.
  bool enter(Ref ref) {
    if (!ref.is_inner()) return !ref || visit_(context_, ref.leaf());
    prefetch_all(ref);
    steps_.push_back({ref, 0});
    Leaf* terminal = ref.node()->terminal;
    return terminal == nullptr || visit_(context_, terminal);
  }

  /// The children of `node` whose byte is greater than `byte` come after what is entered later.
  void enter_behind(Ref node, std::uint8_t byte) {
    steps_.push_back({node, position_behind(node, byte)});
  }

  void run() {
    while (!steps_.empty()) {
      Step& step = steps_.back();
      const Ref child = next_child(step.node, step.position).ref;
      if (!child) {
        steps_.pop_back();
      } else if (!enter(child)) {
        return;
      }
    }
  }

 private:
  struct Step {
    Ref node;
    unsigned position;
  };

  void* context_;
  Core::Visit visit_;
  std::vector<Step> steps_;
};

}  // namespace

void Core::walk(void* context, Visit visit) const {
  Walk walk(context, visit);
  if (walk.enter(root_)) walk.run();
}

void Core::walk_prefix(std::string_view prefix, void* context, Visit visit) const {
  const Place place = locate(prefix);
  if (place.near == nullptr || place.common < prefix.size()) return;
  Ref ref = root_;
  while (ref.is_inner() && ref.node()->depth < prefix.size()) {
    ref = *child_at(ref, static_cast<std::uint8_t>(prefix[ref.node()->depth]));
  }
  Walk walk(context, visit);
  if (walk.enter(ref)) walk.run();
}

void Core::walk_from(std::string_view key, void* context, Visit visit) const {
  const Place place = locate(key);
  if (place.near == nullptr) return;
  Walk walk(context, visit);
  Ref ref = root_;
  while (ref.is_inner() && ref.node()->depth < place.common) {
    const auto byte = static_cast<std::uint8_t>(key[ref.node()->depth]);
    walk.enter_behind(ref, byte);
    ref = *child_at(ref, byte);
  }
  // All keys from here on down share `common` bytes with `key`, and none shares more.
  if (ref.is_inner() && ref.node()->depth == place.common && place.common < key.size()) {
    walk.enter_behind(ref, static_cast<std::uint8_t>(key[place.common]));
  } else if (place.near->key() >= key) {
    if (!walk.enter(ref)) return;
  }
  walk.run();
}

}  // namespace weir::radix
