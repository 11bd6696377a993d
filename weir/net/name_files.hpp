// What this machine says about names, read from its files, and read again when they change.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/net/files.hpp"
#include "weir/net/hosts_file.hpp"
#include "weir/net/resolv_conf.hpp"
#include "weir/task/mutex.hpp"
#include "weir/task/task.hpp"

namespace weir::names {

/// The files are read as all files are (weir/net/files): on a thread of the pool, or by io_uring,
/// never on the loop. A file that is not there, or is longer than 16 MiB, says nothing; one that
/// cannot be read says what it said before. Threads: its loop's.
class NameFiles {
 public:
  /// They are looked at again after so long, when somebody asks.
  static constexpr Duration period = std::chrono::seconds(5);

  /// An empty path: there is no such file.
  NameFiles(std::string hosts_path, std::string resolv_conf_path)
      : hosts_file_(std::move(hosts_path)), resolv_conf_file_(std::move(resolv_conf_path)) {}

  /// Sees to it that what follows is no older than `period`. Errors: Errc::cancelled.
  /// Cancel: as weir/net/files; what had been read before stays.
  Task<Result<>> refresh();

  const HostsFile& hosts() const noexcept { return hosts_; }
  const ResolvConf& conf() const noexcept { return conf_; }

 private:
  struct Watched {
    explicit Watched(std::string its_path) noexcept : path(std::move(its_path)) {}
    std::string path;
    std::optional<files::Status> seen;  // as it was when it was read
  };
  /// Its text, if that may have changed since it was read last.
  static Task<std::optional<std::string>> read_changed(Watched& file);
  Task<> take_hosts(std::string text);

  Watched hosts_file_;
  Watched resolv_conf_file_;
  HostsFile hosts_;
  ResolvConf conf_;
  CoreMutex reading_;
  Instant fresh_until_ = Instant::min();
};

}  // namespace weir::names
