// Files and folders: the calls of the kernel, which may all block for as long as the disk does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/os/detail/io/fd.hpp"

namespace weir::os {

/// What a file is opened for, and what becomes of one that is there or is not.
enum class FileMode : std::uint8_t {
  read,      ///< ENOENT without one
  update,    ///< reading and writing; ENOENT without one
  replace,   ///< writing; what was in it is gone, and one is made where there is none
  make_new,  ///< writing; EEXIST if there is one, also as a link that leads nowhere
  append,    ///< writing, always behind its present end; one is made where there is none
};

struct FileOpening {
  FileMode mode = FileMode::read;
  unsigned permissions = 0666;  ///< of one that is made, less the process's umask
};

enum class FileKind : std::uint8_t { file, directory, link, other };

struct FileStatus {
  FileKind kind = FileKind::other;
  std::uint64_t size = 0;  ///< bytes
  WallTime modified;
  unsigned permissions = 0;  ///< the nine bits rwxrwxrwx
};

struct DirectoryEntry {
  std::string name;
  FileKind kind = FileKind::other;
  bool operator==(const DirectoryEntry&) const = default;
};

/// The largest offset that the kernel knows.
inline constexpr std::uint64_t file_offset_max = INT64_MAX;

/// What the kernel's calls would not notice. Errors: EINVAL where `path` holds a zero byte, at
/// which they would end it; ENOENT when it is empty.
Result<> check_path(const std::string& path) noexcept;

/// Close-on-exec, and never a terminal that this process would come to belong to. A device can be
/// opened, and behaves as it does. Errors: the kernel's; EISDIR for a directory; Errc::unsupported
/// for pipes and sockets, which are no files and could keep a thread waiting for ever.
Result<Fd> open_file(const std::string& path, const FileOpening& how);

/// Some bytes from `offset` on, at least one unless `target` is empty; 0: the file ends there.
Result<std::size_t> read_at(int file, MutableBytes target, std::uint64_t offset);
/// Writes some of `source`, at least one byte unless it is empty; says how many.
Result<std::size_t> write_at(int file, Bytes source, std::uint64_t offset);
/// Returns when everything written is where a loss of power leaves it (fsync(2)).
Result<> sync_file(int file);
/// Cuts the file, or lets it end in zeros.
Result<> resize_file(int file, std::uint64_t size);
Result<FileStatus> file_status(int file);

/// Links are followed.
Result<FileStatus> path_status(const std::string& path);
/// What is in a directory but "." and "..", sorted by name. Errors: the kernel's;
/// Errc::limit_reached when there are more than `entries_max`.
Result<std::vector<DirectoryEntry>> list_directory(const std::string& path,
                                                   std::size_t entries_max);
/// In one step, also over a file that is there.
Result<> rename_path(const std::string& from, const std::string& to);
/// A file (a link, not what it leads to) or an empty directory.
Result<> remove_path(const std::string& path);
Result<> make_directory(const std::string& path, unsigned permissions);
/// Returns when the names in it are where a loss of power leaves them.
Result<> sync_directory(const std::string& path);

}  // namespace weir::os
