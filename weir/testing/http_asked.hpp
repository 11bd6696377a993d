// One HTTP request of generated traffic, and the answer to it.
#pragma once

#include <cstddef>
#include <string>

#include "weir/sim/detail/random.hpp"

namespace weir {

/// The resources that it asks for:
///   GET, HEAD /n/{id}         "n {id}\n"
///   GET /slow/{id}/{ms}       the same, after so many milliseconds
///   GET /pool/{id}            the same, by a function in a blocking pool
///   GET /lines/{id}/{count}   "{id}\n" so often, streamed
///   POST /echo/{id}           "echo {id} {size} {sum}\n" of the body's bytes
/// Others are answered by 404, and what is malformed by 400 and a close.
struct HttpAsked {
  std::string method = "GET";
  std::string text;  ///< as it is sent
  int status = 200;
  std::string body;     ///< of the answer to it, when that is a 200
  bool closes = false;  ///< the server closes behind the answer
};

/// Any of them; only the `last` one of a connection may be one that closes it.
HttpAsked draw_http_request(WorldDraw& draw, std::size_t id, bool last);

}  // namespace weir
