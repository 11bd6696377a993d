// The connections that a server may open, has open and rejects, on one core.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <memory>
#include <optional>

#include "weir/base/detail/list.hpp"
#include "weir/http/server/detail/connection_node.hpp"
#include "weir/http/server/detail/connection_permit.hpp"
#include "weir/http/server/detail/connection_reserve.hpp"
#include "weir/http/server/detail/drain_node.hpp"
#include "weir/http/server/detail/handshake_node.hpp"
#include "weir/http/server/detail/server_connection_count.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/stream.hpp"
#include "weir/os/address.hpp"

namespace weir::http {

class Rejection;
class ServerState;

/// Limits the connections of a server, and drains those that are open.
/// Threads: the loop's.
class OpenConnections : DrainObserver {
 public:
  /// Half of the descriptors that a server does not use for connections.
  static constexpr std::size_t rejections_max = 32;
  /// Largest number of evicted connections of a core whose tasks have not ended.
  static constexpr std::size_t evictions_max = 16;

  /// `most` is Limits::connections_max, unless there is a `reserve`.
  OpenConnections(ServerState& server, Loop& loop, std::size_t most, ConnectionReserve* reserve);
  /// Counts apart from the servers of the same router at other endpoints. Call it before the first
  /// permit.
  /// Errors: throws std::bad_alloc.
  void set_endpoint(const Endpoint& endpoint);
  ~OpenConnections() { assert(open_.empty()); }

  /// Returns the number of permits. All servers of a runtime without a limit share them.
  std::size_t permits_max() const noexcept;
  /// Returns a permit for one more connection; nullopt if all permits are in use.
  std::optional<ConnectionPermit> try_acquire_permit() noexcept;
  /// Returns a permit for a new connection. If all permits are in use, a connection or a handshake
  /// of this core gives up its own, and closes soon. It has had no request for 1 s. It belongs to
  /// the network of the new connection, or to a network with at least two more connections and an
  /// eighth of a sample. A client with many connections thus costs only itself. Among the sample,
  /// the network with the most connections gives up the one that has waited longest.
  /// Returns: nullopt if no connection can give way, or if evictions_max have not ended.
  std::optional<ConnectionPermit> acquire_permit(const Stream& stream);
  /// Tells that the task of an evicted connection has ended.
  void eviction_ended() noexcept { --evictions_; }

  /// Adds or removes a connection that has a permit.
  void add(ConnectionNode& connection) noexcept;
  void remove(ConnectionNode& connection) noexcept;

  /// Adds a handshake or a WebSocket, which drain() then calls unless it has ended.
  void add(HandshakeNode& handshake) noexcept { handshakes_.push_back(handshake); }
  void add(DrainNode& websocket) noexcept { websockets_.push_back(websocket); }

  /// Calls `see` for each open connection, the oldest first, until it returns false.
  template <class See>
  void visit(const See& see) const {
    ConnectionNode* each = open_.front();
    while (each != nullptr && see(*each)) each = open_.next(*each);
  }

  /// Drains the open connections whose proof has ended; see Connection::proof_ended().
  void drain_unproven();

  bool draining() const noexcept { return draining_; }
  /// Drains the open connections, handshakes and WebSockets, and every later connection.
  void drain();

 private:
  void release_permit() noexcept;
  friend ConnectionPermit;
  friend Rejection;
  ServerState& server_;
  ConnectionReserve::Use reserve_;
  std::atomic<std::size_t>& all_open_;          // of all servers of the runtime, or of the reserve
  std::shared_ptr<ServerConnectionCount> own_;  // nullptr: connections_max_ limits all_open_
  std::size_t connections_max_;
  // Connections of reserves, which connections_max_ includes; nullptr if it does not.
  const std::atomic<std::size_t>* reserved_;
  std::size_t rejections_ = 0;
  std::size_t evictions_ = 0;
  bool draining_;
  weir::detail::List<ConnectionNode> open_;
  ConnectionNode* next_sampled_ = nullptr;        // nullptr: the front of open_
  weir::detail::List<HandshakeNode> handshakes_;  // the oldest first
  weir::detail::List<DrainNode> websockets_;
};

}  // namespace weir::http
