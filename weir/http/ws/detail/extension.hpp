// The negotiation of permessage-deflate (RFC 7692 §7): offers of clients, responses of servers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weir/http/ws/websocket.hpp"

namespace weir::http {

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
