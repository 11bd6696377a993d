// Authorization by a token: the credentials of a request, and the 401 that demands them.
#pragma once

#include <expected>
#include <string_view>

#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"

namespace weir::http {

/// Returns a 401 with `challenge` in WWW-Authenticate, which RFC 9110 §11.6.1 demands of each 401.
/// The challenge is a scheme and its parameters: "Bearer", or `Basic realm="notes"`.
Response unauthorized(std::string_view challenge);

/// The token of a request with `Authorization: Bearer TOKEN` (RFC 6750 §2.1). A handler takes a
/// Bearer by value, or a from_request() reads it:
///
///     WEIR_TRY(const auto bearer, http::Bearer::from_request(request));
///     if (!users.contains(bearer.token)) {
///       return std::unexpected(http::unauthorized(http::Bearer::invalid_token));
///     }
struct Bearer {
  /// Lifetime: the text is valid as long as the request.
  std::string_view token;

  /// The challenge for a token that is unknown, expired or malformed (RFC 6750 §3.1).
  static constexpr char invalid_token[] = "Bearer error=\"invalid_token\"";

  /// Returns: the token; else the response to the request (RFC 6750 §3): 401 without a token, 401
  /// with `invalid_token` for a malformed one, 400 for several Authorization headers.
  static std::expected<Bearer, Response> from_request(const Request& request);
};

}  // namespace weir::http
