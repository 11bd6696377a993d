// The limits of an HTTP server, with their defaults. Hitting one is an answer, never a wait.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/base/time.hpp"
#include "weir/http/detail/h1/chunked.hpp"
#include "weir/http/detail/h1/parser.hpp"

namespace weir::http {

/// A rate that a peer must keep up while it is waited for. It starts with `grace`; waiting spends
/// that time and bytes earn it back, but never more than `stall_max`, however fast it was before.
struct MinimumRate {
  Duration grace;
  std::uint32_t bytes_per_second;
  Duration stall_max;
};

struct Limits {
  HeadLimits head = {};                              ///< 414 and 431
  ChunkLimits chunks = {};                           ///< 400
  Duration head_timeout = std::chrono::seconds(10);  ///< 408 and close
  Duration idle_timeout = std::chrono::seconds(60);  ///< between requests: close
  /// Before the first byte of all, where that is shorter than idle_timeout: close.
  Duration first_request_timeout = std::chrono::seconds(15);
  std::uint64_t body_max = 1024 * 1024;  ///< 413, unless the route says otherwise
  /// 408 and close.
  MinimumRate body_rate{std::chrono::seconds(5), 240, std::chrono::seconds(20)};
  /// Close. What only fills the kernel's own buffers does not count.
  MinimumRate write_rate{std::chrono::seconds(10), 240, std::chrono::seconds(10)};
  /// How much of a body that nobody read is read and dropped; beyond, the connection closes.
  std::uint64_t unread_body_max = 64 * 1024;
  /// How long, and for how many bytes, a closing connection still listens, so that its last answer
  /// is not lost to a reset.
  Duration linger_timeout = std::chrono::seconds(1);
  std::uint64_t linger_bytes_max = 64 * 1024;
  /// Of all cores of a runtime together; 0: the descriptor limit less 64. Beyond: 503.
  std::size_t connections_max = 0;
};

}  // namespace weir::http
