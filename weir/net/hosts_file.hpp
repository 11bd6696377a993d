// The names that a machine knows by itself: what stands in /etc/hosts (hosts(5)).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weir/os/address.hpp"

namespace weir::names {

/// Threads: a plain value.
class HostsFile {
 public:
  /// Lines that cannot be understood, and names that are none, are left out.
  static HostsFile parse(std::string_view text);

  /// The addresses of a HostName's text in the order of the file, port 0; nullptr: it is not there.
  const std::vector<Endpoint>* find(std::string_view name) const;
  std::size_t names() const noexcept { return addresses_.size(); }

 private:
  std::map<std::string, std::vector<Endpoint>, std::less<>> addresses_;
};

}  // namespace weir::names
