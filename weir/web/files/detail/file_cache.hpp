// The files of a folder on one core: a cache with the heads of their responses, and those that are
// being sent.
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
#include "weir/web/files/detail/file_loader.hpp"

namespace weir::http {

class SentFile;

/// The number of large files that a core has open for one folder.
class OpenFiles {
 public:
  /// Counts one file as long as it lives.
  class Use {
   public:
    Use() noexcept = default;
    explicit Use(std::shared_ptr<OpenFiles> files) noexcept : files_(std::move(files)) {
      ++files_->count_;
    }
    Use(Use&&) noexcept = default;
    Use& operator=(Use&& other) noexcept {
      files_.swap(other.files_);
      return *this;
    }
    ~Use() {
      if (files_ != nullptr) --files_->count_;
    }

   private:
    std::shared_ptr<OpenFiles> files_;
  };

  std::size_t count() const noexcept { return count_; }

 private:
  std::size_t count_ = 0;
};

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
  OpenFiles::Use open;                       ///< counts `file`
  mutable std::weak_ptr<SentFile> sent;      ///< the place of a large file that is being sent

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
  /// Returns true if one of its large files is being sent.
  bool is_sent() const noexcept;
  bool has_open_file() const noexcept;
};

/// The limits of a FileCache.
struct FileCacheLimits {
  std::size_t bytes_max;    ///< of contents, heads and paths
  std::size_t entries_max;  ///< paths
  std::size_t open_files_max;
};

/// A FileCache holds entries by path, and drops those that were not used for the longest time. It
/// keeps an entry while one of its large files is being sent, so that other readers share the file.
/// Threads: those of its core.
class FileCache {
 public:
  /// Bytes of an entry beside its contents, heads and path.
  static constexpr std::size_t entry_bytes =
      sizeof(FileEntry) + variants_max * (sizeof(FileHeads) + sizeof(FileVariant)) + 512;

  explicit FileCache(const FileCacheLimits& limits) noexcept : limits_(limits) {}

  /// Returns the entry of a path, or nullptr. The entry becomes the last one to be dropped.
  /// Lifetime: until the next change of the cache, or that of a shared pointer to the entry.
  FileEntry* find(std::string_view path);
  /// Adds or replaces the entry of a path, and enforces the limits, also on this one.
  void put(std::string_view path, std::shared_ptr<FileEntry> entry);
  void remove(std::string_view path);
  /// Drops entries of which no file is being sent, until the limits hold or no such entry is left.
  void enforce_limits();

  std::size_t size() const noexcept { return used_.size(); }
  std::size_t bytes() const noexcept { return bytes_; }
  /// Returns the count of the open files, of the cache and of responses.
  const std::shared_ptr<OpenFiles>& open_files() const noexcept { return open_files_; }

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
  std::shared_ptr<OpenFiles> open_files_ = std::make_shared<OpenFiles>();
};

}  // namespace weir::http
