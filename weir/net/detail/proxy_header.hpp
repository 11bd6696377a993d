// The parser of the PROXY protocol, versions 1 and 2 (HAProxy, "The PROXY protocol", 2020).
#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/base/detail/bytes.hpp"
#include "weir/os/address.hpp"

namespace weir {

/// The header with which a proxy begins a connection.
struct ProxyHeader {
  /// Largest number of bytes of a header. The protocol allows more, for extensions that Weir does
  /// not read.
  static constexpr std::size_t size_max = 4096;

  /// The addresses of the connection that the proxy has accepted. They are none if the header has
  /// none (UNKNOWN, LOCAL), or addresses that are not of TCP over IP.
  os::Address source;
  os::Address destination;
};

/// The result of parse_proxy_header().
struct ProxyHeaderResult {
  enum class Kind : std::uint8_t { need_more, complete, malformed };
  Kind kind = Kind::malformed;
  /// The bytes of a complete header. If bytes are missing, at least this many are missing, and a
  /// caller that reads as many never reads bytes behind the header.
  std::size_t size = 0;
  ProxyHeader header = {};
};

/// Parses the header at the begin of `input`, which may be incomplete.
ProxyHeaderResult parse_proxy_header(Bytes input) noexcept;

}  // namespace weir
