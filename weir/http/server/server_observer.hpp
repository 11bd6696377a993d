// An observer of the requests that a server has ended.
#pragma once

#include <cstdint>
#include <span>

#include "weir/base/time.hpp"
#include "weir/http/matching/route.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/http/syntax/status.hpp"

namespace weir {
class Loop;
}

namespace weir::http {

/// The facts of a request that has ended.
struct EndedRequest {
  Instant begin;                     ///< the time of the loop turn in which the request began
  const RouteName* route = nullptr;  ///< nullptr: the router itself answered
  Status status = Status();          ///< Status(): the client left before it had the response
  Method method = Method::other;     ///< `other` also for a head that could not be parsed
  Version version = Version::http_1_1;
  bool complete = false;  ///< the whole response was handed to the connection
};

/// A ServerObserver receives the ended requests of a server, in batches. A request that becomes a
/// WebSocket ends when its response is sent.
/// Threads: each core of the server calls it on its own thread.
/// Lifetime: outlives the server.
class ServerObserver {
 public:
  /// Is called with the requests that ended in a turn of `loop`, at most 64 in each call. `end` is
  /// the time at the end of the turn, or the loop's latest time if more requests ended in it.
  virtual void on_requests_ended(Loop& loop, Instant end,
                                 std::span<const EndedRequest> requests) noexcept = 0;

 protected:
  ~ServerObserver() = default;
};

}  // namespace weir::http
