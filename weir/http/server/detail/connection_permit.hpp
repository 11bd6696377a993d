// The right to one open connection.
#pragma once

#include <utility>

namespace weir::http {

class OpenConnections;
class ServerState;

/// The right to one open connection. One limit of permits holds for all cores of the runtime
/// together: that of the server, of its ConnectionReserve, or of all servers without either.
class ConnectionPermit {
 public:
  ConnectionPermit() noexcept = default;  ///< no permit
  ConnectionPermit(ConnectionPermit&& other) noexcept
      : server_(std::exchange(other.server_, nullptr)) {}
  ConnectionPermit& operator=(ConnectionPermit&& other) noexcept {
    std::swap(server_, other.server_);
    return *this;
  }
  ~ConnectionPermit();
  explicit operator bool() const noexcept { return server_ != nullptr; }
  /// Returns the server that gave the permit.
  ServerState& server() const noexcept { return *server_; }
  /// Gives the right to another permit of the same server, and keeps only the server. Call
  /// forget() before the destructor.
  ConnectionPermit give_away() const noexcept { return ConnectionPermit(*server_); }
  void forget() noexcept { server_ = nullptr; }

 private:
  friend OpenConnections;
  explicit ConnectionPermit(ServerState& server) noexcept : server_(&server) {}
  ServerState* server_ = nullptr;
};

}  // namespace weir::http
