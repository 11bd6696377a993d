// What a server still reads from a client that it has answered.
#pragma once

#include <algorithm>
#include <cstdint>

#include "weir/base/time.hpp"
#include "weir/http/server/limits.hpp"

namespace weir::http {

/// The bytes that a client may still send after its last answer.
enum class LateInput : std::uint8_t {
  none,  ///< none is expected: the peer has sent its last request, or breaks a rule
  body,  ///< the rest of a body whose request is answered
};

/// The bounds within which the server reads and drops late input. A client that reads nothing
/// before all of its body is sent then gets the answer, and a reset does not destroy it. The wait
/// ends after Limits::linger_timeout or linger_bytes_max, or for a body after
/// rejected_body_timeout, rejected_body_max, or linger_timeout without a byte. The carriers of HTTP
/// share this rule: HTTP/1 closes the connection afterwards, and HTTP/2 resets the stream.
/// Threads: any, one at a time.
class Linger {
 public:
  Linger(const Limits& limits, LateInput expected, Instant now) noexcept
      : stall_max_(limits.linger_timeout), bytes_left_(limits.linger_bytes_max) {
    Duration most = limits.linger_timeout;
    if (expected == LateInput::body) {
      most = std::max(most, limits.rejected_body_timeout);
      bytes_left_ = std::max(bytes_left_, limits.rejected_body_max);
    }
    end_ = after(now, most);
    stall_end_ = after(now, stall_max_);
  }

  /// Returns the end of the wait if no byte arrives before.
  Instant deadline() const noexcept { return std::min(end_, stall_end_); }
  /// Returns the number of bytes that may still arrive. One more ends the wait.
  std::uint64_t bytes_left() const noexcept { return bytes_left_; }
  /// Counts bytes that have arrived. Returns false if they are too many.
  bool count(std::uint64_t bytes, Instant now) noexcept {
    if (bytes > bytes_left_) return false;
    bytes_left_ -= bytes;
    stall_end_ = after(now, stall_max_);
    return true;
  }
  /// Shortens the wait, because the server drains. Only the first call has an effect.
  void drain(Instant now) noexcept {
    if (!drains_) end_ = std::min(end_, after(now, stall_max_));
    drains_ = true;
  }

 private:
  Instant end_;
  Instant stall_end_;  // unless more bytes arrive before
  Duration stall_max_;
  std::uint64_t bytes_left_;
  bool drains_ = false;
};

}  // namespace weir::http
