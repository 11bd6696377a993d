// Files: opened, read, written, listed, renamed, without a loop ever waiting for a disk.
//
// Where the backend can (io_uring), it moves the bytes; everything else, and all of it with epoll
// and poll, is done by the threads that the loops of a runtime share (weir/cores/shared_pool). What
// is promised here holds for both. Every path is a parameter that the task owns.
//
// The end of a file is a value of its own, an empty buffer; every error means that something is
// missing. Errors, beside those that are named: the kernel's (ENOENT, EACCES, ENOSPC, EMFILE …);
// EINVAL for a path with a zero byte in it; Errc::limit_reached when too much waits for a thread.
//
// Cancel, for everything here: what has not begun leaves at once with Errc::cancelled and has done
// nothing. A call of the kernel that has begun cannot be taken back: it is awaited, which takes as
// long as the disk does, and then gives its result. So memory that was lent is never touched after
// the return. Under a source that is cancelled already, nothing begins.
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

using Mode = os::FileMode;
using Kind = os::FileKind;
using Status = os::FileStatus;
using Entry = os::DirectoryEntry;

/// How a file is opened; a Mode alone will do.
struct Opening : os::FileOpening {
  Opening(Mode its_mode, unsigned its_permissions = 0666) noexcept
      : os::FileOpening{its_mode, its_permissions} {}
};

/// An open file. Its position is its own, not the kernel's: read() and write() go on where the last
/// one ended, read_at() and write_at() leave it alone. Any number of the latter may be under way at
/// once, but one read() or write() (asserted).
/// Threads: one at a time; it may go from core to core between operations. Lifetime: stays where it
/// is, and outlives what is under way (asserted). Destroying it closes it: at once, on this thread,
/// which takes long only where that frees a large file; see close(). Move-only.
class File {
 public:
  /// For open(): owns `descriptor`.
  explicit File(Descriptor descriptor) noexcept : descriptor_(std::move(descriptor)) {}
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  /// The next bytes, at least one and at most `most` (and a mebibyte); empty at the end. It may be
  /// asked again when the file has grown. Cancel: see above; the position stays where it was.
  Task<Result<Buffer>> read(std::size_t most = Buffer::default_capacity);
  /// The same from `offset` on. Errors: EINVAL beyond os::file_offset_max.
  /// Cancel: see above.
  Task<Result<Buffer>> read_at(std::uint64_t offset, std::size_t most = Buffer::default_capacity);
  /// All of `bytes`, which stay valid meanwhile, or an error; the position tells how many were
  /// written before it. They go piece by piece, a mebibyte each or what the kernel took of it; in
  /// Mode::append each piece behind whatever the end is by then. So what several append at once
  /// stays whole, as a rule, up to a mebibyte, and longer records get mixed up.
  /// Cancel: see above; a part may have been written.
  Task<Result<>> write(Bytes bytes);
  Task<Result<>> write(std::string_view text) { return write(to_bytes(text)); }
  /// The same to `offset`; what lies between the end and that reads as zeros.
  /// Cancel: see above; a part may have been written.
  Task<Result<>> write_at(std::uint64_t offset, Bytes bytes);

  /// Returns when everything written before is where a loss of power leaves it.
  /// Cancel: see above.
  Task<Result<>> sync();
  /// Cuts the file, or lets it end in zeros; the position stays.
  /// Cancel: see above.
  Task<Result<>> resize(std::uint64_t size);
  /// Cancel: see above.
  Task<Result<Status>> status();
  /// Closes it on another thread (on this one, if none is to be had). What that reports is dropped,
  /// as for every descriptor: who must know calls sync() first. Cancel: not affected.
  Task<> close();

  std::uint64_t position() const noexcept { return position_; }
  void seek(std::uint64_t position) noexcept { position_ = position; }

 private:
  class Use;

  Descriptor descriptor_;
  std::uint64_t position_ = 0;
  unsigned in_use_ = 0;  // operations under way
  bool moving_ = false;  // one of them is read() or write()
};

/// Errors: EISDIR for a directory; Errc::unsupported for a pipe or a socket.
/// Cancel: see above.
Task<Result<File>> open(std::string path, Opening how = Mode::read);

/// The whole file. Errors: Errc::limit_reached when it is longer than `bytes_max`.
/// Cancel: see above.
Task<Result<std::string>> read_file(std::string path, std::size_t bytes_max = 16 * 1024 * 1024);

/// Puts a file that holds `contents` at `path`, in one step; see replace().
/// Cancel: see replace().
Task<Result<>> write_file(std::string path, std::string contents);

/// Links are followed. Cancel: see above.
Task<Result<Status>> status(std::string path);
/// What is in a directory but "." and "..", sorted by name. Errors: Errc::limit_reached when there
/// are more than `entries_max`.
/// Cancel: see above.
Task<Result<std::vector<Entry>>> list(std::string path, std::size_t entries_max = 100'000);
/// In one step, also over a file that is there. Cancel: see above.
Task<Result<>> rename(std::string from, std::string to);
/// A file (a link, not what it leads to) or an empty directory. Cancel: see above.
Task<Result<>> remove(std::string path);
/// Errors: EEXIST. Cancel: see above.
Task<Result<>> make_directory(std::string path, unsigned permissions = 0777);

namespace detail {

/// A file on its way to a name. Once open() has succeeded, commit() or discard() ends it.
class Replacement {
 public:
  explicit Replacement(std::string path) noexcept : path_(std::move(path)) {}
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  Task<Result<>> open();
  File& file() noexcept { return file_; }
  Task<Result<>> commit();
  /// Does nothing when nothing is left to be discarded. Cancel: not affected.
  Task<> discard();

 private:
  std::string path_;
  std::string temporary_;  // empty: there is none
  File file_{Descriptor()};
};

}  // namespace detail

/// `co_await files::replace(path, write, args...)`: has `write(file, args...)`, a function that
/// returns a Task<Result<>> and takes a File& first, fill a new file, and puts that at `path` in
/// one step, over one that is there, once all of it has reached the disk. Nobody ever sees a part
/// of it under that name: not while it is written, not when `write` fails or throws or is cancelled
/// (then it is removed, and `path` is as it was), not after a loss of power. Meanwhile it is a file
/// of the same directory called ".weir-" and 16 digits; a process that is killed leaves that
/// behind. Arguments are moved in (std::ref for what is shared). Errors: what `write` returns.
/// Cancel: passed on to `write`. Once it has finished well, it either gets its name or is removed;
/// an error that comes after the name (EIO) says that it may not outlive a loss of power.
template <class Write, class... Args>
Task<Result<>> replace(std::string path, Write write, Args... args) {
  detail::Replacement replacement(std::move(path));
  if (auto opened = co_await replacement.open(); !opened) co_return opened;
  Result<> written;
  std::exception_ptr thrown;
  try {
    written = co_await std::invoke(write, replacement.file(), std::move(args)...);
    if (written) written = co_await replacement.commit();
  } catch (...) {
    thrown = std::current_exception();
  }
  co_await replacement.discard();
  if (thrown != nullptr) std::rethrow_exception(thrown);
  co_return written;
}

}  // namespace weir::files
