// The place of a connection in the list of its server.
#pragma once

#include "weir/base/detail/list.hpp"

namespace weir::http {

/// The place of a Connection in the list of its server's open connections. It has no virtual
/// function, because a virtual table would make each idle connection 16 bytes larger.
class ConnectionNode : public weir::detail::ListNode {
 protected:
  ~ConnectionNode() = default;
};

}  // namespace weir::http
