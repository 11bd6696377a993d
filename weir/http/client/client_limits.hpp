// The limits of an HTTP client, with their defaults.
#pragma once

#include <cstdint>

#include "weir/base/time.hpp"
#include "weir/http/detail/h1/response_parser.hpp"

namespace weir::http {

/// The limits of a client. Each comment ends with the error of a request beyond the limit.
struct ClientLimits {
  ResponseLimits response = {};  ///< sizes of heads and chunks; ClientError::bad_response
  /// Time for the name look-up and the connection; connect_timed_out.
  Duration connect_timeout = std::chrono::seconds(5);
  /// Time from the end of the request to the end of the final response's head; head_timed_out.
  Duration head_timeout = std::chrono::seconds(30);
  /// Time of each write of the request, and of each wait for bytes of the response's body;
  /// body_timed_out.
  Duration body_timeout = std::chrono::seconds(30);
  /// Time from the call of send() to the end of the response's body; timed_out.
  Duration total_timeout = Duration::max();
  /// Bytes of a body that ClientResponse::body() and json() collect; body_too_large.
  std::uint64_t body_max = 16 * 1024 * 1024;
};

}  // namespace weir::http
