// A handshake, before a connection opens.
#pragma once

#include "weir/base/time.hpp"
#include "weir/http/server/detail/connection_permit.hpp"
#include "weir/http/server/detail/drain_node.hpp"
#include "weir/os/ip_range.hpp"

namespace weir::http {

/// A TLS handshake or the read of a PROXY header, before a connection opens.
class HandshakeNode : public DrainNode {
 public:
  virtual Instant begun() const noexcept = 0;
  virtual const os::IpBytes& network() const noexcept = 0;
  /// Cancels the handshake, and gives up its permit.
  virtual ConnectionPermit evict() = 0;

 protected:
  ~HandshakeNode() = default;
};

}  // namespace weir::http
