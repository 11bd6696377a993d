#include "weir/http/server/detail/served_websocket.hpp"

#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "weir/http/matching/route.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/task/scope.hpp"

namespace weir::http {

ServedWebSocket::ServedWebSocket(ServerState& server, const Route* route, WebSocketUpgrade upgrade,
                                 CancelSource* parent)
    : InFlightRequest(
          server.routes(), route,
          [](InFlightRequest& self, StopReason) {
            static_cast<ServedWebSocket&>(self).close_for(WebSocketCloseCode::service_restart);
          }),
      Continuation(handler_kind<void>),  // see start()
      loop::Runnable([](loop::Runnable& self) { static_cast<ServedWebSocket&>(self).end(); }),
      server_(server),
      route_(route),
      serve_(std::move(upgrade.serve)),
      state_(BeforeOpen{{}, {}, {}, parent}) {
  auto& before = std::get<BeforeOpen>(state_);
  if (upgrade.deflate) {
    before.deflate = std::make_unique<WsDeflate>(server.loop(), WsRole::server, *upgrade.deflate,
                                                 *upgrade.options->compression);
  }
  if (upgrade.subprotocol != nullptr) {
    before.subprotocol = std::make_unique<const std::string>(*upgrade.subprotocol);
  }
  server.counters().websockets.add();
  server.counters().websockets_open.add();
}

ServedWebSocket::~ServedWebSocket() {
  server_.counters().websockets_open.subtract();
  server_.websockets().on_closed();
}

void ServedWebSocket::open(ConnectionPermit permit, AnyStream stream, Buffer input) {
  permit_ = std::move(permit);
  BeforeOpen before = std::move(std::get<BeforeOpen>(state_));
  auto& connection = state_.emplace<WsConnection>(
      std::move(stream), WsRole::server, server_.limits().websocket, std::move(input),
      std::move(before.subprotocol), before.parent, std::move(before.deflate));
  if (before.close_for) {
    connection.drain(*before.close_for);
  } else if (server_.draining()) {
    drain();
  } else {
    server_.connections().add(*this);
  }
}

void ServedWebSocket::close_for(WebSocketCloseCode code) noexcept {
  if (auto* const before = std::get_if<BeforeOpen>(&state_)) {
    before->close_for = code;
  } else {
    connection().drain(code);
  }
}

void ServedWebSocket::serve(BlockPtr<ServedWebSocket> socket, loop::Runnable* end) noexcept {
  ServedWebSocket& self = *socket.release();
  self.end_ = end;
  try {
    self.start();
  } catch (...) {
    self.finish({}, std::current_exception());
  }
}

/// Calls the handler. The socket may be gone afterwards.
void ServedWebSocket::start() {
  WebSocketTask task = serve_(connection());
  std::visit([this](auto& each) { start(std::move(each)); }, task);
}

template <class T>
void ServedWebSocket::start(Task<T> task) {
  set_kind(handler_kind<T>);
  const auto handle = task.release();
  CancelSource& handler = connection().handler();
  handle.promise().begin(Context{&server_.loop(), &handler}, *this);
  const loop::CurrentActivity::TraceGuard trace_guard(handler.trace());
  loop::CurrentActivity::resume(handle);
}

template <class T>
std::coroutine_handle<> ServedWebSocket::on_handler_end(Continuation& self,
                                                        std::coroutine_handle<> finished) noexcept {
  const auto& promise = Task<T>::Handle::from_address(finished.address()).promise();
  const std::exception_ptr exception = promise.exception();
  std::error_code error;
  if constexpr (!std::is_void_v<T>) {
    if (!exception && !promise.value()) error = promise.value().error();
  }
  finished.destroy();
  static_cast<ServedWebSocket&>(self).finish(error, exception);
  return std::noop_coroutine();
}

/// Performs the closing handshake after the end of the handler. The socket may be gone afterwards.
void ServedWebSocket::finish(std::error_code error, const std::exception_ptr& exception) noexcept {
  const bool failed = error || exception;
  if (failed) report(error, exception);
  const auto code = failed ? WebSocketCloseCode::internal_error : WebSocketCloseCode::normal;
  if (connection().start_finish(code, *this, &connection().handler())) end();
}

/// Logs a failure of the handler, unless the end of the connection explains it.
void ServedWebSocket::report(std::error_code error, const std::exception_ptr& exception) {
  if (!exception && (!error || connection().error() || connection().handler().cancelled())) return;
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

/// Closes the stream and destroys the socket.
void ServedWebSocket::end() noexcept {
  close_stream();
  Loop& loop = server_.loop();
  loop::Runnable* const end = end_;
  BlockDeleter<ServedWebSocket>()(this);
  if (end != nullptr) loop.ready(*end);
}

void ServedWebSocket::close_stream() noexcept {
  if (!connection().lingers() || !connection().stream()->finish_writing()) return;
  if (!permit_) return;  // the stream is a part of a connection
  server_.lingering_streams().add(std::move(connection().stream()),
                                  server_.limits().linger_timeout);
}

}  // namespace weir::http
