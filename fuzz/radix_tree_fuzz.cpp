// Runs any sequence of operations on an adaptive radix tree and on std::map, and compares both.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/base/detail/radix_tree.hpp"

namespace {

using weir::fuzz::require;
using Tree = weir::RadixTree<std::uint32_t>;
using Model = std::map<std::string, std::uint32_t, std::less<>>;

/// A Script reads operations from the input: a kind, and a key that is made from the previous
/// key.
class Script {
 public:
  explicit Script(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return at_ == bytes_.size(); }
  std::uint8_t byte() { return at_end() ? 0 : static_cast<std::uint8_t>(bytes_[at_++]); }

  /// Keeps a part of the last key and appends bytes, or one byte many times. Long shared prefixes
  /// and keys that are prefixes of each other then need few input bytes.
  const std::string& key() {
    const std::uint8_t shape = byte();
    key_.resize(key_.size() * (shape & 3) / 3);
    if ((shape & 4) != 0) {
      key_.append(byte(), static_cast<char>(byte()));
    } else {
      for (int left = shape >> 5; left > 0; --left) key_.push_back(static_cast<char>(byte()));
    }
    if (key_.size() > 512) key_.resize(512);
    return key_;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  std::string key_;
};

void compare_longest_prefix(const Tree& tree, const Model& model, std::string_view key) {
  auto expected = model.end();
  for (std::size_t size = key.size() + 1; size-- > 0 && expected == model.end();) {
    expected = model.find(key.substr(0, size));
  }
  const auto found = tree.longest_prefix(key);
  require(static_cast<bool>(found) == (expected != model.end()));
  if (found) require(found.key == expected->first && *found.value == expected->second);
}

/// Compares one of both walks. `keep_prefix` selects walk_prefix(), which ends after the keys
/// with the prefix.
void compare_walk(const Tree& tree, const Model& model, std::string_view key, bool keep_prefix) {
  auto expected = model.lower_bound(key);
  const auto visit = [&](std::string_view found, std::uint32_t value) {
    require(expected != model.end() && expected->first == found && expected->second == value);
    ++expected;
  };
  if (keep_prefix) {
    tree.walk_prefix(key, visit);
    require(expected == model.end() || !expected->first.starts_with(key));
  } else {
    tree.walk_from(key, visit);
    require(expected == model.end());
  }
}

void step(Tree& tree, Model& model, std::uint8_t operation, const std::string& key,
          std::uint32_t value) {
  switch (operation % 8) {
    case 0:
    case 1:
    case 2: {
      const auto inserted = tree.insert(key, value);
      const auto expected = model.try_emplace(key, value);
      require(inserted.added == expected.second);
      require(*inserted.value == expected.first->second);
      break;
    }
    case 3:
    case 4:
      require(tree.remove(key) == (model.erase(key) == 1));
      break;
    case 5:
      compare_walk(tree, model, key, true);
      break;
    case 6:
      compare_walk(tree, model, key, false);
      break;
    case 7:
      compare_longest_prefix(tree, model, key);
      break;
  }
  const std::uint32_t* found = tree.find(key);
  const auto expected = model.find(key);
  require((found != nullptr) == (expected != model.end()));
  if (found != nullptr) require(*found == expected->second);
  require(tree.size() == model.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Script script({reinterpret_cast<const char*>(data), size});
  Tree tree;
  Model model;
  std::uint32_t value = 0;
  while (!script.at_end()) {
    const std::uint8_t operation = script.byte();
    const std::string key = script.key();
    step(tree, model, operation, key, ++value);
  }
  compare_walk(tree, model, "", false);
  while (!model.empty()) {
    require(tree.remove(model.begin()->first));
    model.erase(model.begin());
  }
  require(tree.memory_bytes() == 0 && tree.stats() == weir::RadixStats{});
  return 0;
}
