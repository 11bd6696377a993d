#include "weir/http/server/detail/connection_permit.hpp"

#include "weir/http/server/detail/server_state.hpp"

namespace weir::http {

ConnectionPermit::~ConnectionPermit() {
  if (server_ == nullptr) return;
  server_->connections().release_permit();
}

}  // namespace weir::http
