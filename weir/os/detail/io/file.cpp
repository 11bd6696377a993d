#include "weir/os/detail/io/file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

namespace weir::os {
namespace {

/// Repeats the call while a signal interrupts it. Errors: the errno of a negative result.
template <class Call>
auto uninterrupted(Call call) -> Result<decltype(call())> {
  for (;;) {
    const auto result = call();
    if (result >= 0) return result;
    if (errno != EINTR) return fail(system_error(errno));
  }
}

template <class Call>
Result<> done(Call call) {
  WEIR_TRY(uninterrupted(call));
  return {};
}

/// Calls done() for a call that takes a path, after a check of the path.
template <class Call>
Result<> done_at(const std::string& path, Call call) {
  if (auto checked = validate_path(path); !checked) return checked;
  return done(call);
}

/// Converts an offset to the kernel's type.
Result<off_t> kernel_offset(std::uint64_t offset) {
  if (offset > file_offset_max) return fail(system_error(EINVAL));
  return static_cast<off_t>(offset);
}

int flags_of(FileMode mode) noexcept {
  switch (mode) {
    case FileMode::read:
      return O_RDONLY;
    case FileMode::read_write:
      return O_RDWR;
    case FileMode::truncate:
      return O_WRONLY | O_CREAT | O_TRUNC;
    case FileMode::create_new:
      return O_WRONLY | O_CREAT | O_EXCL;
    case FileMode::append:
      return O_WRONLY | O_CREAT | O_APPEND;
  }
  return O_RDONLY;
}

FileKind kind_of(mode_t mode) noexcept {
  if (S_ISREG(mode)) return FileKind::file;
  if (S_ISDIR(mode)) return FileKind::directory;
  if (S_ISLNK(mode)) return FileKind::link;
  return FileKind::other;
}

/// A time that a WallTime cannot hold, before 1677 or after 2262, becomes the nearest one.
WallTime wall_time_of(const timespec& time) noexcept {
  constexpr auto second = std::chrono::nanoseconds(std::chrono::seconds(1)).count();
  constexpr auto most = std::numeric_limits<std::int64_t>::max() / second - 1;
  if (time.tv_sec > most) return WallTime::max();
  if (time.tv_sec < -most) return WallTime::min();
  return WallTime(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

FileStatus status_of(const struct stat& found) noexcept {
  FileStatus status;
  status.kind = kind_of(found.st_mode);
  status.size = static_cast<std::uint64_t>(found.st_size);
  status.modified = wall_time_of(found.st_mtim);
  status.changed = wall_time_of(found.st_ctim);
  status.permissions = found.st_mode & 0777u;
  status.inode = found.st_ino;
  return status;
}

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

Result<Fd> open_directory(const std::string& path) {
  WEIR_TRY(validate_path(path));
  WEIR_TRY(auto opened, uninterrupted([&] {
             return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOCTTY);
           }));
  return Fd(opened);
}

FileKind kind_of(int directory, const dirent& entry) noexcept {
  switch (entry.d_type) {
    case DT_REG:
      return FileKind::file;
    case DT_DIR:
      return FileKind::directory;
    case DT_LNK:
      return FileKind::link;
    case DT_UNKNOWN:
      break;
    default:
      return FileKind::other;
  }
  // Some file systems do not store the kind in the directory entry.
  struct stat found{};
  if (::fstatat(directory, entry.d_name, &found, AT_SYMLINK_NOFOLLOW) < 0) return FileKind::other;
  return kind_of(found.st_mode);
}

}  // namespace

Result<> validate_path(const std::string& path) noexcept {
  if (path.empty()) return fail(system_error(ENOENT));
  if (path.find('\0') != std::string::npos) return fail(system_error(EINVAL));
  return {};
}

Result<Fd> open_file(const std::string& path, const FileOpenOptions& how) {
  WEIR_TRY(validate_path(path));
  // Non-blocking, because opening a pipe would otherwise wait for its other end.
  const int flags = flags_of(how.mode) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  const auto opened = uninterrupted(
      [&] { return ::open(path.c_str(), flags, static_cast<mode_t>(how.permissions)); });
  // ENXIO: a socket, or a pipe without a reader.
  if (!opened && opened.error() == system_error(ENXIO)) return fail(Errc::unsupported);
  if (!opened) return fail(opened.error());
  Fd file(*opened);
  struct stat found{};
  if (::fstat(file.get(), &found) < 0) return fail(system_error(errno));
  if (S_ISDIR(found.st_mode)) return fail(system_error(EISDIR));
  if (S_ISFIFO(found.st_mode) || S_ISSOCK(found.st_mode)) return fail(Errc::unsupported);
  // Reads may block from now on, because io_uring would otherwise return EAGAIN for data on disk.
  const int status = ::fcntl(file.get(), F_GETFL);
  if (status < 0 || ::fcntl(file.get(), F_SETFL, status & ~O_NONBLOCK) < 0) {
    return fail(system_error(errno));
  }
  return file;
}

Result<std::size_t> read_at(int file, MutableBytes target, std::uint64_t offset) {
  WEIR_TRY(const auto from, kernel_offset(offset));
  WEIR_TRY(const auto count,
           uninterrupted([&] { return ::pread(file, target.data(), target.size(), from); }));
  return static_cast<std::size_t>(count);
}

Result<std::size_t> write_at(int file, Bytes source, std::uint64_t offset) {
  WEIR_TRY(const auto from, kernel_offset(offset));
  WEIR_TRY(const auto count,
           uninterrupted([&] { return ::pwrite(file, source.data(), source.size(), from); }));
  return static_cast<std::size_t>(count);
}

Result<> sync_file(int file) {
  return done([&] { return ::fsync(file); });
}

Result<> resize_file(int file, std::uint64_t size) {
  WEIR_TRY(const auto wanted, kernel_offset(size));
  return done([&] { return ::ftruncate(file, wanted); });
}

Result<FileStatus> file_status(int file) {
  struct stat found{};
  WEIR_TRY(done([&] { return ::fstat(file, &found); }));
  return status_of(found);
}

Result<FileStatus> path_status(const std::string& path) {
  struct stat found{};
  WEIR_TRY(done_at(path, [&] { return ::stat(path.c_str(), &found); }));
  return status_of(found);
}

namespace {

Result<std::vector<DirectoryEntry>> read_entries(Fd opened, std::size_t entries_max) {
  const Directory directory(::fdopendir(opened.get()));
  if (directory == nullptr) return fail(system_error(errno));
  const int descriptor = opened.release();  // now owned by `directory`
  std::vector<DirectoryEntry> entries;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(directory.get());
    if (entry == nullptr && errno != 0) return fail(system_error(errno));
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (entries.size() == entries_max) return fail(Errc::limit_reached);
    entries.push_back({std::string(name), kind_of(descriptor, *entry)});
  }
  std::ranges::sort(entries, {}, &DirectoryEntry::name);
  return entries;
}

/// Opens `path` below the folder `root` one segment after the other, and follows no link.
Result<Fd> walk_beneath(Fd root, std::string_view path, int flags) {
  if (path == ".") {
    WEIR_TRY(auto opened,
             uninterrupted([&] { return ::openat(root.get(), ".", flags | O_CLOEXEC); }));
    return Fd(opened);
  }
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string segment(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (segment.empty() || segment == ".") continue;
    if (segment == "..") return fail(system_error(EXDEV));
    const int how = path.empty() ? flags | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_NOFOLLOW;
    WEIR_TRY(auto opened,
             uninterrupted([&] { return ::openat(root.get(), segment.c_str(), how | O_CLOEXEC); }));
    root = Fd(opened);
  }
  return root;
}

Result<Fd> open_path_beneath(const std::string& root, const std::string& path, BeneathLinks links,
                             int flags) {
  WEIR_TRY(validate_path(root));
  if (path.find('\0') != std::string::npos) return fail(system_error(EINVAL));
  WEIR_TRY(auto folder,
           uninterrupted([&] { return ::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC); }));
  Fd directory(folder);
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  if (links == BeneathLinks::none) how.resolve |= RESOLVE_NO_SYMLINKS;
  const char* const name = path.empty() ? "." : path.c_str();
  constexpr int tries_max = 16;  // EAGAIN: another process has renamed a folder meanwhile
  for (int tries = 1;; ++tries) {
    const auto opened = uninterrupted(
        [&] { return ::syscall(SYS_openat2, directory.get(), name, &how, sizeof how); });
    if (opened) return Fd(static_cast<int>(*opened));
    if (opened.error() == system_error(EAGAIN) && tries < tries_max) continue;
    if (opened.error() != system_error(ENOSYS)) return fail(opened.error());
    if (links == BeneathLinks::inside) return fail(Errc::unsupported);
    return walk_beneath(std::move(directory), name, flags);
  }
}

}  // namespace

Result<std::vector<DirectoryEntry>> list_directory(const std::string& path,
                                                   std::size_t entries_max) {
  WEIR_TRY(auto opened, open_directory(path));
  return read_entries(std::move(opened), entries_max);
}

Result<FileBeneath> open_beneath(const std::string& root, const std::string& path,
                                 BeneathLinks links) {
  // Non-blocking, because opening a pipe would otherwise wait for its other end.
  constexpr int flags = O_RDONLY | O_NOCTTY | O_NONBLOCK;
  auto opened = open_path_beneath(root, path, links, flags);
  // ENXIO: a socket.
  if (!opened && opened.error() == system_error(ENXIO)) return fail(Errc::unsupported);
  if (!opened) return fail(opened.error());
  FileBeneath found;
  WEIR_TRY(found.status, file_status(opened->get()));
  if (found.status.kind == FileKind::directory) return found;
  if (found.status.kind != FileKind::file) return fail(Errc::unsupported);
  // Reads may block from now on; see open_file().
  WEIR_TRY(done([&] { return ::fcntl(opened->get(), F_SETFL, 0); }));
  found.file = std::move(*opened);
  return found;
}

Result<std::vector<DirectoryEntry>> list_beneath(const std::string& root, const std::string& path,
                                                 BeneathLinks links, std::size_t entries_max) {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOCTTY;
  WEIR_TRY(auto opened, open_path_beneath(root, path, links, flags));
  return read_entries(std::move(opened), entries_max);
}

Result<std::size_t> read_cached(int file, MutableBytes target, std::uint64_t offset) {
  WEIR_TRY(const auto from, kernel_offset(offset));
  const iovec piece{target.data(), target.size()};
  const auto count = uninterrupted([&] { return ::preadv2(file, &piece, 1, from, RWF_NOWAIT); });
  if (count) return static_cast<std::size_t>(*count);
  const bool unknown =
      count.error() == system_error(EOPNOTSUPP) || count.error() == system_error(ENOSYS);
  return unknown ? fail(Errc::unsupported) : fail(count.error());
}

Result<> rename_path(const std::string& from, const std::string& to) {
  if (auto checked = validate_path(to); !checked) return checked;
  return done_at(from, [&] { return ::rename(from.c_str(), to.c_str()); });
}

Result<> remove_path(const std::string& path) {
  return done_at(path, [&] { return ::remove(path.c_str()); });
}

Result<> make_directory(const std::string& path, unsigned permissions) {
  return done_at(path, [&] { return ::mkdir(path.c_str(), static_cast<mode_t>(permissions)); });
}

Result<> sync_directory(const std::string& path) {
  WEIR_TRY(const auto directory, open_directory(path));
  return sync_file(directory.get());
}

namespace {

/// Blocks SIGPIPE on this thread, and discards one that is raised meanwhile. sendfile(2) has no
/// MSG_NOSIGNAL.
class PipeSignalGuard {
 public:
  PipeSignalGuard() noexcept {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  PipeSignalGuard(const PipeSignalGuard&) = delete;
  PipeSignalGuard& operator=(const PipeSignalGuard&) = delete;
  ~PipeSignalGuard() {
    if (::sigismember(&before_, SIGPIPE) == 1) return;
    if (raised) {
      const timespec no_wait{};
      ::sigtimedwait(&pipe_, nullptr, &no_wait);
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  bool raised = false;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

/// Bytes of a file that are sent by one call while packets leave the socket immediately. They fit
/// into one packet of 64 KiB, also behind a head of 3 KiB. From more bytes the kernel forms packets
/// that end within a page, and a congestion control with pacing delays some of them by timers,
/// which cost more than the calls. If packets wait in the socket, few calls cost less.
constexpr std::size_t packet_piece = std::size_t{60} * 1024;

/// Returns true if a TCP socket has bytes that it did not send yet; false for other sockets.
bool has_unsent_bytes(int socket) noexcept {
  int count = 0;
  return ::ioctl(socket, SIOCOUTQNSD, &count) == 0 && count > 0;
}

}  // namespace

Result<std::size_t> send_file(int socket, Bytes before, const FilePart& part) {
  WEIR_TRY(auto from, kernel_offset(part.offset));
  const auto would_wait = [](std::error_code error) { return error == system_error(EAGAIN); };
  std::size_t sent = 0;
  if (!before.empty()) {
    constexpr int flags = MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE;
    const auto count =
        uninterrupted([&] { return ::send(socket, before.data(), before.size(), flags); });
    if (!count) return would_wait(count.error()) ? Result<std::size_t>(0) : fail(count.error());
    sent = static_cast<std::size_t>(*count);
    if (sent < before.size()) return sent;
  }
  PipeSignalGuard guard;
  std::size_t piece_max = packet_piece;
  for (std::size_t left = part.size; left > 0;) {
    const std::size_t piece = std::min(left, piece_max);
    const auto count = uninterrupted([&] { return ::sendfile(socket, part.file, &from, piece); });
    if (!count) {
      guard.raised = count.error() == system_error(EPIPE);
      const bool is_of_socket = guard.raised || count.error() == system_error(ECONNRESET);
      if (is_of_socket) return fail(count.error());
      break;
    }
    sent += static_cast<std::size_t>(*count);
    left -= static_cast<std::size_t>(*count);
    if (static_cast<std::size_t>(*count) < piece) break;
    if (left > packet_piece && has_unsent_bytes(socket)) piece_max = left;
  }
  return sent;
}

}  // namespace weir::os
