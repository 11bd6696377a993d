#include "weir/web/clients/client_address.hpp"

namespace weir::http {

os::Address client_address(const Request& request) {
  const auto* const client = request.get<ClientAddress>();
  return client != nullptr ? client->address : request.peer_address();
}

bool is_secure(const Request& request) noexcept {
  const auto* const client = request.get<ClientAddress>();
  return client != nullptr ? client->is_secure : request.tls() != nullptr;
}

}  // namespace weir::http
