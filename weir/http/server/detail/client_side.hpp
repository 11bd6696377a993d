// The reads and writes of a request that wait for its client while it holds what others need.
#pragma once

#include <chrono>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/http/message/body.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/server/detail/rate_tracker.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/task/sync/detail/fair_slots.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// Reads from and writes to the client of a request that holds a slot, such as one for an upstream.
/// A client that lets the slot wait for a second, and is slower than 16 KiB per second, loses the
/// slot to another client that waits for one; see FairSlots.
/// Threads: one core's.
/// Lifetime: the slot outlives it, and is not moved.
class ClientSide {
 public:
  using Slot = weir::detail::FairSlots::Slot;
  static constexpr MinimumRate rate{std::chrono::seconds(1), 16 * 1024, std::chrono::seconds(1)};

  explicit ClientSide(Slot& slot) noexcept : slot_(slot), tracker_(rate) {}

  /// Returns the next bytes of the client's body.
  /// Errors: those of the source; ParseError::body_timed_out if the slot was lost.
  /// Cancel: that of the source.
  Task<Result<Bytes>> read(BodySource& body);
  /// Sends bytes to the client.
  /// Errors: those of BodySink::write(); Errc::timed_out if the slot was lost.
  /// Cancel: that of BodySink::write().
  Task<Result<>> write(BodySink& sink, Bytes piece);

 private:
  class Wait;

  Slot& slot_;
  RateTracker tracker_;
};

}  // namespace weir::http
