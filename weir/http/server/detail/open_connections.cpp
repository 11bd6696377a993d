#include "weir/http/server/detail/open_connections.hpp"

#include <utility>

#include "weir/http/server/detail/connection.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/runtime/detail/connection_counters.hpp"

namespace weir::http {
namespace {

// Descriptors that a server leaves for files, listeners and the backend.
constexpr std::size_t descriptors_reserved = 64;

std::size_t default_connections_max(Loop& loop) {
  const std::size_t all = loop.platform().descriptor_limit().descriptors_max;
  return all > descriptors_reserved ? all - descriptors_reserved : 1;
}

}  // namespace

ConnectionPermit::~ConnectionPermit() {
  if (server_ == nullptr) return;
  server_->connections().permits_in_use_.fetch_sub(1, std::memory_order_relaxed);
}

OpenConnections::OpenConnections(ServerState& server, Loop& loop, std::size_t most)
    : DrainObserver([](DrainObserver& self) { static_cast<OpenConnections&>(self).drain(); }),
      server_(server),
      permits_in_use_(ServerConnections::of(loop).open),
      connections_max_(most != 0 ? most : default_connections_max(loop)),
      draining_(loop.draining()) {
  if (!draining_) loop.observe_drain(*this);
}

/// Uses relaxed order, because only the number itself passes between cores.
std::optional<ConnectionPermit> OpenConnections::try_acquire_permit() noexcept {
  std::size_t in_use = permits_in_use_.load(std::memory_order_relaxed);
  do {
    if (in_use >= connections_max_) return std::nullopt;
  } while (!permits_in_use_.compare_exchange_weak(in_use, in_use + 1, std::memory_order_relaxed));
  return ConnectionPermit(server_);
}

void OpenConnections::add(ConnectionNode& connection) noexcept {
  open_.push_back(connection);
  server_.counters().connections_accepted.add();
  server_.counters().connections_open.add();
}

void OpenConnections::remove(ConnectionNode& connection) noexcept {
  connection.unlink();
  server_.counters().connections_open.subtract();
}

Rejection::Rejection(ServerState& server) noexcept : connections_(server.connections()) {
  server.counters().connections_rejected.add();
  ++connections_.rejections_;
}

Rejection::~Rejection() {
  --connections_.rejections_;
}

bool Rejection::too_many() const noexcept {
  return connections_.rejections_ > OpenConnections::rejections_max;
}

void OpenConnections::drain() {
  if (std::exchange(draining_, true)) return;
  for (ConnectionNode* each = open_.front(); each != nullptr; each = open_.next(*each)) {
    static_cast<Connection&>(*each).drain();
  }
  while (HandshakeNode* const handshake = handshakes_.pop_front()) handshake->drain();
}

}  // namespace weir::http
