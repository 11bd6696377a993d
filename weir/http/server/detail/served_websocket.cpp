#include "weir/http/server/detail/served_websocket.hpp"

#include <new>
#include <string>
#include <utility>

#include "weir/http/matching/route.hpp"
#include "weir/task/scope.hpp"

namespace weir::http {

ServedWebSocket::ServedWebSocket(ServerState& server, const Route* route, WebSocketUpgrade upgrade)
    : InFlightRequest(
          server.routes(), route,
          [](InFlightRequest& self) {
            static_cast<ServedWebSocket&>(self).close_for(WebSocketCloseCode::service_restart);
          }),
      server_(server),
      route_(route),
      upgrade_(std::move(upgrade)) {
  server.counters().websockets.add();
  server.counters().websockets_open.add();
}

ServedWebSocket::~ServedWebSocket() {
  server_.counters().websockets_open.subtract();
}

void ServedWebSocket::open(ConnectionPermit permit, AnyStream stream, Buffer input,
                           CancelSource* parent) {
  permit_ = std::move(permit);
  handler_.emplace(parent);
  const std::string_view subprotocol =
      upgrade_.subprotocol == nullptr ? std::string_view() : *upgrade_.subprotocol;
  std::unique_ptr<WsDeflate> deflate;
  if (upgrade_.deflate) {
    deflate = std::make_unique<WsDeflate>(server_.loop(), WsRole::server, *upgrade_.deflate,
                                          *upgrade_.options->compression);
  }
  connection_.emplace(std::move(stream), WsRole::server, server_.limits().websocket,
                      std::move(input), subprotocol, *handler_, std::move(deflate));
  if (close_for_) {
    connection_->drain(*close_for_);
  } else if (server_.draining()) {
    drain();
  } else {
    server_.connections().add(*this);
  }
}

void ServedWebSocket::close_for(WebSocketCloseCode code) noexcept {
  close_for_ = code;
  if (connection_) connection_->drain(code);
}

void ServedWebSocket::report(std::error_code error, const std::exception_ptr& exception) {
  if (!exception && (!error || connection_->error() || handler_->cancelled())) return;
  server_.counters().handler_failures.add();
  try {
    const std::string name =
        route_ == nullptr ? "WebSocket" : route_->method + " " + route_->pattern.text();
    const std::string why = describe(error, exception);
    server_.loop().platform().log("weir: " + name + ": handler failed: " + why);
  } catch (const std::bad_alloc&) {
    // The failure is counted.
  }
}

void ServedWebSocket::close() noexcept {
  if (!connection_->lingers() || !connection_->stream()->finish_writing()) return;
  if (!permit_) return;  // the stream is a part of a connection
  server_.lingering_streams().add(std::move(connection_->stream()),
                                  server_.limits().linger_timeout);
}

Task<> serve_websocket(BlockPtr<ServedWebSocket> socket) {
  WebSocketCloseCode code = WebSocketCloseCode::normal;
  std::error_code error;
  std::exception_ptr exception;
  try {
    WebSocketTask task = socket->start();
    if (auto* const plain = std::get_if<Task<>>(&task)) {
      in_context<void> running(socket->context(), std::move(*plain));
      co_await std::move(running);
    } else {
      in_context<Result<>> running(socket->context(), std::move(std::get<Task<Result<>>>(task)));
      const Result<> result = co_await std::move(running);
      if (!result) error = result.error();
    }
  } catch (...) {
    exception = std::current_exception();
  }
  if (error || exception) {
    code = WebSocketCloseCode::internal_error;
    socket->report(error, exception);
    exception = nullptr;
  }
  co_await socket->connection().finish(code);
  socket->close();
}

}  // namespace weir::http
