// The operating system's files as a host has them.
#pragma once

#include "weir/loop/contract/detail/file_system.hpp"
#include "weir/loop/contract/detail/platform.hpp"

namespace weir {

/// Passes each call on to weir/os/file. Threads: any. Lifetime: `host` outlives it.
class OsFileSystem : public FileSystem {
 public:
  explicit OsFileSystem(Host& host) noexcept : host_(host) {}

  Result<Descriptor> open(const std::string& path, const os::FileOpening& how) override {
    auto file = os::open_file(path, how);
    if (!file) return fail(file.error());
    return Descriptor(host_, file->release());
  }
  Result<std::size_t> read_at(int file, MutableBytes target, std::uint64_t offset) override {
    return os::read_at(file, target, offset);
  }
  Result<std::size_t> write_at(int file, Bytes source, std::uint64_t offset) override {
    return os::write_at(file, source, offset);
  }
  Result<> sync(int file) override { return os::sync_file(file); }
  Result<> resize(int file, std::uint64_t size) override { return os::resize_file(file, size); }
  Result<os::FileStatus> file_status(int file) override { return os::file_status(file); }

  Result<os::FileStatus> path_status(const std::string& path) override {
    return os::path_status(path);
  }
  Result<std::vector<os::DirectoryEntry>> list(const std::string& path,
                                               std::size_t entries_max) override {
    return os::list_directory(path, entries_max);
  }
  Result<> rename(const std::string& from, const std::string& to) override {
    return os::rename_path(from, to);
  }
  Result<> remove(const std::string& path) override { return os::remove_path(path); }
  Result<> make_directory(const std::string& path, unsigned permissions) override {
    return os::make_directory(path, permissions);
  }
  Result<> sync_directory(const std::string& path) override { return os::sync_directory(path); }

 private:
  Host& host_;
};

}  // namespace weir
