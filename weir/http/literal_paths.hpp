// Paths without captures, and what each leads to.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "weir/base/detail/radix_tree.hpp"
#include "weir/base/detail/fast_equal.hpp"

namespace weir::http {

/// A map from paths. A length that only one path has leads straight to it, and a length that none
/// has to nothing: with the few paths of most services, one comparison finds a path or tells that
/// it is not there. Threads: const members anywhere; insert() before that.
template <class Value>
class LiteralPaths {
 public:
  /// Does nothing if the path is there already.
  void insert(std::string_view path, Value value) {
    if (!tree_.insert(path, value).added || path.size() >= by_size_.size()) return;
    Only& only = by_size_[path.size()];
    if (++only.count > 1) return;
    only.path = path;
    only.value = value;
  }

  /// The value for the path, or a default one.
  Value find(std::string_view path) const noexcept {
    if (path.size() < by_size_.size()) {
      const Only& only = by_size_[path.size()];
      if (only.count < 2)
        return only.count == 1 && same_text(only.path, path) ? only.value : Value();
    }
    const Value* const found = tree_.find(path);
    return found != nullptr ? *found : Value();
  }

 private:
  /// The path of its length, if that is the only one.
  struct Only {
    std::string path;
    Value value{};
    std::size_t count = 0;  // of paths with that length
  };

  RadixTree<Value> tree_;
  std::array<Only, 40> by_size_;
};

}  // namespace weir::http
