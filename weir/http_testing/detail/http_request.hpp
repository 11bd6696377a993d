// A generated HTTP request and the response that it expects.
#pragma once

#include <cstddef>
#include <string>

#include "weir/sim/detail/random.hpp"

namespace weir::sim {

/// The server of the requests has these resources:
///     GET, HEAD /n/{id}         "n {id}\n"
///     GET /slow/{id}/{ms}       "slow {id}\n", after {ms} milliseconds
///     GET /pool/{id}            "pool {id}\n", made by a function in a blocking pool
///     GET /lines/{id}/{count}   "{id}\n", {count} times, streamed
///     POST /echo/{id}           "echo {id} {size} {sum}\n" of the body's bytes
/// It answers other paths with 404. It answers a malformed request with 400 and closes.
struct HttpRequest {
  std::string method = "GET";
  std::string text;  ///< bytes to send
  int status = 200;
  std::string body;                ///< expected body of a response with status 200
  bool closes_connection = false;  ///< true if the server closes after the response
};

/// Returns a random request. It closes the connection only if it is the `last` one.
HttpRequest random_http_request(Random& random, std::size_t id, bool last);

}  // namespace weir::sim
