// The functions that handlers of WebSockets call.
#include "weir/http/ws/websocket.hpp"

#include "weir/http/ws/detail/connection.hpp"

namespace weir::http {

// The waits.

bool WebSocketRead::ready() {
  return connection_.try_read(*this);
}
bool WebSocketRead::begin(Loop&) {
  return connection_.begin_read(*this);
}
void WebSocketRead::withdraw() noexcept {
  connection_.withdraw(*this);
}
WebSocketRead::Value WebSocketRead::value() {
  return connection_.taken();
}

bool WebSocketSend::ready() {
  return connection_.try_send(*this);
}
bool WebSocketSend::begin(Loop&) {
  connection_.begin_send(*this);
  return true;
}
void WebSocketSend::withdraw() noexcept {
  connection_.withdraw(*this);
}

// The functions of handlers.

WsConnection& WebSocket::connection() noexcept {
  return static_cast<WsConnection&>(*this);
}
const WsConnection& WebSocket::connection() const noexcept {
  return static_cast<const WsConnection&>(*this);
}
WebSocketRead WebSocket::read() noexcept {
  return {connection(), true};
}
WebSocketRead WebSocket::read_piece() noexcept {
  return {connection(), false};
}
bool WebSocket::is_open() const noexcept {
  return connection().may_send();
}
WebSocketCloseCode WebSocket::close_code() const noexcept {
  return connection().close_code();
}
std::string_view WebSocket::close_reason() const noexcept {
  return connection().close_reason();
}
std::string_view WebSocket::subprotocol() const noexcept {
  return connection().subprotocol();
}
os::Address WebSocket::peer_address() const {
  return connection().stream()->peer_address();
}
const TlsInfo* WebSocket::tls() const noexcept {
  return connection().stream()->tls();
}
Loop& WebSocket::loop() const noexcept {
  return connection().loop();
}

Task<Result<>> WebSocket::close(WebSocketCloseCode code, std::string_view reason) {
  WsConnection& connection = this->connection();
  connection.begin_close(code, reason);
  connection.drop_messages();
  if (!connection.error()) {
    WEIR_CO_TRY(co_await connection.wait_for_end());
  }
  if (connection.error() != Errc::end_of_stream) co_return fail(connection.error());
  co_return {};
}

}  // namespace weir::http
