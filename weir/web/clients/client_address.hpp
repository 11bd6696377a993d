// The client of a request, behind the proxies that the service trusts.
#pragma once

#include <string>

#include "weir/http/message/request.hpp"
#include "weir/os/address.hpp"

namespace weir::http {

/// The client of a request, as trusted_proxies() has found it.
struct ClientAddress {
  /// The address of the client. It is that of the nearest proxy that is known if the proxies do not
  /// name the client.
  os::Address address;
  bool is_secure = false;  ///< true if the client has used https
  std::string host = {};   ///< the host[:port] that the client has asked for; empty if unknown
};

/// Returns the address of the client: the ClientAddress of the request, or else its peer_address().
///
/// *Shares.* Clients share by this address what reverse_proxy(), decompress_requests() and
/// compress() limit on a core. An IPv6 address counts as its network of 64 bits, and all Unix
/// sockets as one address. One address has at most half, the next one half of the rest, and so on.
/// The connections of an address divide its share in the same way. They divide the whole if no
/// other address has come for ten minutes, as behind a load balancer without trusted_proxies(). A
/// limit below 8 has no shares.
os::Address client_address(const Request& request);
/// Returns true if the client has used https, to this server or to a trusted proxy.
bool is_secure(const Request& request) noexcept;

}  // namespace weir::http
