// Connecting to a host by its name: IPv6 and IPv4 raced, so that a family that does not work here
// is not noticed (RFC 8305, "Happy Eyeballs").
#pragma once

#include <cstdint>
#include <string>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/net/resolver.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/task.hpp"

namespace weir::tcp {

struct ConnectOptions {
  /// After so long without an outcome of an attempt the next begins beside it (RFC 8305 §5).
  Duration attempt_delay = std::chrono::milliseconds(250);
  /// So long IPv4 addresses wait for IPv6 ones that are still being looked for (RFC 8305 §3).
  Duration resolution_delay = std::chrono::milliseconds(50);
  names::Resolver* resolver = nullptr;  ///< nullptr: that of the core
};

/// A connection to port `port` of `name`, which may also be an IP address. Both families are looked
/// for at once, and what is found is tried in the order of names::AddressOrder: the next as soon as
/// one has failed or has taken `attempt_delay`; the first that connects wins, and the others are
/// given up and waited for. There is no limit of time: see timeout().
/// Errors: that of the last attempt, but rather one of a host (ECONNREFUSED …) than one of the way
/// to it (ENETUNREACH …); without an attempt, those of names::Resolver.
/// Cancel: gives everything up; returns when nothing is under way any more.
Task<Result<Stream>> connect(std::string name, std::uint16_t port, ConnectOptions options = {});

}  // namespace weir::tcp
