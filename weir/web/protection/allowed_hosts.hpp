// A list of the hosts that a service answers for, against forged Host headers and DNS rebinding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/syntax/status.hpp"

namespace weir::http {

/// AllowedHostsOptions has the list of hosts.
struct AllowedHostsOptions {
  /// Hosts such as "example.org", "[::1]", or "*.example.org" for all subdomains. A host with a
  /// port allows only this port; one without a port allows all. The ports 80 and 443 also allow a
  /// host without a port.
  std::vector<std::string> hosts = {};
  /// True to allow each IP address too. DNS rebinding needs a name, so a server of the own machine
  /// or network may do so.
  bool addresses = false;
  /// The status of other requests (RFC 9110 §15.5.20).
  Status status = Status::misdirected_request;
};

/// The middleware that allowed_hosts() makes. It compares Request::authority(), in any letter case,
/// with or without a dot at its end, and in any form of an IP address. A request without a host, as
/// HTTP/1.0 allows, is refused.
/// Behind trusted_proxies(), it also compares the host that a proxy names.
/// Threads: any.
class AllowedHosts {
 public:
  /// Errors: throws std::invalid_argument for an empty list without `addresses`, and for a host
  /// that is none.
  explicit AllowedHosts(AllowedHostsOptions options);

  std::optional<Response> before(Request& request) const;

  /// Returns true if the list has this host[:port].
  bool allows(std::string_view authority) const;

 private:
  struct Host {
    std::string name;  // in the form of dns::normal_host(); begins with '.' for subdomains
    std::optional<std::uint16_t> port;
  };

  std::vector<Host> hosts_;
  bool addresses_;
  Status status_;
};

/// Returns the middleware for these options:
/// `router.use(http::allowed_hosts({.hosts = {"example.org"}}))`.
/// Errors: those of the constructor of AllowedHosts.
inline AllowedHosts allowed_hosts(AllowedHostsOptions options) {
  return AllowedHosts(std::move(options));
}

}  // namespace weir::http
