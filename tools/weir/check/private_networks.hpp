// Finds the addresses that may be attacked without an explicit permission.
#pragma once

#include "weir/os/address.hpp"

namespace weir::check {

/// Returns true for Unix sockets, wildcard addresses, and loopback and private addresses. These
/// are the private addresses of IPv4 (RFC 1918, 6890) and IPv6 (RFC 4193, 4291), and of IPv4
/// mapped into IPv6. Link-local addresses (RFC 3927, 4291) do not count, because they may belong
/// to others. Clouds, for example, serve secrets to their machines at 169.254.169.254.
bool is_local_or_private(const Endpoint& endpoint) noexcept;

}  // namespace weir::check
