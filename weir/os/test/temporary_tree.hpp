// TemporaryTree: a folder for one test, which is removed with its files at the end of the test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace weir::os {

/// A TemporaryTree creates an empty folder and removes it with all its files when destroyed. It
/// throws std::runtime_error if the test cannot continue.
class TemporaryTree {
 public:
  TemporaryTree() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    root_ = name;
  }
  TemporaryTree(const TemporaryTree&) = delete;
  TemporaryTree& operator=(const TemporaryTree&) = delete;
  ~TemporaryTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  std::string root() const { return root_.string(); }
  std::string path(std::string_view name) const { return (root_ / name).string(); }

  /// Writes the file `name` (a path relative to the folder) and the folders above it.
  void write(std::string_view name, std::string_view text) const {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file) throw std::runtime_error("cannot write " + path.string());
  }

 private:
  std::filesystem::path root_;
};

}  // namespace weir::os
