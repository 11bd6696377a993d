// How a machine asks for names: what stands in /etc/resolv.conf (resolv.conf(5)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/os/address.hpp"

namespace weir::names {

/// The port of name servers.
inline constexpr std::uint16_t name_server_port = 53;

/// The defaults are those of a machine without the file. Threads: a plain value.
struct ResolvConf {
  static constexpr std::size_t servers_max = 3;
  static constexpr std::size_t search_max = 32;
  static constexpr unsigned ndots_max = 15;
  static constexpr unsigned timeout_seconds_max = 30;
  static constexpr unsigned attempts_max = 5;

  std::vector<Endpoint> servers{Endpoint::loopback(name_server_port)};
  std::vector<std::string> search;  ///< domains, each a HostName's text
  unsigned ndots = 1;               ///< a name with so many dots is tried as it is first
  Duration timeout = std::chrono::seconds(5);
  unsigned attempts = 2;

  /// Reads `nameserver`, `search`, `domain` (the last of these two counts) and of `options` ndots,
  /// timeout and attempts; what goes beyond the limits above is cut, the rest is passed over.
  static ResolvConf parse(std::string_view text);
};

}  // namespace weir::names
