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

/// The IP addresses that a request may name as its host, besides those of the list. None of them is
/// 0.0.0.0 or [::]. These also lead a browser to its own machine. A browser sends no Sec-Fetch-Site
/// there, so a server cannot tell which page has sent the request.
enum class HostAddresses : std::uint8_t {
  none,
  loopback,  ///< 127.0.0.0/8 and [::1], for a server on loopback
  all,       ///< all addresses, for a server of the own network
};

/// AllowedHostsOptions has the list of hosts.
struct AllowedHostsOptions {
  /// Hosts such as "example.org", "[::1]", or "*.example.org" for all subdomains. A host with a
  /// port allows only this port; one without a port allows all. The ports 80 and 443 also allow a
  /// host without a port.
  std::vector<std::string> hosts = {};
  /// The IP addresses that are allowed too. DNS rebinding needs a name, so a server of the own
  /// machine or network may allow addresses.
  HostAddresses addresses = HostAddresses::none;
  /// The status of other requests (RFC 9110 §15.5.20).
  Status status = Status::misdirected_request;
};

/// The middleware that allowed_hosts() makes. It compares Request::authority(), in any letter case,
/// with or without a dot at its end, and in any form of an IP address. A request without a host, as
/// HTTP/1.0 allows, is refused. So is one with an IPv4-mapped address such as [::ffff:127.0.0.1],
/// for which browsers send no Sec-Fetch-Site either.
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
  HostAddresses addresses_;
  Status status_;
};

/// Returns the middleware for these options:
/// `router.use(http::allowed_hosts({.hosts = {"example.org"}}))`.
/// Errors: those of the constructor of AllowedHosts.
inline AllowedHosts allowed_hosts(AllowedHostsOptions options) {
  return AllowedHosts(std::move(options));
}

}  // namespace weir::http
