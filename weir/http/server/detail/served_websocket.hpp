// A WebSocket of a server: what a connection becomes behind the response that accepts it.
#pragma once

#include <exception>
#include <optional>
#include <system_error>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/block_pool.hpp"
#include "weir/http/router/detail/route_snapshot.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/http/ws/detail/connection.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// Keeps the handler of a WebSocket and its route. A drain of the server sends a Close with 1001.
/// The removal of the route and the replacement of its service send 1012. The connection ends after
/// WebSocketLimits::close_timeout at the latest.
/// Threads: its loop's.
/// Lifetime: the server outlives it.
class ServedWebSocket final : public DrainNode, InFlightRequest {
 public:
  /// `route` is that of the request, which is not released yet.
  ServedWebSocket(ServerState& server, const Route* route, WebSocketUpgrade upgrade);
  ~ServedWebSocket();

  /// Takes the connection. `input` are the bytes behind the handshake.
  void open(ConnectionPermit permit, AnyStream stream, Buffer input, CancelSource* parent);
  /// Returns the context of the handler, after open().
  Context context() noexcept { return {&server_.loop(), &*handler_}; }
  WsConnection& connection() noexcept { return *connection_; }
  /// Calls the handler.
  WebSocketTask start() { return upgrade_.serve(*connection_); }
  /// Logs a failure of the handler, unless the end of the connection explains it.
  void report(std::error_code error, const std::exception_ptr& exception);
  /// Closes the stream after WsConnection::finish().
  void close() noexcept;

  void drain() override { close_for(WebSocketCloseCode::going_away); }

 private:
  void close_for(WebSocketCloseCode code) noexcept;

  ServerState& server_;
  const Route* route_;
  WebSocketUpgrade upgrade_;
  ConnectionPermit permit_;  // released after the stream is closed
  std::optional<CancelSource> handler_;
  std::optional<WsConnection> connection_;
  std::optional<WebSocketCloseCode> close_for_;  // before open()
};

/// Serves a WebSocket until its end, after open().
/// Cancel: cancels the handler and closes the connection.
Task<> serve_websocket(BlockPtr<ServedWebSocket> socket);

}  // namespace weir::http
