// The connections that a server may open, has open and rejects, on one core.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <optional>
#include <utility>

#include "weir/base/detail/list.hpp"
#include "weir/loop/loop.hpp"

namespace weir::http {

class OpenConnections;
class ServerState;

/// The place of a Connection in the list of its server's open connections. It has no virtual
/// function, because a virtual table would make each idle connection 16 bytes larger.
class ConnectionNode : public weir::detail::ListNode {
 protected:
  ~ConnectionNode() = default;
};

/// A TLS handshake, after which a connection opens.
class HandshakeNode : public weir::detail::ListNode {
 public:
  virtual void drain() = 0;

 protected:
  ~HandshakeNode() = default;
};

/// The right to one open connection. One limit of permits holds for all cores of the runtime
/// together.
class ConnectionPermit {
 public:
  ConnectionPermit() noexcept = default;  ///< no permit
  ConnectionPermit(ConnectionPermit&& other) noexcept
      : server_(std::exchange(other.server_, nullptr)) {}
  ~ConnectionPermit();
  /// Returns the server that gave the permit.
  ServerState& server() const noexcept { return *server_; }

 private:
  friend OpenConnections;
  explicit ConnectionPermit(ServerState& server) noexcept : server_(&server) {}
  ServerState* server_ = nullptr;
};

/// A connection beyond the limit, while the server answers it with 503.
class Rejection {
 public:
  explicit Rejection(ServerState& server) noexcept;
  ~Rejection();
  Rejection(const Rejection&) = delete;
  Rejection& operator=(const Rejection&) = delete;
  /// Returns true if more than OpenConnections::rejections_max rejected connections still wait for
  /// the peer to read the answer. This connection is then closed directly after its own answer.
  bool too_many() const noexcept;

 private:
  OpenConnections& connections_;
};

/// Limits the connections of a server, and drains those that are open.
/// Threads: the loop's.
class OpenConnections : DrainObserver {
 public:
  /// Half of the descriptors that a server does not use for connections.
  static constexpr std::size_t rejections_max = 32;

  /// `most` is Limits::connections_max.
  OpenConnections(ServerState& server, Loop& loop, std::size_t most);
  ~OpenConnections() { assert(open_.empty()); }

  /// Returns a permit for one more connection; nullopt if all permits are in use.
  std::optional<ConnectionPermit> try_acquire_permit() noexcept;

  /// Adds or removes a connection that has a permit.
  void add(ConnectionNode& connection) noexcept;
  void remove(ConnectionNode& connection) noexcept;

  /// Adds a handshake, which drain() then calls unless it has ended.
  void add(HandshakeNode& handshake) noexcept { handshakes_.push_back(handshake); }

  bool draining() const noexcept { return draining_; }
  /// Drains the open connections and the handshakes, and every later connection.
  void drain();

 private:
  friend ConnectionPermit;
  friend Rejection;
  ServerState& server_;
  std::atomic<std::size_t>& permits_in_use_;  // by all cores of the runtime
  std::size_t connections_max_;
  std::size_t rejections_ = 0;
  bool draining_;
  weir::detail::List<ConnectionNode> open_;
  weir::detail::List<HandshakeNode> handshakes_;
};

}  // namespace weir::http
