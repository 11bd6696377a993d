// Which addresses belong to nobody else: those that attacks may be tried on without asking.
#pragma once

#include "weir/os/address.hpp"

namespace weir::check {

/// Loopback, link-local and private addresses of IPv4 (RFC 1918, 3927, 6890) and IPv6 (RFC 4193,
/// 4291), the former also within the latter, and Unix sockets.
bool is_near(const Endpoint& endpoint) noexcept;

}  // namespace weir::check
