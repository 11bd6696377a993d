// The DNS configuration of this machine, read from its files and read again when they change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/net/files.hpp"
#include "weir/os/address.hpp"
#include "weir/task/sync/mutex.hpp"
#include "weir/task/task.hpp"

namespace weir::dns {

// Lines and fields of the system's configuration files.

/// Removes and returns the part of `text` before the first character of `ends`, or all of `text` if
/// it has no such character. The character is removed too, but not returned.
inline std::string_view take_until(std::string_view& text, std::string_view ends) noexcept {
  const std::size_t end = text.find_first_of(ends);
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return taken;
}

inline std::string_view take_line(std::string_view& text) noexcept {
  return take_until(text, "\n");
}

/// Removes and returns the next field of a line; fields are separated by blanks. Returns an empty
/// field if none is left.
inline std::string_view take_field(std::string_view& line) noexcept {
  constexpr std::string_view blanks = " \t\r\v\f";
  const std::size_t begin = line.find_first_not_of(blanks);
  if (begin == std::string_view::npos) {
    line = {};
    return {};
  }
  line.remove_prefix(begin);
  return take_until(line, blanks);
}

/// The parsed content of /etc/hosts (hosts(5)), which lists the machine's local names.
/// Threads: a plain value.
class HostsFile {
 public:
  /// Parses a hosts file. Skips malformed lines and invalid names.
  static HostsFile parse(std::string_view text);

  /// Returns the addresses of `name`, which is the text of a HostName. They have port 0 and the
  /// order of the file. Returns nullptr if the name is not in the file.
  const std::vector<Endpoint>* find(std::string_view name) const;
  std::size_t names() const noexcept { return addresses_.size(); }

 private:
  std::map<std::string, std::vector<Endpoint>, std::less<>> addresses_;
};

/// The port of name servers.
inline constexpr std::uint16_t name_server_port = 53;

/// The parsed content of /etc/resolv.conf (resolv.conf(5)). The defaults apply to a machine without
/// the file.
/// Threads: a plain value.
struct ResolvConf {
  static constexpr std::size_t servers_max = 3;
  static constexpr std::size_t search_max = 32;
  static constexpr unsigned ndots_max = 15;
  static constexpr unsigned timeout_seconds_max = 30;
  static constexpr unsigned attempts_max = 5;

  std::vector<Endpoint> servers{Endpoint::loopback(name_server_port)};
  std::vector<std::string> search;  ///< search domains, each the text of a HostName
  unsigned ndots = 1;               ///< minimum number of dots to try a name as is first
  Duration timeout = std::chrono::seconds(5);
  unsigned attempts = 2;

  /// Parses a resolv.conf file. Reads `nameserver`, `search` and `domain` (the last line of these
  /// two counts), and ndots, timeout and attempts of `options`. Values beyond the limits above are
  /// reduced to them. Other lines and options are ignored.
  static ResolvConf parse(std::string_view text);
};

/// The content of the hosts file and of resolv.conf. It reads them as weir/net/files.hpp does, on a
/// thread of the pool or through io_uring, and never blocks the loop. A missing file, or one longer
/// than 16 MiB, counts as empty. If a file cannot be read, its previous content stays. File systems
/// have coarse clocks. The next check therefore reads a file again that was modified less than two
/// seconds before it was read.
/// Threads: its loop's.
class SystemDnsConfig {
 public:
  /// Minimum time between two checks of the files. A check happens only in refresh().
  static constexpr Duration period = std::chrono::seconds(5);

  /// Takes the paths of the two files. An empty path means that the file is not used.
  SystemDnsConfig(std::string hosts_path, std::string resolv_conf_path)
      : hosts_file_(std::move(hosts_path)), resolv_conf_file_(std::move(resolv_conf_path)) {}

  /// Checks the files and reads changed ones, unless the last check is younger than `period`.
  /// Errors: Errc::cancelled.
  /// Cancel: that of the functions in weir/net/files.hpp; content that was read before stays.
  Task<Result<>> refresh();

  const HostsFile& hosts() const noexcept { return hosts_; }
  const ResolvConf& conf() const noexcept { return conf_; }

 private:
  struct WatchedFile {
    explicit WatchedFile(std::string its_path) noexcept : path(std::move(its_path)) {}
    std::string path;
    std::optional<files::Status> seen;  // status at the last read; nullopt: read again
  };
  /// Returns the text of the file if it may have changed since the last read, otherwise nullopt.
  static Task<std::optional<std::string>> read_changed(WatchedFile& file);
  Task<> parse_hosts(std::string text);

  WatchedFile hosts_file_;
  WatchedFile resolv_conf_file_;
  HostsFile hosts_;
  ResolvConf conf_;
  Mutex refresh_mutex_;
  Instant expires_ = Instant::min();
};

}  // namespace weir::dns
