// One file of a simulated platform: its bytes, and the endpoint of an open file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/os/detail/io/file.hpp"
#include "weir/testing/network/detail/memory_stream.hpp"

namespace weir {

/// The space of the files of one platform.
struct MemoryDisk {
  std::size_t pages = 0;
  std::size_t pages_max = std::numeric_limits<std::size_t>::max();
};

/// The bytes of a file, with holes. Bytes that were never written read as zeros and use no space.
/// A page counts once for each copy.
class MemoryFileBytes {
 public:
  static constexpr std::size_t page_bytes = 4096;

  explicit MemoryFileBytes(MemoryDisk& disk) noexcept : disk_(&disk) {}
  MemoryFileBytes(const MemoryFileBytes& other);
  MemoryFileBytes& operator=(const MemoryFileBytes& other);
  ~MemoryFileBytes() { disk_->pages -= pages_.size(); }

  std::uint64_t size() const noexcept { return size_; }
  std::size_t read(MutableBytes target, std::uint64_t offset) const;
  /// Writes a part of `source`, at least one byte unless it is empty. Returns the number of
  /// bytes.
  /// Errors: EFBIG at or beyond os::file_offset_max; ENOSPC if there is no space for one byte.
  Result<std::size_t> write(Bytes source, std::uint64_t offset);
  void resize(std::uint64_t size);

 private:
  using Page = std::array<std::byte, page_bytes>;

  MemoryDisk* disk_;
  std::uint64_t size_ = 0;
  std::map<std::uint64_t, Page> pages_;  // by page number
};

/// A file or a directory. It lives as long as it has a name or is open.
struct MemoryNode {
  using Children = std::map<std::string, std::shared_ptr<MemoryNode>>;

  MemoryNode(os::FileKind its_kind, unsigned its_permissions, MemoryDisk& disk)
      : kind(its_kind), permissions(its_permissions), bytes(disk), synced_bytes(disk) {}

  const os::FileKind kind;
  std::uint64_t inode = 0;
  unsigned permissions;
  WallTime modified;
  MemoryFileBytes bytes;  // only for a file
  Children children;      // only for a directory
  // The state that a loss of power restores.
  MemoryFileBytes synced_bytes;
  Children synced_children;
};

/// An open file, with its access mode.
class MemoryOpenFile final : public MemoryEndpoint {
 public:
  MemoryOpenFile(std::shared_ptr<MemoryNode> node, os::FileMode mode) noexcept
      : MemoryEndpoint(Kind::file), node_(std::move(node)), mode_(mode) {}

  MemoryNode& node() const noexcept { return *node_; }
  bool readable() const noexcept {
    return mode_ == os::FileMode::read || mode_ == os::FileMode::read_write;
  }
  bool writable() const noexcept { return mode_ != os::FileMode::read; }
  bool appends() const noexcept { return mode_ == os::FileMode::append; }

 private:
  std::shared_ptr<MemoryNode> node_;
  os::FileMode mode_;
};

}  // namespace weir
