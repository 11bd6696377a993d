#include "weir/os/detail/io/file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
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

WallTime wall_time_of(const timespec& time) noexcept {
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

Result<std::vector<DirectoryEntry>> list_directory(const std::string& path,
                                                   std::size_t entries_max) {
  WEIR_TRY(auto opened, open_directory(path));
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

}  // namespace weir::os
