// The limits of an HTTP client, with their defaults.
#pragma once

#include <cstddef>
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
  /// Time of each wait for bytes of a body, in both directions; body_timed_out.
  Duration body_timeout = std::chrono::seconds(30);
  /// Time from the call of send() to the end of the body, retry and redirects included; timed_out.
  Duration total_timeout = Duration::max();
  /// Bytes of a body that ClientResponse::body() and json() collect; body_too_large.
  std::uint64_t body_max = 16 * 1024 * 1024;
  unsigned redirects_max = 10;  ///< redirects of one request, 0 for none; too_many_redirects

  std::size_t connections_per_origin_max = 64;  ///< connections in use and idle; the request waits
  std::size_t connections_max = 1024;           ///< those of all origins; the request waits
  std::size_t queue_max = 4096;                 ///< waiting requests; queue_full
  /// Time for which a request waits for a connection, in the order of the calls; queue_timed_out.
  Duration queue_timeout = std::chrono::seconds(5);
  /// Time for which an idle connection stays open. It is below the 5 s of common servers, so that
  /// the client closes first.
  Duration idle_timeout = std::chrono::seconds(4);
  /// Age at which a connection is not used again, so that a changed address of a name is noticed.
  Duration age_max = std::chrono::minutes(5);
};

}  // namespace weir::http
