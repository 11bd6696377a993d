// The steps of a client's WebSocket: the opening handshake, and the use of what it has opened.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "weir/base/buffer.hpp"
#include "weir/base/result.hpp"
#include "weir/http/client/client.hpp"
#include "weir/http/client/client_response.hpp"
#include "weir/http/client/detail/client_pool.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/url.hpp"
#include "weir/http/ws/detail/extension.hpp"
#include "weir/http/ws/websocket.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// A connection or a stream of HTTP/2 whose server has accepted a WebSocket, before its use.
struct OpenedWebSocket {
  AnyStream stream;
  Buffer input;                             ///< the bytes behind the response
  std::string subprotocol;                  ///< the chosen one; empty for none
  std::optional<WebSocketDeflate> deflate;  ///< the agreed compression
  Headers headers;  ///< those of the response, without those of the handshake
  bool is_http2 = false;
};

/// The answer of a server: the WebSocket, or the response that refuses it.
using WebSocketAnswer = std::variant<OpenedWebSocket, ClientResponse>;

/// Asks the server of `url` for a WebSocket: over a stream of HTTP/2 if the server offers it, else
/// over a connection of its own, of HTTP/1.1. The pool does not count the latter.
/// Errors: ClientError; tls::Error; Errc::bad_input for a header of the handshake among those of
/// `options`, and for a subprotocol that is no token.
/// Cancel: closes the connection, or resets the stream.
/// Lifetime: the pool outlives the answer; `options` outlive the call.
Task<Result<WebSocketAnswer>> open_websocket(ClientPool& pool, Url url,
                                             const ClientWebSocketOptions& options);

/// Calls `serve` for a WebSocket that was opened with these options, and performs the closing
/// handshake after its task.
/// Returns: the result of the task; a success if it is the end of a connection that the server has
/// closed with a Close.
/// Cancel: cancels the task, waits for it and closes the connection, or resets the stream.
/// Lifetime: the options outlive the call.
Task<Result<>> use_websocket(OpenedWebSocket opened, WebSocketFunction serve,
                             const ClientWebSocketOptions& options);

}  // namespace weir::http
