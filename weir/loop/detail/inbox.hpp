// Inbox of a loop: runnables that other threads queue on it.
#pragma once

#include <atomic>
#include <cstdint>

#include "weir/loop/contract/detail/runnable.hpp"
#include "weir/loop/detail/arrival_list.hpp"

namespace weir::loop {

/// The runnables that other threads have queued on a loop, and the flag that the loop sleeps.
/// Threads: push(), pushed(), empty() and sleeping() on any; the other functions on the thread of
/// the loop.
class Inbox {
 public:
  /// Adds a runnable.
  /// Returns: true if the consumer sleeps and this caller must wake it. One producer at most gets
  /// true for each sleep, so a batch costs one wake-up.
  [[nodiscard]] bool push(Runnable& runnable) noexcept {
    // relaxed: it orders nothing. It comes before the push, so at most as many are taken as were
    // counted.
    pushed_.fetch_add(1, std::memory_order_relaxed);
    arrived_.push(runnable);
    // The push and this load are seq_cst for the handshake with prepare_to_sleep(). Either the
    // check before sleeping sees this push, or this thread sees the flag. The exchange only selects
    // one of the producers that see the flag; acq_rel is more than that needs.
    return sleeping_.load(std::memory_order_seq_cst) &&
           sleeping_.exchange(false, std::memory_order_acq_rel);
  }

  /// Returns the number of runnables pushed so far, including those about to be pushed.
  std::uint64_t pushed() const noexcept { return pushed_.load(std::memory_order_relaxed); }
  /// Returns true if the inbox looks empty; see ArrivalList::empty().
  bool empty() const noexcept { return arrived_.empty(); }

  /// Removes and returns everything that has arrived, oldest first.
  RunQueue take() noexcept {
    const ArrivalChain<Runnable> chain = arrived_.take();
    RunQueue arrived;
    arrived.first_ = chain.first;
    arrived.last_ = chain.last;
    return arrived;
  }

  /// Announces that the consumer is about to sleep.
  /// Returns: false if something has arrived and the consumer must not sleep.
  [[nodiscard]] bool prepare_to_sleep() noexcept {
    // Both seq_cst: see push().
    sleeping_.store(true, std::memory_order_seq_cst);
    if (arrived_.empty(std::memory_order_seq_cst)) return true;
    // relaxed, here and in woke(): a producer that still sees the flag wakes the consumer once
    // without need.
    sleeping_.store(false, std::memory_order_relaxed);
    return false;
  }
  void woke() noexcept { sleeping_.store(false, std::memory_order_relaxed); }
  /// Returns true if the consumer sleeps. relaxed: the answer may be outdated immediately.
  bool sleeping() const noexcept { return sleeping_.load(std::memory_order_relaxed); }

 private:
  alignas(64) ArrivalList<Runnable, &Runnable::next_> arrived_;
  std::atomic<std::uint64_t> pushed_{0};  // on the cache line that a push takes anyway
  alignas(64) std::atomic<bool> sleeping_{false};
};

}  // namespace weir::loop
