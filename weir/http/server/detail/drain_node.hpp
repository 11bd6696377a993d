// A handshake or a WebSocket, which a drain of its server ends.
#pragma once

#include "weir/base/detail/list.hpp"

namespace weir::http {

/// A TLS handshake, after which a connection opens, or a WebSocket, which a connection has become.
class DrainNode : public weir::detail::ListNode {
 public:
  virtual void drain() = 0;

 protected:
  ~DrainNode() = default;
};

}  // namespace weir::http
