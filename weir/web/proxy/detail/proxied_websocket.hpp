// A WebSocket that a reverse proxy passes on: its handshake with the upstream, and its messages.
#pragma once

#include <optional>

#include "weir/base/result.hpp"
#include "weir/http/client/client_request.hpp"
#include "weir/http/client/detail/client_websocket.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/task/task.hpp"
#include "weir/web/proxy/detail/proxy_core.hpp"
#include "weir/web/proxy/reverse_proxy.hpp"

namespace weir::http::detail {

/// Returns true if the client asks for a WebSocket, over HTTP/1.1 or HTTP/2.
bool asks_for_websocket(const Request& request) noexcept;

/// Returns the answer to a handshake that is not valid; nullopt to pass it on. The upstream checks
/// the origin.
std::optional<Response> refuse_websocket(const Request& request);

/// Asks the chosen upstream for the WebSocket of `request`. `sent` has the URL and the headers that
/// the upstream gets.
/// Errors: those of open_websocket().
/// Cancel: closes the connection.
/// Lifetime: the arguments outlive the call.
Task<Result<WebSocketAnswer>> ask_for_websocket(const Request& request, ClientRequest sent,
                                                ProxyCore::Request& proxied,
                                                const ReverseProxyOptions& options);

/// Returns the response that accepts the WebSocket of `request`, as the upstream has. The messages
/// are then passed on in both directions.
/// Lifetime: the options outlive the WebSocket.
Response forward_websocket(const Request& request, OpenedWebSocket opened,
                           ProxyCore::Request proxied, const ReverseProxyOptions& options);

}  // namespace weir::http::detail
