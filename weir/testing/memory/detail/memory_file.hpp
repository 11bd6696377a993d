// One file of a simulated host: its bytes, and what a descriptor of it refers to.
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

/// What the files of one host may fill.
struct MemoryDisk {
  std::size_t pages = 0;
  std::size_t pages_max = std::numeric_limits<std::size_t>::max();
};

/// Bytes with holes: what was never written reads as zeros and takes no room. A page that two
/// copies share is counted once for each.
class MemoryFileBytes {
 public:
  static constexpr std::size_t page_bytes = 4096;

  explicit MemoryFileBytes(MemoryDisk& disk) noexcept : disk_(&disk) {}
  MemoryFileBytes(const MemoryFileBytes& other);
  MemoryFileBytes& operator=(const MemoryFileBytes& other);
  ~MemoryFileBytes() { disk_->pages -= pages_.size(); }

  std::uint64_t size() const noexcept { return size_; }
  std::size_t read(MutableBytes target, std::uint64_t offset) const;
  /// Errors: EFBIG beyond os::file_offset_max; ENOSPC when not even one byte has room.
  Result<std::size_t> write(Bytes source, std::uint64_t offset);
  void resize(std::uint64_t size);

 private:
  using Page = std::array<std::byte, page_bytes>;

  MemoryDisk* disk_;
  std::uint64_t size_ = 0;
  std::map<std::uint64_t, Page> pages_;  // by their number
};

/// A file or a directory, which lives as long as it has a name or is open.
struct MemoryNode {
  using Children = std::map<std::string, std::shared_ptr<MemoryNode>>;

  MemoryNode(os::FileKind its_kind, unsigned its_permissions, MemoryDisk& disk)
      : kind(its_kind), permissions(its_permissions), bytes(disk), synced_bytes(disk) {}

  const os::FileKind kind;
  unsigned permissions;
  WallTime modified;
  MemoryFileBytes bytes;  // of a file
  Children children;      // of a directory
  // As a loss of power leaves it.
  MemoryFileBytes synced_bytes;
  Children synced_children;
};

/// An open file.
class MemoryOpenFile final : public MemoryEndpoint {
 public:
  MemoryOpenFile(std::shared_ptr<MemoryNode> node, os::FileMode mode) noexcept
      : MemoryEndpoint(Kind::file), node_(std::move(node)), mode_(mode) {}

  MemoryNode& node() const noexcept { return *node_; }
  bool readable() const noexcept {
    return mode_ == os::FileMode::read || mode_ == os::FileMode::update;
  }
  bool writable() const noexcept { return mode_ != os::FileMode::read; }
  bool appends() const noexcept { return mode_ == os::FileMode::append; }

 private:
  std::shared_ptr<MemoryNode> node_;
  os::FileMode mode_;
};

}  // namespace weir
