// WebSocket connections (RFC 6455), as handlers of servers and functions of clients use them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/ws/websocket_limits.hpp"
#include "weir/net/tls_info.hpp"
#include "weir/os/address.hpp"
#include "weir/task/detail/wait.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

class WebSocketRead;
class WebSocketSend;
class WsConnection;

/// A message, or a piece of one.
/// Lifetime: `bytes` of a received message are valid until the next read of its socket.
struct WebSocketMessage {
  bool is_text = false;  ///< text in UTF-8, else binary
  bool ends = true;      ///< false for a piece with more pieces behind it
  Bytes bytes;

  std::string_view text() const noexcept { return to_text(bytes); }
};

/// A WebSocket connection after its handshake. It answers pings, sends pings to a silent peer, and
/// performs the closing handshake, while its handler reads, sends or waits for anything else. If
/// the connection is lost, the task of a handler that does not read is cancelled.
///
/// Messages that are sent in one turn of the loop share a write. Several tasks of a handler may
/// send; one at a time may read.
/// Threads: one core's.
/// Lifetime: until the handler has returned.
class WebSocket {
 public:
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;

  /// Reads the next message, of at most WebSocketLimits::message_bytes_max bytes. The text of a
  /// text message is valid UTF-8.
  /// Returns: a Result<WebSocketMessage> from `co_await socket.read()`.
  /// Errors: Errc::end_of_stream after the Close of the peer. Errc::bad_input or
  /// Errc::limit_reached if the peer has violated the protocol or a limit; Errc::timed_out if it
  /// does not answer; Errc::closed if the connection ended without a Close; those of
  /// Stream::read(). Cancel: loses no message.
  WebSocketRead read() noexcept;
  /// Reads the next piece of a message as it arrives, so that a large message is never held. After
  /// pieces of a message, read() returns the rest of the message.
  /// Returns: a Result<WebSocketMessage> from `co_await`; `ends` tells if the message ends.
  /// Errors: those of read().
  /// Cancel: loses no piece.
  WebSocketRead read_piece() noexcept;

  /// Sends a message: text, binary data, or a message that was received. It waits while more than
  /// WebSocketLimits::output_max bytes wait to be sent.
  /// Returns: a Result<> from `co_await socket.send(...)`.
  /// Errors: Errc::bad_input for a text that is not UTF-8; Errc::conflict if a message of
  /// send_piece() has not ended; Errc::closed if a Close was sent or received, or the connection is
  /// lost.
  /// Cancel: sends nothing, or closes the connection if a part of the message was sent.
  /// Lifetime: the bytes stay valid until the return.
  WebSocketSend send(std::string_view text) noexcept;
  WebSocketSend send(Bytes binary) noexcept;
  WebSocketSend send(const WebSocketMessage& message) noexcept;
  /// Sends a piece of a message, which ends with a piece whose `ends` is true. Until then, no other
  /// message can be sent. The pieces of a text need not end between characters.
  /// Returns: a Result<> from `co_await`.
  /// Errors: those of send(), but a text is not checked.
  /// Cancel: that of send().
  /// Lifetime: the bytes stay valid until the return.
  WebSocketSend send_piece(const WebSocketMessage& piece) noexcept;

  /// Performs the closing handshake: sends a Close and waits for that of the peer. Messages that
  /// still arrive are dropped; a read of another task waits for the end. A handler that returns has
  /// the same effect, with the code `normal`.
  /// `code` is valid in a Close; `reason` is cut after 123 bytes.
  /// Errors: Errc::timed_out after WebSocketLimits::close_timeout; those of read() if the
  /// connection is lost.
  /// Cancel: the Close is sent nevertheless.
  Task<Result<>> close(WebSocketCloseCode code = WebSocketCloseCode::normal,
                       std::string_view reason = {});

  /// Returns true until a Close was sent or received, or the connection is lost.
  bool is_open() const noexcept;
  /// Returns the code of the Close of the peer: `no_status` if it had none, `abnormal` if there is
  /// none.
  WebSocketCloseCode close_code() const noexcept;
  /// Returns the reason of the Close of the peer.
  std::string_view close_reason() const noexcept;
  /// Returns the chosen subprotocol; empty for none.
  std::string_view subprotocol() const noexcept;
  /// Returns the address of the other end of the connection.
  os::Address peer_address() const;
  /// Returns the facts of the TLS connection; nullptr if it is plain.
  const TlsInfo* tls() const noexcept;
  Loop& loop() const noexcept;

 private:
  friend WsConnection;
  WebSocket() noexcept = default;
  ~WebSocket() = default;
  WsConnection& connection() noexcept;
  const WsConnection& connection() const noexcept;
};

/// The awaitable of WebSocket::read(), also in select().
class [[nodiscard]] WebSocketRead : public Wait {
 public:
  using Value = Result<WebSocketMessage>;
  WebSocketRead(WsConnection& connection, bool whole) noexcept
      : connection_(connection), whole_(whole) {}

  bool ready();
  bool begin(Loop& loop);
  void withdraw() noexcept;
  Value value();
  WaitAwaiter<WebSocketRead> operator co_await() && noexcept {
    return WaitAwaiter<WebSocketRead>(*this);
  }
  bool whole() const noexcept { return whole_; }

 private:
  WsConnection& connection_;
  bool whole_;
};

/// The awaitable of WebSocket::send(), also in select().
class [[nodiscard]] WebSocketSend : public QueuedWait {
 public:
  using Value = Result<>;
  enum class Kind : std::uint8_t { message, unchecked_text, piece };
  WebSocketSend(WsConnection& connection, const WebSocketMessage& message, Kind kind) noexcept
      : connection_(connection),
        bytes_(message.bytes.data(), message.bytes.size()),  // a copy of the span needs its address
        is_text_(message.is_text),
        ends_(message.ends),
        kind_(kind) {}

  bool ready();
  bool begin(Loop& loop);
  void withdraw() noexcept;
  Value value() const noexcept {
    if (error_ != Errc()) return fail(error_);
    return {};
  }
  WaitAwaiter<WebSocketSend> operator co_await() && noexcept {
    return WaitAwaiter<WebSocketSend>(*this);
  }

 private:
  friend WsConnection;
  WebSocketMessage message() const noexcept {
    return {.is_text = is_text_, .ends = ends_, .bytes = bytes_};
  }

  WsConnection& connection_;
  Bytes bytes_;
  std::size_t taken_ = 0;  // bytes of the message that were copied to the output
  Errc error_{};           // none at first
  bool is_text_;
  bool ends_;
  Kind kind_;
  bool begun_ = false;  // the header was written
};

// The functions that send are inline, so that a message takes no room in the frame of a coroutine.

inline WebSocketSend WebSocket::send(std::string_view text) noexcept {
  return {connection(),
          {.is_text = true, .bytes = to_bytes(text)},
          WebSocketSend::Kind::unchecked_text};
}
inline WebSocketSend WebSocket::send(Bytes binary) noexcept {
  return {connection(), {.bytes = binary}, WebSocketSend::Kind::message};
}
inline WebSocketSend WebSocket::send(const WebSocketMessage& message) noexcept {
  return {connection(),
          {.is_text = message.is_text, .bytes = message.bytes},
          message.is_text ? WebSocketSend::Kind::unchecked_text : WebSocketSend::Kind::message};
}
inline WebSocketSend WebSocket::send_piece(const WebSocketMessage& piece) noexcept {
  return {connection(), piece, WebSocketSend::Kind::piece};
}

// Servers.

/// The requests that a WebSocket route accepts.
struct WebSocketOptions {
  /// The subprotocols of the handler. The first one of the client that is known here is chosen; see
  /// WebSocket::subprotocol().
  std::vector<std::string> subprotocols = {};
  /// Origins of pages that may connect besides those of the same host and port, such as
  /// "https://app.example"; "*" allows all. A request without Origin is not from a page, and is
  /// always allowed. Without this check, any page could use the cookies of its visitor.
  std::vector<std::string> origins = {};
  /// Compresses messages for clients that offer it. Off by default.
  std::optional<WebSocketCompression> compression = {};
};

/// The task of a function that serves a WebSocket. It may return an error.
using WebSocketTask = std::variant<Task<>, Task<Result<>>>;
/// Serves a WebSocket. The function lives until its task has ended.
using WebSocketFunction = std::move_only_function<WebSocketTask(WebSocket&)>;

/// Checks the opening handshake of `request`, and returns the response that accepts or rejects it.
/// After an acceptance, `serve` is called for the connection. It is for handlers that look at the
/// request themselves; see RouteMethods::websocket(). The request ends with the response, so
/// `serve` keeps no view into the request. A request of HTTP/1.1 that is no handshake gets 426.
Response accept_websocket(const Request& request, WebSocketFunction serve,
                          std::shared_ptr<const WebSocketOptions> options = {});

}  // namespace weir::http
