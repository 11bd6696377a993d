// The files of a simulated host: a tree in memory, with limits and losses of power.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "weir/loop/contract/detail/file_system.hpp"
#include "weir/testing/memory/detail/memory_file.hpp"

namespace weir {

class MemoryHost;

/// Behaves as Linux does for one user who owns everything and is not root: the owner's bits count,
/// the umask is 022. There are no links. It begins with an empty /tmp; names that do not begin with
/// a slash are looked up from the root. Threads: its host's one.
class MemoryFileSystem final : public FileSystem {
 public:
  explicit MemoryFileSystem(MemoryHost& host);
  MemoryFileSystem(const MemoryFileSystem&) = delete;
  MemoryFileSystem& operator=(const MemoryFileSystem&) = delete;
  ~MemoryFileSystem() override;

  Result<Descriptor> open(const std::string& path, const os::FileOpening& how) override;
  Result<std::size_t> read_at(int file, MutableBytes target, std::uint64_t offset) override;
  Result<std::size_t> write_at(int file, Bytes source, std::uint64_t offset) override;
  Result<> sync(int file) override;
  Result<> resize(int file, std::uint64_t size) override;
  Result<os::FileStatus> file_status(int file) override;

  Result<os::FileStatus> path_status(const std::string& path) override;
  Result<std::vector<os::DirectoryEntry>> list(const std::string& path,
                                               std::size_t entries_max) override;
  Result<> rename(const std::string& from, const std::string& to) override;
  Result<> remove(const std::string& path) override;
  Result<> make_directory(const std::string& path, unsigned permissions) override;
  Result<> sync_directory(const std::string& path) override;

  // For tests.

  /// How much room there is from now on, in all, in pages of MemoryFileBytes::page_bytes; beyond,
  /// writing fails with ENOSPC. What is synced takes its room twice.
  void set_pages_max(std::size_t pages) noexcept { disk_.pages_max = pages; }
  std::size_t pages() const noexcept { return disk_.pages; }
  /// Errors: those of path_status().
  Result<> set_permissions(const std::string& path, unsigned permissions);
  /// Every file has what it had when it was last synced, every directory the names that it had.
  void lose_power();

 private:
  using Node = std::shared_ptr<MemoryNode>;
  /// Where a path leads: `node` is empty where there is nothing, `parent` for the root.
  struct Place {
    Node parent;
    std::string name;
    Node node;
    bool as_directory = false;  ///< it ends in a slash
  };

  Result<> check_alive() const;
  Result<Place> locate(const std::string& path) const;
  Result<Node> find(const std::string& path) const;
  Result<Node> find_directory(const std::string& path) const;
  Node make(os::FileKind kind, unsigned permissions);
  void put(const Place& place, Node node);
  void take_away(const Place& place);
  static os::FileStatus status_of(const MemoryNode& node);
  /// Errors: EBADF.
  Result<MemoryOpenFile*> file(int descriptor) const;
  static void forget(Node node);
  static void restore(MemoryNode& node, std::set<const MemoryNode*>& restored);

  MemoryHost& host_;
  MemoryDisk disk_;
  Node root_;
};

}  // namespace weir
