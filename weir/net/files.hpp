// Asynchronous file operations. The loop never waits for a disk.
//
// The io_uring backend reads, writes and syncs files. Threads that the loops of a runtime share do
// all other work, and all work with epoll and poll (weir/runtime/pool/detail/shared_pool.hpp). The
// contracts in this file hold for both. Every path is a parameter that the task owns.
//
// A read at the end of a file returns an empty buffer. An error always means that the operation is
// incomplete. Each function can fail with the kernel's errors (ENOENT, EACCES, ENOSPC, EMFILE …).
// It fails with EINVAL for a path that contains a zero byte, and with Errc::limit_reached if too
// many calls wait for a thread. The `Errors:` sections list additional errors.
//
// Cancel, for every task in this file: an operation that has not begun returns Errc::cancelled
// immediately and has no effect. A system call that has begun cannot be interrupted. The task waits
// for it, as long as the disk takes, and returns its result. Borrowed memory is therefore never
// touched after the return. No operation begins if the cancel source is cancelled already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/descriptor.hpp"
#include "weir/os/detail/io/file.hpp"
#include "weir/task/task.hpp"

namespace weir::files {

// Reads and writes of an open file, by the backend if it supports files, otherwise by a thread.

/// Maximum size of one request in bytes. The kernel copies cached data for io_uring on the thread
/// of the loop, which other tasks need too. One mebibyte takes 0.1 ms.
inline constexpr std::size_t transfer_max = 1024 * 1024;

/// Reads at least one byte into `target`, which is not empty.
/// Returns: the number of bytes; 0 if the file ends at or before `offset`.
/// Errors: EINVAL for an offset beyond os::file_offset_max.
/// Cancel: see the top of this file.
Task<Result<std::size_t>> read_some(int file, MutableBytes target, std::uint64_t offset);
/// Writes all of `source`. Adds the number of written bytes to `written`, also after an error.
/// Errors: EINVAL for an offset beyond os::file_offset_max.
/// Cancel: see the top of this file; a part may have been written.
Task<Result<>> write_all(int file, Bytes source, std::uint64_t offset, std::uint64_t& written);
/// Returns when all written data survives a loss of power.
/// Cancel: see the top of this file.
Task<Result<>> sync(int file);

using Mode = os::FileMode;
using Kind = os::FileKind;
using Status = os::FileStatus;
using Entry = os::DirectoryEntry;

/// Options of open(). A Mode converts to OpenOptions.
struct OpenOptions : os::FileOpenOptions {
  OpenOptions(Mode its_mode, unsigned its_permissions = 0666) noexcept
      : os::FileOpenOptions{its_mode, its_permissions} {}
};

/// An open file. The object, not the kernel, stores the position. read() and write() continue where
/// the last one ended; read_at() and write_at() do not use the position. Any number of read_at()
/// and write_at() may be pending at the same time, but only one read() or write() (asserted).
/// Move-only.
/// Threads: one at a time; the file may move to another core between operations.
/// Lifetime: no operation is pending when it is moved or destroyed (asserted). Destroying it closes
/// it immediately on this thread, which takes long only if that frees a large file; see close().
class File {
 public:
  /// Takes ownership of `descriptor`. open() uses it.
  explicit File(loop::Descriptor descriptor) noexcept : descriptor_(std::move(descriptor)) {}
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  /// Reads the next bytes, at least one and at most the smaller of `most` and transfer_max. `most`
  /// is not 0 (asserted). A call after the end returns more bytes if the file has grown meanwhile.
  /// Returns: the bytes; an empty buffer at the end.
  /// Cancel: see the top of this file; the position does not change.
  Task<Result<Buffer>> read(std::size_t most = Buffer::default_capacity);
  /// Reads as read() does, but from `offset`.
  /// Errors: EINVAL for an offset beyond os::file_offset_max.
  /// Cancel: see the top of this file.
  Task<Result<Buffer>> read_at(std::uint64_t offset, std::size_t most = Buffer::default_capacity);
  /// Writes all of `bytes`, in pieces of at most transfer_max, or fails. The position says how many
  /// bytes were written before an error. Mode::append writes each piece at the current end of the
  /// file. Several writers can therefore append at the same time: records of at most transfer_max
  /// usually stay whole, longer ones get mixed up.
  /// Cancel: see the top of this file; a part may have been written.
  /// Lifetime: `bytes` stay valid until the return.
  Task<Result<>> write(Bytes bytes);
  Task<Result<>> write(std::string_view text) { return write(to_bytes(text)); }
  /// Writes as write() does, but at `offset`. A gap between the end of the file and `offset` reads
  /// as zeros.
  /// Errors: EINVAL for an offset beyond os::file_offset_max.
  /// Cancel: see the top of this file; a part may have been written.
  /// Lifetime: `bytes` stay valid until the return.
  Task<Result<>> write_at(std::uint64_t offset, Bytes bytes);

  /// Returns when all data written before survives a loss of power.
  /// Cancel: see the top of this file.
  Task<Result<>> sync();
  /// Truncates the file or extends it with zeros. The position does not change.
  /// Cancel: see the top of this file.
  Task<Result<>> resize(std::uint64_t size);
  /// Returns the status of the open file.
  /// Cancel: see the top of this file.
  Task<Result<Status>> status();
  /// Closes the file on another thread, or on this one if no thread is available. Errors of closing
  /// are dropped, as for every descriptor; a caller that needs them calls sync() first.
  /// Cancel: has no effect.
  Task<> close();

  std::uint64_t position() const noexcept { return position_; }
  void seek(std::uint64_t position) noexcept { position_ = position; }

 private:
  class OperationGuard;

  loop::Descriptor descriptor_;
  std::uint64_t position_ = 0;
  unsigned in_use_ = 0;           // number of pending operations
  bool position_in_use_ = false;  // true while a read() or write() is pending
};

/// Opens a file.
/// Errors: EISDIR for a directory; Errc::unsupported for a pipe or a socket.
/// Cancel: see the top of this file.
Task<Result<File>> open(std::string path, OpenOptions how = Mode::read);

/// Returns the content of the whole file.
/// Errors: Errc::limit_reached if it is longer than `bytes_max`.
/// Cancel: see the top of this file.
Task<Result<std::string>> read_file(std::string path, std::size_t bytes_max = 16 * 1024 * 1024);

/// Replaces `path` atomically with a file that holds `contents`; see replace().
/// Cancel: see replace().
Task<Result<>> write_file(std::string path, std::string contents);

/// Returns the status of a file. Follows symbolic links.
/// Cancel: see the top of this file.
Task<Result<Status>> status(std::string path);
/// Returns the entries of a directory except "." and "..", sorted by name.
/// Errors: Errc::limit_reached if the directory has more than `entries_max` entries.
/// Cancel: see the top of this file.
Task<Result<std::vector<Entry>>> list(std::string path, std::size_t entries_max = 100'000);
/// Renames a file atomically. Replaces an existing file at `to`.
/// Cancel: see the top of this file.
Task<Result<>> rename(std::string from, std::string to);
/// Removes a file or an empty directory. Removes a symbolic link itself, not its target.
/// Cancel: see the top of this file.
Task<Result<>> remove(std::string path);
/// Creates one directory.
/// Errors: EEXIST if the path exists.
/// Cancel: see the top of this file.
Task<Result<>> make_directory(std::string path, unsigned permissions = 0777);

namespace detail {

/// A temporary file that becomes `path`. The caller ends it with commit() or discard() once open()
/// has succeeded.
class PendingFile {
 public:
  explicit PendingFile(std::string path) noexcept : path_(std::move(path)) {}
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  Task<Result<>> open();
  File& file() noexcept { return file_; }
  Task<Result<>> commit();
  /// Removes the temporary file, if it still exists under its temporary name.
  /// Cancel: has no effect.
  Task<> discard();

 private:
  std::string path_;
  std::string temporary_;  // path of the temporary file; empty: none
  File file_{loop::Descriptor()};
};

}  // namespace detail

/// Replaces the file at `path` atomically with a new file, or creates it. `write(file, args...)`
/// fills the new file; it takes a File& first and returns a Task<Result<>>. The new file gets its
/// name when all its data has reached the disk. A reader of `path` sees the old file or the
/// complete new one, also after a loss of power. If `write` fails, throws or is cancelled, the new
/// file is removed and `path` is unchanged. The temporary file is in the same directory; its name
/// is ".weir-" and 16 random hexadecimal digits. A killed process leaves it behind. The call fails
/// with EEXIST if eight names in a row are in use. Arguments are moved
/// in; use std::ref for shared objects.
/// Errors: those of `write`. An error after the rename (EIO) means that the new file is in place
/// and may not survive a loss of power.
/// Cancel: passed on to `write`. If `write` has succeeded, the file either gets its name or is
/// removed.
template <class Write, class... Args>
Task<Result<>> replace(std::string path, Write write, Args... args) {
  detail::PendingFile pending(std::move(path));
  if (auto opened = co_await pending.open(); !opened) co_return opened;
  Result<> written;
  std::exception_ptr thrown;
  try {
    written = co_await std::invoke(write, pending.file(), std::move(args)...);
    if (written) written = co_await pending.commit();
  } catch (...) {
    thrown = std::current_exception();
  }
  co_await pending.discard();
  if (thrown != nullptr) std::rethrow_exception(thrown);
  co_return written;
}

}  // namespace weir::files
