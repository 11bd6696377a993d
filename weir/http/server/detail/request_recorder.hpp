// The ended requests, for the observer of the server.
#pragma once

#include <array>
#include <cstddef>

#include "weir/base/detail/counter.hpp"
#include "weir/base/time.hpp"
#include "weir/http/server/server_observer.hpp"
#include "weir/loop/loop.hpp"

namespace weir::http {

/// Collects the records of ended requests, and passes them to the observer at the end of the turn
/// or when the array is full.
/// Threads: the loop's, except for reading the metrics.
class RequestRecorder final : TurnObserver, MetricSource {
 public:
  RequestRecorder(Loop& loop, ServerObserver& observer) noexcept;
  ~RequestRecorder();

  /// Counts a request that begins. Returns its time.
  Instant begin() noexcept {
    active_.add();
    return loop_.now();
  }
  /// Adds a request that has ended.
  void end(const EndedRequest& request) noexcept {
    active_.subtract();
    if (count_ == 0) loop_.observe_turn_end(*this);
    records_[count_] = request;
    if (++count_ == records_.size()) flush();
  }

 private:
  void flush() noexcept;
  void collect(MetricSnapshot& sum) const override;

  Loop& loop_;
  ServerObserver& observer_;
  weir::detail::Counter active_;  // requests that have begun and not ended
  std::size_t count_ = 0;
  std::array<EndedRequest, 64> records_;
};

}  // namespace weir::http
