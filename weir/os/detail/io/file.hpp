// System calls on files and directories. All of them may block while the disk is busy.
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

/// The access to an opened file, and the handling of a file that exists or is missing.
enum class FileMode : std::uint8_t {
  read,        ///< reading; ENOENT if the file is missing
  read_write,  ///< reading and writing; ENOENT if the file is missing
  truncate,    ///< writing; the content is removed, and a missing file is created
  create_new,  ///< writing; EEXIST if the path exists, even as a broken link
  append,      ///< writing at the end of the file; a missing file is created
};

struct FileOpenOptions {
  FileMode mode = FileMode::read;
  unsigned permissions = 0666;  ///< mode of a created file, before the process's umask
};

enum class FileKind : std::uint8_t { file, directory, link, other };

struct FileStatus {
  FileKind kind = FileKind::other;
  std::uint64_t size = 0;    ///< in bytes
  WallTime modified;         ///< last change of the content; programs can set it
  WallTime changed;          ///< last change of the content or of the other fields
  unsigned permissions = 0;  ///< the nine bits rwxrwxrwx
  /// Number of the file in its file system. Another file with the same name has another number.
  std::uint64_t inode = 0;
  bool operator==(const FileStatus&) const = default;
};

struct DirectoryEntry {
  std::string name;
  FileKind kind = FileKind::other;
  bool operator==(const DirectoryEntry&) const = default;
};

/// The largest file offset of the kernel.
inline constexpr std::uint64_t file_offset_max = INT64_MAX;

/// Checks a path before it is passed to the kernel as a zero-terminated string.
/// Errors: EINVAL if `path` contains a zero byte, at which the kernel would end it; ENOENT if it is
/// empty.
Result<> validate_path(const std::string& path) noexcept;

/// Opens a file, close-on-exec. The file never becomes the controlling terminal of this process. A
/// device can be opened too; its reads and writes behave as the device defines.
/// Errors: the kernel's; EISDIR for a directory; Errc::unsupported for pipes and sockets, on which
/// a thread could wait forever.
Result<Fd> open_file(const std::string& path, const FileOpenOptions& how);

/// Reads bytes at `offset`.
/// Returns: the number of bytes, at least one unless `target` is empty; 0 at the end of the file.
Result<std::size_t> read_at(int file, MutableBytes target, std::uint64_t offset);
/// Writes the first bytes of `source`.
/// Returns: the number of bytes, at least one unless `source` is empty.
Result<std::size_t> write_at(int file, Bytes source, std::uint64_t offset);
/// Returns when all written bytes are on stable storage and survive a loss of power (fsync(2)).
Result<> sync_file(int file);
/// Sets the size of the file. It cuts the file or extends it with zeros.
Result<> resize_file(int file, std::uint64_t size);
Result<FileStatus> file_status(int file);

/// Returns the status of the file at `path`. Links are followed.
Result<FileStatus> path_status(const std::string& path);
/// Returns the entries of a directory without "." and "..", sorted by name.
/// Errors: the kernel's; Errc::limit_reached if the directory has more than `entries_max` entries.
Result<std::vector<DirectoryEntry>> list_directory(const std::string& path,
                                                   std::size_t entries_max);
/// Renames a file in one atomic step. An existing file at `to` is replaced.
Result<> rename_path(const std::string& from, const std::string& to);
/// Removes a file or an empty directory. A link is removed, and not its target.
Result<> remove_path(const std::string& path);
Result<> make_directory(const std::string& path, unsigned permissions);
/// Returns when the entries of the directory are on stable storage and survive a loss of power.
Result<> sync_directory(const std::string& path);

/// The symbolic links below a root folder that open_beneath() and list_beneath() follow.
enum class BeneathLinks : std::uint8_t {
  none,    ///< a link in the path, also a last one, fails with ELOOP
  inside,  ///< links whose targets are below the root; other targets fail with EXDEV
};

/// A file or a directory below a root folder.
struct FileBeneath {
  Fd file;  ///< open for reading; none for a directory
  FileStatus status;
};

/// Opens the regular file at `path`, which is relative to the folder `root`, for reading. Nothing
/// in `path` leads out of the root, also if other processes move files meanwhile (openat2(2) with
/// RESOLVE_BENEATH). Links in `root` itself are followed. An empty path is the root.
/// Returns: the file, or only the status of a directory.
/// Errors: the kernel's, such as ENOENT, ELOOP and EXDEV; Errc::unsupported for all other kinds of
/// files, and for BeneathLinks::inside on a kernel without openat2().
Result<FileBeneath> open_beneath(const std::string& root, const std::string& path,
                                 BeneathLinks links);
/// Returns the entries of a directory below `root`, as list_directory() does.
/// Errors: those of open_beneath() and of list_directory().
Result<std::vector<DirectoryEntry>> list_beneath(const std::string& root, const std::string& path,
                                                 BeneathLinks links, std::size_t entries_max);
/// Reads as read_at() does, but only bytes that are in memory. It never waits for a disk.
/// Errors: EAGAIN if the first byte is not in memory; Errc::unsupported if the file system cannot
/// tell.
Result<std::size_t> read_cached(int file, MutableBytes target, std::uint64_t offset);

/// A part of an open file.
struct FilePart {
  int file = -1;
  std::uint64_t offset = 0;
  std::size_t size = 0;
};

/// Sends `before`, and then bytes of a file without a copy (sendfile(2)), on a non-blocking stream
/// socket: as many as it takes. It waits for the disk if the bytes are not in memory.
/// Returns: the number of bytes sent, those of `before` included. It is less than the size of
/// `before` or equal if the file has no bytes there, or if its file system cannot do this.
/// Errors: EPIPE, ECONNRESET and others of the socket. SIGPIPE is not raised.
Result<std::size_t> send_file(int socket, Bytes before, const FilePart& part);

}  // namespace weir::os
