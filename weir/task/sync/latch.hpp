// A Latch lets tasks of one core wait until a count reaches zero.
#pragma once

#include <cassert>
#include <cstddef>

#include "weir/task/sync/event.hpp"

namespace weir {

/// A Latch counts down to zero, once; then all tasks pass.
/// Threads: its loop's.
/// Lifetime: it outlives every wait for it (asserted).
class Latch {
 public:
  explicit Latch(std::size_t count) noexcept : count_(count) {}
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;

  /// Returns the remaining count.
  std::size_t count() const noexcept { return count_; }
  /// Subtracts `by`, which is at most count() (asserted). If the count becomes zero, the loop
  /// resumes all waiters from its ready queue, in the order of arrival.
  void count_down(std::size_t by = 1) {
    assert(by <= count_ && "counted down below zero");
    count_ -= by;
    if (count_ != 0) return;
    while (QueuedWait* const first = waiting_.front()) first->grant();
  }

  /// Waits until the count is zero: `co_await latch.wait()`. It returns immediately if the count
  /// is zero.
  /// Errors: Errc::cancelled.
  /// Cancel: leaves the queue and resumes from the loop's ready queue; the count does not change.
  EventWait<Latch> wait() noexcept { return EventWait<Latch>(*this); }

 private:
  friend class EventWait<Latch>;
  bool try_wait() const noexcept { return count_ == 0; }

  WaitQueue<QueuedWait> waiting_;
  std::size_t count_;
};

}  // namespace weir
