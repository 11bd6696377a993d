// A WebSocket of a server: what a connection becomes behind the response that accepts it.
#pragma once

#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/block_pool.hpp"
#include "weir/http/router/detail/route_snapshot.hpp"
#include "weir/http/server/detail/connection_permit.hpp"
#include "weir/http/server/detail/drain_node.hpp"
#include "weir/http/ws/detail/connection.hpp"
#include "weir/http/ws/detail/handshake.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

class ServerState;

/// Keeps the handler of a WebSocket and its route. A drain of the server sends a Close with 1001.
/// The removal of the route and the replacement of its service send 1012. The connection ends after
/// WebSocketLimits::close_timeout at the latest.
///
/// It runs the handler's task itself, so that an idle WebSocket has no other coroutine. The steps
/// behind the end of the handler need no memory.
/// Threads: its loop's.
/// Lifetime: the server outlives it.
class ServedWebSocket final : public DrainNode, InFlightRequest, Continuation, loop::Runnable {
 public:
  /// `route` is that of the request, which is not released yet. A cancellation of `parent` cancels
  /// the handler and closes the connection.
  ServedWebSocket(ServerState& server, const Route* route, WebSocketUpgrade upgrade,
                  CancelSource* parent);
  ~ServedWebSocket();

  /// Takes the connection. `input` are the bytes behind the handshake.
  void open(ConnectionPermit permit, AnyStream stream, Buffer input);
  /// Serves a WebSocket after open() until its end, and destroys it then. `end` is put into the
  /// ready queue afterwards, unless it is nullptr.
  static void serve(BlockPtr<ServedWebSocket> socket, loop::Runnable* end) noexcept;

  void drain() override { close_for(WebSocketCloseCode::going_away); }

 private:
  struct BeforeOpen {
    std::unique_ptr<const std::string> subprotocol;  // nullptr for none
    std::unique_ptr<WsDeflate> deflate;
    std::optional<WebSocketCloseCode> close_for;
    CancelSource* parent;
  };
  void start();
  template <class T>
  void start(Task<T> task);
  template <class T>
  static std::coroutine_handle<> on_handler_end(Continuation& self,
                                                std::coroutine_handle<> finished) noexcept;
  template <class T>
  static constexpr Kind handler_kind{&on_handler_end<T>, nullptr, "WebSocket"};
  void finish(std::error_code error, const std::exception_ptr& exception) noexcept;
  void report(std::error_code error, const std::exception_ptr& exception);
  void end() noexcept;
  void close_stream() noexcept;
  void close_for(WebSocketCloseCode code) noexcept;
  /// Returns the connection, after open().
  WsConnection& connection() noexcept { return *std::get_if<WsConnection>(&state_); }

  ServerState& server_;
  const Route* route_;
  WebSocketFunction serve_;
  ConnectionPermit permit_;  // released after the stream is closed
  loop::Runnable* end_ = nullptr;
  std::variant<BeforeOpen, WsConnection> state_;
};

/// `co_await serve_websocket(socket)` serves a WebSocket after open() until its end.
/// Cancel: that of ServedWebSocket.
class [[nodiscard]] serve_websocket : public Waiter {
 public:
  explicit serve_websocket(BlockPtr<ServedWebSocket> socket) noexcept
      : socket_(std::move(socket)) {}
  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    set_coroutine(handle);
    ServedWebSocket::serve(std::move(socket_), this);
  }
  void await_resume() const noexcept {}

 private:
  BlockPtr<ServedWebSocket> socket_;
};

}  // namespace weir::http
