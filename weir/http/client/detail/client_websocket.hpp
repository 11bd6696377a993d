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

/// A connection whose server has accepted a WebSocket, before its use.
struct OpenedWebSocket {
  AnyStream stream;
  Buffer input;                             ///< the bytes behind the response
  std::string subprotocol;                  ///< the chosen one; empty for none
  std::optional<WebSocketDeflate> deflate;  ///< the agreed compression
  Headers headers;  ///< those of the response, without those of the handshake
};

/// The answer of a server: the WebSocket, or the response that refuses it.
using WebSocketAnswer = std::variant<OpenedWebSocket, ClientResponse>;

/// Opens a connection of its own to the server of `url`, and asks it for a WebSocket over HTTP/1.1.
/// The connection is not counted by the pool.
/// Errors: ClientError; tls::Error; Errc::bad_input for a header of the handshake among those of
/// `options`, and for a subprotocol that is no token.
/// Cancel: closes the connection.
/// Lifetime: the pool outlives the answer; `options` outlive the call.
Task<Result<WebSocketAnswer>> open_websocket(ClientPool& pool, Url url,
                                             const ClientWebSocketOptions& options);

/// Calls `serve` for a WebSocket that was opened with these options, and performs the closing
/// handshake after its task.
/// Returns: the result of the task; a success if it is the end of a connection that the server has
/// closed with a Close.
/// Cancel: cancels the task, waits for it and closes the connection.
/// Lifetime: the options outlive the call.
Task<Result<>> use_websocket(OpenedWebSocket opened, WebSocketFunction serve,
                             const ClientWebSocketOptions& options);

}  // namespace weir::http
