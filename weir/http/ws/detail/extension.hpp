// The negotiation of permessage-deflate (RFC 7692 §7): offers of clients, responses of servers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/http/ws/websocket_limits.hpp"

namespace weir::http {

// The binary logarithms of windows.
inline constexpr int deflate_window_min = 8;          // of the protocol
inline constexpr int deflate_sending_window_min = 9;  // of a compressor of zlib
inline constexpr int deflate_window_max = 15;

/// The parameters of permessage-deflate that both sides have agreed on. `server` is about the
/// messages of the server, `client` about those of the client.
struct WebSocketDeflate {
  /// One direction.
  struct Direction {
    bool has_context = true;        ///< its messages may refer to earlier ones
    std::uint8_t window_bits = 15;  ///< the binary logarithm of its largest window, from 8 to 15
    bool operator==(const Direction&) const = default;
  };
  Direction server;
  Direction client;
  bool operator==(const WebSocketDeflate&) const = default;
};

/// Returns true if a connection with this compression can be made: its values are in their ranges,
/// and the build has zlib.
bool can_deflate(const WebSocketCompression& own) noexcept;

// Servers.

/// The acceptance of an offer.
struct DeflateAcceptance {
  WebSocketDeflate agreed;
  std::string response;  ///< the value of the Sec-WebSocket-Extensions of the response
};

/// Accepts the first offer of permessage-deflate in the value of a Sec-WebSocket-Extensions that a
/// server with `own` can serve. Offers with unknown, repeated or invalid parameters are declined.
std::optional<DeflateAcceptance> accept_deflate(std::string_view offers,
                                                const WebSocketCompression& own);

// Clients.

/// Returns the value of the Sec-WebSocket-Extensions of a request.
std::string deflate_offer(const WebSocketCompression& own);
/// Checks the value of the Sec-WebSocket-Extensions of a response to deflate_offer().
/// Returns: the parameters; std::nullopt if the client has to fail the connection (RFC 7692 §7.1).
std::optional<WebSocketDeflate> check_deflate_response(std::string_view response,
                                                       const WebSocketCompression& own) noexcept;

}  // namespace weir::http
