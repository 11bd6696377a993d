// The limits of an HTTP server, with their defaults. Hitting one is an answer, never a wait.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/base/time.hpp"
#include "weir/http/h1/chunked.hpp"
#include "weir/http/h1/parser.hpp"

namespace weir::http {

/// A rate that a peer must keep up, once a while has passed: so many bytes a second since the
/// start.
struct MinimumRate {
  Duration grace;
  std::uint32_t bytes_per_second;

  /// Until when so many bytes are enough.
  Instant deadline(Instant start, std::uint64_t bytes) const noexcept {
    return after(start, grace + Duration(std::chrono::seconds(1)) *
                                    static_cast<std::int64_t>(bytes / bytes_per_second));
  }
};

struct Limits {
  HeadLimits head;                                        ///< 414 and 431
  ChunkLimits chunks;                                     ///< 400
  Duration head_timeout = std::chrono::seconds(10);       ///< 408 and close
  Duration idle_timeout = std::chrono::seconds(60);       ///< between requests: close
  std::uint64_t body_max = 1024 * 1024;                   ///< 413, unless the route says otherwise
  MinimumRate body_rate{std::chrono::seconds(5), 240};    ///< 408 and close
  MinimumRate write_rate{std::chrono::seconds(10), 240};  ///< close
  /// How much of a body that nobody read is read and dropped; beyond, the connection closes.
  std::uint64_t unread_body_max = 64 * 1024;
  /// How long, and for how many bytes, a closing connection still listens, so that its last answer
  /// is not lost to a reset.
  Duration linger_timeout = std::chrono::seconds(1);
  std::uint64_t linger_bytes_max = 64 * 1024;
  /// Of one server on one core; 0: the descriptor limit less 64, shared by the cores. Beyond: 503.
  std::size_t connections_max = 0;
};

}  // namespace weir::http
