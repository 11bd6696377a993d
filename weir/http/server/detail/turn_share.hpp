// The share of one turn of a loop that the requests of one connection may use.
#pragma once

#include <chrono>
#include <cstdint>

#include "weir/base/time.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/detail/turn_uses.hpp"

namespace weir::http {

/// A TurnShare bounds the requests of one connection that run in one turn. Requests that a client
/// has sent together could otherwise delay all other connections of the core. Many of them, such as
/// HEAD and 304, have no output that would end the turn. The share is at most 128 requests and
/// about 200 us. The clock is read once per four requests, because a reading after each request
/// would cost too much.
/// Threads: the loop's.
class TurnShare {
 public:
  static constexpr std::uint8_t requests_max = 128;
  static constexpr std::uint8_t requests_per_reading = 4;
  static constexpr Duration time_max = std::chrono::microseconds(200);

  /// Counts a request that another one follows in the input. `weight` is the number of requests
  /// that it counts for.
  /// Returns: true if the next request must wait for the next turn.
  bool used(Loop& loop, std::uint8_t weight = 1) noexcept {
    const std::uint8_t requests = uses_.count(loop, weight);
    const bool first = requests <= weight;
    if (!first && requests % requests_per_reading != 1) return requests >= requests_max;
    const Instant now = loop.platform().now();
    if (first) begun_ = now;
    return now - begun_ > time_max;
  }

 private:
  weir::detail::TurnUses uses_;
  Instant begun_{};  // after the first request of the turn
};

}  // namespace weir::http
