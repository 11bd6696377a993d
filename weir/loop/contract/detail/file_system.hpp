// Contract of a platform's files: calls that may block, for threads other than the loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/descriptor.hpp"
#include "weir/os/detail/io/file.hpp"

namespace weir::loop {

/// The files of a platform. Each function does what the function of the same name in
/// weir/os/detail/io/file.hpp does and fails with the same errors. An opened file is closed like
/// every descriptor. A loop calls only read_cached() and send_file(), because all others may block:
/// other threads call them. The backend does some of these operations without a thread (see
/// Backend::does_files()). Threads: any, also for several operations on one file at the same time.
/// Lifetime: that of its platform.
class FileSystem {
 public:
  /// A file or a directory below a root folder; a directory has only a status.
  struct FileBeneath {
    Descriptor file;
    os::FileStatus status;
  };

  virtual ~FileSystem() = default;

  virtual Result<Descriptor> open(const std::string& path, const os::FileOpenOptions& how) = 0;
  virtual Result<std::size_t> read_at(int file, MutableBytes target, std::uint64_t offset) = 0;
  virtual Result<std::size_t> write_at(int file, Bytes source, std::uint64_t offset) = 0;
  virtual Result<> sync(int file) = 0;
  virtual Result<> resize(int file, std::uint64_t size) = 0;
  virtual Result<os::FileStatus> file_status(int file) = 0;

  virtual Result<os::FileStatus> path_status(const std::string& path) = 0;
  virtual Result<std::vector<os::DirectoryEntry>> list(const std::string& path,
                                                       std::size_t entries_max) = 0;
  virtual Result<> rename(const std::string& from, const std::string& to) = 0;
  virtual Result<> remove(const std::string& path) = 0;
  virtual Result<> make_directory(const std::string& path, unsigned permissions) = 0;
  virtual Result<> sync_directory(const std::string& path) = 0;

  virtual Result<FileBeneath> open_beneath(const std::string& root, const std::string& path,
                                           os::BeneathLinks links) = 0;
  virtual Result<std::vector<os::DirectoryEntry>> list_beneath(const std::string& root,
                                                               const std::string& path,
                                                               os::BeneathLinks links,
                                                               std::size_t entries_max) = 0;
  virtual Result<std::size_t> read_cached(int file, MutableBytes target, std::uint64_t offset) = 0;
  virtual Result<std::size_t> send_file(int socket, Bytes before, const os::FilePart& part) = 0;
};

}  // namespace weir::loop
