// The files of a simulated platform: a tree in memory, with a space limit and losses of power.
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

class MemoryPlatform;

/// A MemoryFileSystem behaves as Linux does for one user, not root, that owns every file. The
/// owner's permission bits apply, and the umask is 022. Links do not exist. An empty /tmp exists
/// at the start. Paths without a leading slash start at the root.
/// Threads: that of its platform.
class MemoryFileSystem final : public loop::FileSystem {
 public:
  explicit MemoryFileSystem(MemoryPlatform& platform);
  MemoryFileSystem(const MemoryFileSystem&) = delete;
  MemoryFileSystem& operator=(const MemoryFileSystem&) = delete;
  ~MemoryFileSystem() override;

  Result<loop::Descriptor> open(const std::string& path, const os::FileOpenOptions& how) override;
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

  Result<FileBeneath> open_beneath(const std::string& root, const std::string& path,
                                   os::BeneathLinks links) override;
  Result<std::vector<os::DirectoryEntry>> list_beneath(const std::string& root,
                                                       const std::string& path,
                                                       os::BeneathLinks links,
                                                       std::size_t entries_max) override;
  Result<std::size_t> read_cached(int file, MutableBytes target, std::uint64_t offset) override;
  Result<std::size_t> send_file(int socket, Bytes before, const os::FilePart& part) override;

  // Functions for tests.

  /// Sets the space limit for all files, in pages of MemoryFileBytes::page_bytes. A write beyond
  /// the limit fails with ENOSPC. Synced data uses its space twice.
  void set_pages_max(std::size_t pages) noexcept { disk_.pages_max = pages; }
  std::size_t pages() const noexcept { return disk_.pages; }
  /// Makes read_cached() fail with EAGAIN, as if no file was in memory, or succeed again.
  void set_cached(bool cached) noexcept { cached_ = cached; }
  /// Sets the permission bits of a file or directory.
  /// Errors: those of path_status().
  Result<> set_permissions(const std::string& path, unsigned permissions);
  /// Restores the bytes of every file and the names in every directory, as they were when it was
  /// last synced.
  void lose_power();

 private:
  using Node = std::shared_ptr<MemoryNode>;
  /// The target of a path. `node` is null if the path does not exist. `parent` is null for the
  /// root.
  struct PathLookup {
    Node parent;
    std::string name;
    Node node;
    bool as_directory = false;  ///< true if the path ends with a slash
  };

  Result<> check_alive() const;
  Result<PathLookup> locate(const std::string& path) const;
  Result<Node> find(const std::string& path) const;
  Result<Node> find_directory(const std::string& path) const;
  Node make(os::FileKind kind, unsigned permissions);
  void insert(const PathLookup& lookup, Node node);
  void remove_entry(const PathLookup& lookup);
  static os::FileStatus status_of(const MemoryNode& node);
  /// Returns the open file.
  /// Errors: EBADF.
  Result<MemoryOpenFile*> file(int descriptor) const;
  static void forget(Node node);
  static void restore(MemoryNode& node, std::set<const MemoryNode*>& restored);

  MemoryPlatform& platform_;
  MemoryDisk disk_;
  bool cached_ = true;
  std::uint64_t inodes_ = 0;  // number of the newest file
  Node root_;
};

}  // namespace weir
