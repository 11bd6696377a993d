// The reasons for which a request of a client has no response.
#pragma once

#include <cstdint>
#include <string_view>
#include <system_error>

#include "weir/http/syntax/status.hpp"

namespace weir::http {

/// The reason why a client has no response, or only a part of one. It converts to std::error_code
/// (category "weir.http.client"). to_status() of that code is 503 for the queue and not_processed,
/// 504 for another timeout and 502 otherwise. A handler may therefore return the error of a server
/// that it asked. A TLS handshake that failed is a tls::Error, whose status is 502 or 504. If this
/// machine has no descriptor or memory for a connection, the error is that of the kernel, such as
/// EMFILE; 503.
enum class ClientError : std::uint16_t {
  connect_failed = 1,  ///< no address, or no address that accepts connections
  connect_timed_out,   ///< ClientLimits::connect_timeout
  queue_full,          ///< ClientLimits::waiting_max
  queue_timed_out,     ///< ClientLimits::queue_timeout
  head_timed_out,      ///< ClientLimits::head_timeout
  body_timed_out,      ///< ClientLimits::body_timeout
  timed_out,           ///< ClientLimits::total_timeout
  connection_lost,     ///< the connection ended before the response did
  bad_response,        ///< bytes that HTTP/1.1 or a limit does not allow
  body_too_large,      ///< ClientLimits::body_max
  bad_json,            ///< a body that is not the JSON of the wanted type
  bad_redirect,        ///< a Location that is no URL, or one that leads from https to http
  too_many_redirects,  ///< ClientLimits::redirects_max
  proxy_refused,       ///< the proxy opened no tunnel
  not_processed,       ///< the server of HTTP/2 says that it has not acted on the request
};

/// Returns the status for a client of a server that failed with this error: 502, 503 or 504.
Status to_status(ClientError error) noexcept;

/// Returns a short name for counters and logs, such as "head_timed_out".
/// Lifetime: the text lives as long as the process.
std::string_view name_of(ClientError error) noexcept;

/// Returns the error for a response of another server with this status, which is 400 or more. Its
/// category is that of ClientError, its value is the number of the status, and its text is "the
/// server answered 404 Not Found". Its to_status() is 502.
std::error_code error_of(Status status) noexcept;

/// Returns the category of ClientError; its name is "weir.http.client".
const std::error_category& client_error_category() noexcept;

inline std::error_code make_error_code(ClientError error) noexcept {
  return {static_cast<int>(error), client_error_category()};
}

}  // namespace weir::http

template <>
struct std::is_error_code_enum<weir::http::ClientError> : std::true_type {};
