#include "weir/http/server/detail/rejection.hpp"

#include "weir/http/server/detail/server_state.hpp"

namespace weir::http {

Rejection::Rejection(ServerState& server) noexcept : connections_(server.connections()) {
  ++connections_.rejections_;
}

Rejection::~Rejection() {
  --connections_.rejections_;
}

bool Rejection::too_many() const noexcept {
  return connections_.rejections_ > OpenConnections::rejections_max;
}

}  // namespace weir::http
