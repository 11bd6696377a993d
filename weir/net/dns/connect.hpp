// Connecting to a host by its name. IPv6 and IPv4 race, so that a broken address family causes no
// long delay (RFC 8305, "Happy Eyeballs").
#pragma once

#include <cstdint>
#include <string>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/net/dns/resolver.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/task.hpp"

namespace weir::tcp {

/// ConnectOptions sets the delays and the resolver of connect() to a host name.
struct ConnectOptions {
  /// Time from the start of an attempt to the start of the next, if the first is still pending (RFC
  /// 8305 §5).
  Duration attempt_delay = std::chrono::milliseconds(250);
  /// Time for which found IPv4 addresses wait for a pending IPv6 look-up (RFC 8305 §3).
  Duration resolution_delay = std::chrono::milliseconds(50);
  dns::Resolver* resolver = nullptr;  ///< nullptr: the resolver of the core
};

/// Connects to port `port` of `name`, which may also be an IP address. It looks up both families at
/// the same time, IPv6 first (RFC 8305 §3), and tries the addresses in the order of
/// dns::AddressOrder. The next attempt begins as soon as one has failed or has taken
/// `attempt_delay`. The first connection wins; the other attempts are cancelled and awaited. The
/// function has no time limit; see timeout().
/// Errors: the error of the last attempt that reached a host (ECONNREFUSED …), otherwise that of
/// the last attempt without a route (ENETUNREACH …). If no attempt was made, those of
/// dns::Resolver. Errc::cancelled after a cancellation.
/// Cancel: cancels all look-ups and attempts, and returns when none is pending any more.
Task<Result<Stream>> connect(std::string name, std::uint16_t port, ConnectOptions options = {});

}  // namespace weir::tcp
