// ClientAccess: the connections of a client, for a proxy that shares them among its own clients.
#pragma once

#include "weir/http/client/client.hpp"

namespace weir::http::detail {

struct ClientAccess {
  /// Returns the connections of a client. Lifetime: that of the client.
  static ClientPool& pool_of(Client& client) noexcept { return *client.pool_; }
};

}  // namespace weir::http::detail
