// Which addresses belong to nobody else: those that attacks may be tried on without asking.
#pragma once

#include "weir/os/address.hpp"

namespace weir::check {

/// Loopback and private addresses of IPv4 (RFC 1918, 6890) and IPv6 (RFC 4193, 4291), the former
/// also within the latter, and Unix sockets. Not link-local ones (RFC 3927, 4291): others may have
/// these, such as a cloud whose machines learn their secrets at 169.254.169.254.
bool is_near(const Endpoint& endpoint) noexcept;

}  // namespace weir::check
