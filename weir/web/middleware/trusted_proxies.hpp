// Middleware that finds the client behind proxies, as trusted proxies name it (RFC 7239,
// X-Forwarded-For).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/os/address.hpp"
#include "weir/os/ip_range.hpp"
#include "weir/web/clients/client_address.hpp"

namespace weir::http {

/// The headers by which proxies name the client.
enum class ProxyHeaders : std::uint8_t {
  x_forwarded,  ///< X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host
  forwarded,    ///< Forwarded (RFC 7239)
};

/// TrustedProxiesOptions names the proxies in front of a service.
struct TrustedProxiesOptions {
  /// The addresses of the proxies: "10.0.0.0/8", "::1". The text "unix" stands for all clients of a
  /// Unix socket.
  std::vector<std::string> proxies = {};
  /// The headers that all these proxies set or extend. The others are ignored, because a client
  /// could send them.
  ProxyHeaders headers = ProxyHeaders::x_forwarded;
  /// The most proxies that a request may have passed.
  std::size_t hops_max = 8;
};

/// The middleware that trusted_proxies() makes. It sets a ClientAddress for each request. It reads
/// the headers from right to left, as long as the sender of an entry is a trusted proxy: the first
/// address that is not trusted is the client. An entry that is no address ends this. The entries to
/// the left of the client have no effect, because the client may have sent them.
///
/// It is the first middleware of a router, since others use the address:
/// `router.use<http::ClientAddress>(http::trusted_proxies({.proxies = {"10.0.0.0/8"}}))`.
/// Threads: any.
class TrustedProxies {
 public:
  /// Errors: throws std::invalid_argument for a text that is no range of addresses.
  explicit TrustedProxies(const TrustedProxiesOptions& options);

  std::optional<Response> before(Request& request) const;

  /// Returns the client of a request whose peer has this address.
  ClientAddress find_client(const RequestHead& head, const os::Address& peer, bool is_tls) const;

 private:
  bool trusts(const os::Address& address) const noexcept;
  void read_forwarded(const RequestHead& head, ClientAddress& client) const;
  void read_x_forwarded(const RequestHead& head, ClientAddress& client) const;

  std::vector<os::IpRange> ranges_;
  bool trusts_local_ = false;
  ProxyHeaders headers_;
  std::size_t hops_max_;
};

/// Returns the middleware for these options.
/// Errors: those of the constructor of TrustedProxies.
inline TrustedProxies trusted_proxies(const TrustedProxiesOptions& options) {
  return TrustedProxies(options);
}

}  // namespace weir::http
