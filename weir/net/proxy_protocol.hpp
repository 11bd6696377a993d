// The PROXY protocol: a proxy in front of a server tells the address of its client.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/os/address.hpp"
#include "weir/os/ip_range.hpp"
#include "weir/task/task.hpp"

namespace weir {

/// ProxyProtocolOptions names the proxies that begin their connections with a header.
struct ProxyProtocolOptions {
  /// The addresses of the proxies: "10.0.0.0/8", "::1". The text "unix" stands for all clients of a
  /// Unix socket.
  std::vector<std::string> proxies = {};
  Duration timeout = std::chrono::seconds(5);  ///< time for the whole header
};

/// Reads the header of the PROXY protocol, version 1 or 2 (HAProxy, "The PROXY protocol", 2020). A
/// server never guesses: each connection of a proxy begins with a header, and no connection of
/// another peer does. A peer that is no proxy can thus not invent its address.
/// Threads: any, except where a function documents other threads.
class ProxyProtocol {
 public:
  /// The bytes of a stream with another address, in addition to the stream below it.
  static constexpr std::size_t stream_bytes = 64;

  /// Errors: throws std::invalid_argument for a text that is no range of addresses.
  explicit ProxyProtocol(const ProxyProtocolOptions& options);

  /// Returns true if connections of this peer begin with a header.
  bool expects_header(const os::Address& peer) const noexcept;

  /// Reads the header, and no byte behind it.
  /// Returns: a stream whose peer_address() is that of the proxy's client; `stream` itself if the
  /// header has no address of TCP over IP (UNKNOWN, LOCAL). Such a stream has a block of
  /// stream_bytes.
  /// Errors: bad_input for a malformed header, or one of more than 4 KiB; timed_out; those of
  /// Stream::read().
  /// Cancel: closes the stream.
  /// Threads: that of the stream.
  Task<Result<AnyStream>> read_header(AnyStream stream) const;

 private:
  std::vector<os::IpRange> ranges_;
  Duration timeout_;
  bool trusts_local_ = false;
};

}  // namespace weir
