// The opening handshake of WebSocket over HTTP/1.1 (RFC 6455 §4) and over HTTP/2 (RFC 8441).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/detail/bytes.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/http/ws/detail/extension.hpp"
#include "weir/http/ws/websocket.hpp"

namespace weir::http {

/// A Sec-WebSocket-Key: the base64 of 16 random bytes.
using WsKey = std::array<char, 24>;
/// A Sec-WebSocket-Accept.
using WsAccept = std::array<char, 28>;

/// Returns the key for 16 random bytes, which a client draws for each handshake.
WsKey websocket_key(std::span<const std::byte, 16> random) noexcept;
/// Returns true if `text` is the base64 of 16 bytes.
bool is_websocket_key(std::string_view text) noexcept;
/// Returns the Sec-WebSocket-Accept for a valid key (RFC 6455 §4.2.2).
WsAccept websocket_accept(std::string_view key) noexcept;

// Servers.

/// The result of the check of a request.
enum class WsVerdict : std::uint8_t {
  accepted,
  not_an_upgrade,       ///< a HEAD, or no request for a WebSocket; 426, or 400 over HTTP/2
  unsupported_version,  ///< another version than 13; 426, or 400 over HTTP/2
  wrong_method,         ///< neither GET nor HEAD; 405
  wrong_headers,        ///< a header is missing, repeated or invalid, or there is a body; 400
  wrong_origin,         ///< the origin is not allowed; 403
};

/// A checked request. The key is a view into its head.
struct WsUpgrade {
  WsVerdict verdict = WsVerdict::accepted;
  std::string_view key;                      ///< empty over HTTP/2
  const std::string* subprotocol = nullptr;  ///< the chosen one of the options; nullptr for none
};

/// Checks a request for WebSocket, which came over TLS if it is `secure`. An extended CONNECT of
/// HTTP/2 has the head of a GET with Upgrade, and no key. The chosen subprotocol is the first one
/// of the client that the route has.
WsUpgrade check_websocket_request(const RequestHead& head, Version version,
                                  const WebSocketOptions& options, bool secure) noexcept;

/// Returns the status for a verdict other than `accepted`.
Status to_status(WsVerdict verdict, Version version) noexcept;
/// Returns the response for a verdict other than `accepted`. A 426 names WebSocket in Upgrade, so
/// the server must name Upgrade in Connection (RFC 9110 §7.8), a header that only the server sets.
Response websocket_rejection(WsVerdict verdict, Version version);

/// Returns the response to an accepted request: 101 with the Sec-WebSocket-Accept, or 200 over
/// HTTP/2. `options` has the chosen subprotocol. `head` is that of the request, whose offers of
/// compression are accepted if `options` allows it.
Response websocket_acceptance(const RequestHead& head, const WsUpgrade& upgrade,
                              WebSocketFunction serve,
                              std::shared_ptr<const WebSocketOptions> options);

/// The future of a connection behind a response that accepts a WebSocket.
struct WebSocketUpgrade {
  WebSocketFunction serve;
  std::shared_ptr<const WebSocketOptions> options;
  const std::string* subprotocol = nullptr;  ///< the chosen one of the options, or nullptr
  std::optional<WebSocketDeflate> deflate = {};
};

// Clients.

/// The offers of a request that a response has chosen.
struct WsChoice {
  std::string_view subprotocol = {};  ///< empty for none
  std::optional<WebSocketDeflate> deflate = {};
};

/// Checks the response to a request with `key`, which is empty over HTTP/2. The request offered
/// `subprotocols`, and `compression` unless it is nullptr (RFC 6455 §4.1, RFC 8441 §5).
/// Returns: what was chosen, with views into the head; std::nullopt if the request is not accepted.
std::optional<WsChoice> check_websocket_response(const ReceivedResponseHead& head,
                                                 std::string_view key,
                                                 std::span<const std::string_view> subprotocols,
                                                 const WebSocketCompression* compression) noexcept;

}  // namespace weir::http
