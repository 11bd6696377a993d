// A latch on one core: wait until so many things have been done.
#pragma once

#include <cassert>
#include <cstddef>

#include "weir/task/sync/event.hpp"

namespace weir {

/// Counts down to zero, once; then everybody passes.
/// Threads: its loop's. Lifetime: longer than every wait for it (asserted).
class CoreLatch {
 public:
  explicit CoreLatch(std::size_t count) noexcept : count_(count) {}
  CoreLatch(const CoreLatch&) = delete;
  CoreLatch& operator=(const CoreLatch&) = delete;

  /// How many are still missing.
  std::size_t count() const noexcept { return count_; }
  /// `by` at most count() (asserted). At zero all who wait are resumed by the loop in its next
  /// round, in the order of coming.
  void count_down(std::size_t by = 1) {
    assert(by <= count_ && "more than the latch was made for");
    count_ -= by;
    if (count_ != 0) return;
    while (QueuedWait* const first = waiting_.front()) first->grant();
  }

  /// `co_await latch.wait()`: returns when the count is zero; at once if it is.
  /// Errors: Errc::cancelled.
  /// Cancel: leaves the queue and returns in the loop's next round; the count is not touched.
  EventWait<CoreLatch> wait() noexcept { return EventWait<CoreLatch>(*this); }

 private:
  friend class EventWait<CoreLatch>;
  bool pass() const noexcept { return count_ == 0; }

  WaitQueue<QueuedWait> waiting_;
  std::size_t count_;
};

}  // namespace weir
