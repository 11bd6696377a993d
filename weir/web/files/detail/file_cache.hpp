// The cache of one core: files of a folder with the heads of their responses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/http/message/body.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/loop/contract/detail/descriptor.hpp"
#include "weir/os/detail/io/file.hpp"
#include "weir/web/encoding/accept_encoding.hpp"

namespace weir::http {

/// One version of a file, or of a precompressed neighbour. Responses share it with the cache.
struct FileVariant {
  ContentCoding coding = ContentCoding::identity;
  os::FileStatus status;
  /// True if the file had not changed for some time when it was read. Otherwise a later change may
  /// have the same status, and the file is read again.
  bool settled = false;
  std::string etag;
  WallTime modified;  ///< not later than the time at which the file was read (RFC 9110 §8.8.2.1)
  std::string last_modified;
  std::shared_ptr<const std::string> bytes;  ///< of a small file; otherwise nullptr
  loop::Descriptor file;                     ///< of a large file

  std::uint64_t size() const noexcept { return status.size; }
};

/// A version with the headers of its responses.
struct FileHeads {
  std::shared_ptr<const FileVariant> variant;
  Headers ok;            ///< for 200 and 206
  Headers not_modified;  ///< for 304
};

/// A FileEntry is the result of looking up one path.
struct FileEntry : std::enable_shared_from_this<FileEntry> {
  Instant checked{};      ///< time of the last comparison with the file
  bool checking = false;  ///< true while a request compares it
  bool is_directory = false;
  MediaType type = "application/octet-stream";
  std::string own_type;       ///< the media type of an ExtensionType; empty: `type`
  std::string cache_control;  ///< empty: none
  /// The file, and its neighbours in the order of preference; empty for a directory.
  std::vector<FileHeads> variants;

  std::size_t bytes() const noexcept;
  std::size_t open_files() const noexcept;
};

/// The limits of a FileCache.
struct FileCacheLimits {
  std::size_t bytes_max;
  std::size_t entries_max;
  std::size_t open_files_max;
};

/// A FileCache holds entries by path, and drops those that were not used for the longest time.
/// Threads: those of its core.
class FileCache {
 public:
  explicit FileCache(const FileCacheLimits& limits) noexcept : limits_(limits) {}

  /// Returns the entry of a path, or nullptr. The entry becomes the last one to be dropped.
  /// Lifetime: until the next change of the cache, or that of a shared pointer to the entry.
  FileEntry* find(std::string_view path);
  /// Adds or replaces the entry of a path. Drops entries, also this one, until all limits hold.
  void put(std::string_view path, std::shared_ptr<FileEntry> entry);
  void remove(std::string_view path);

  std::size_t size() const noexcept { return used_.size(); }
  std::size_t bytes() const noexcept { return bytes_; }
  std::size_t open_files() const noexcept { return open_files_; }

 private:
  struct Node {
    std::string path;
    std::shared_ptr<FileEntry> entry;
  };
  using Nodes = std::list<Node>;

  void drop(Nodes::iterator node);

  FileCacheLimits limits_;
  Nodes used_;                                                     // the one used last is the first
  std::unordered_map<std::string_view, Nodes::iterator> by_path_;  // views of Node::path
  std::size_t bytes_ = 0;
  std::size_t open_files_ = 0;
};

}  // namespace weir::http
