// Reading the files of TLS, and making the snapshot of a server of them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/os/detail/io/file.hpp"
#include "weir/task/task.hpp"
#include "weir/tls/certificate/error.hpp"
#include "weir/tls/detail/contexts.hpp"
#include "weir/tls/options.hpp"

namespace weir::tls::detail {

/// Returns the content of a file of at most 4 MiB.
/// Errors: Error::unreadable_file, Errc::cancelled.
/// Cancel: passed to the read.
Task<Outcome<std::string>> read_pem(std::string path);

/// Returns the certificates that `trust` names, in PEM. The system's file is the first that exists
/// of those that Debian, Red Hat, SUSE and Alpine use.
/// Errors: Error::unreadable_file, Errc::cancelled.
/// Cancel: passed to the reads.
/// Lifetime: `trust` outlives the call.
Task<Outcome<std::string>> read_trust(const Trust& trust);

/// The contents of the files of a server at one time. The destructor erases the secrets.
struct ServerFiles {
  ServerFiles() = default;
  ServerFiles(ServerFiles&&) noexcept = default;
  ServerFiles& operator=(ServerFiles&& other) noexcept;
  ~ServerFiles();

  std::vector<std::string> chains;  // one for each of ServerOptions::files
  std::vector<std::string> keys;
  std::string trust;
  std::string ticket_keys;
  FilesDigest digest{};
};

/// The status of the files of a server at one time, in the order of the options.
struct FilesStatus {
  /// Returns true if each file has been unchanged for a second. A file that changes twice within
  /// one tick of its file system's clock could look the same.
  bool is_settled(WallTime now) const noexcept;
  bool operator==(const FilesStatus&) const = default;

  std::vector<os::FileStatus> files;  // that of a missing file has inode 0
};

/// Returns the status of all files that `options` name. It reads no file.
/// Errors: Errc::cancelled.
/// Cancel: passed to the calls.
/// Lifetime: `options` outlive the call.
Task<Outcome<FilesStatus>> files_status(const ServerOptions& options);

/// Reads all files that `options` name.
/// Errors: Error::unreadable_file, Errc::cancelled.
/// Cancel: passed to the reads.
/// Lifetime: `options` outlive the call.
Task<Outcome<ServerFiles>> read_files(const ServerOptions& options);

/// Parses and checks the files. It computes for milliseconds.
/// Errors: those of Server::load() except Error::unreadable_file.
/// Threads: any.
Outcome<std::shared_ptr<ServerSnapshot>> make_snapshot(const ServerOptions& options,
                                                       const ServerFiles& files, WallTime now);

/// Calls `work` in the pool of the loops, or here if the pool accepts no more work.
/// Errors: Errc::cancelled; throws what `work` throws.
/// Cancel: does not call `work`, unless it runs already.
Task<Result<>> run_in_pool(std::function<void()> work);

}  // namespace weir::tls::detail
