// Inbox of a loop: runnables that other threads queue on it.
#pragma once

#include <atomic>
#include <cstdint>

#include "weir/loop/contract/detail/runnable.hpp"

namespace weir {

/// A lock-free stack with many producers and one consumer. The consumer takes the whole stack at
/// one time and runs it in the order of arrival.
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
    Runnable* head = head_.load(std::memory_order_relaxed);
    do {
      runnable.next_ = head;
      // release: the consumer sees the contents of the runnable. seq_cst serves the handshake with
      // prepare_to_sleep(). Either the check before sleeping sees this push, or this thread sees
      // the flag.
    } while (!head_.compare_exchange_weak(head, &runnable, std::memory_order_seq_cst,
                                          std::memory_order_relaxed));
    // seq_cst: see above. The exchange only selects one of the producers that see the flag;
    // acq_rel is more than that needs.
    return sleeping_.load(std::memory_order_seq_cst) &&
           sleeping_.exchange(false, std::memory_order_acq_rel);
  }

  /// Returns the number of runnables pushed so far, including those about to be pushed.
  std::uint64_t pushed() const noexcept { return pushed_.load(std::memory_order_relaxed); }
  /// Returns true if the inbox looks empty.
  /// relaxed: the result is a hint. take() acquires the contents, and a later look finds later
  /// arrivals.
  bool empty() const noexcept { return head_.load(std::memory_order_relaxed) == nullptr; }

  /// Removes and returns everything that has arrived, oldest first.
  RunQueue take() noexcept {
    // acquire pairs with the push.
    Runnable* newest = empty() ? nullptr : head_.exchange(nullptr, std::memory_order_acquire);
    Runnable* oldest = nullptr;
    while (newest != nullptr) {
      Runnable* next = newest->next_;
      newest->next_ = oldest;
      oldest = newest;
      newest = next;
    }
    RunQueue arrived;
    while (oldest != nullptr) {
      Runnable* next = oldest->next_;
      oldest->next_ = nullptr;
      arrived.push(*oldest);
      oldest = next;
    }
    return arrived;
  }

  /// Announces that the consumer is about to sleep.
  /// Returns: false if something has arrived and the consumer must not sleep.
  [[nodiscard]] bool prepare_to_sleep() noexcept {
    // Both seq_cst: see push().
    sleeping_.store(true, std::memory_order_seq_cst);
    if (head_.load(std::memory_order_seq_cst) == nullptr) return true;
    // relaxed, here and in woke(): a producer that still sees the flag wakes the consumer once
    // without need.
    sleeping_.store(false, std::memory_order_relaxed);
    return false;
  }
  void woke() noexcept { sleeping_.store(false, std::memory_order_relaxed); }
  /// Returns true if the consumer sleeps. relaxed: the answer may be outdated immediately.
  bool sleeping() const noexcept { return sleeping_.load(std::memory_order_relaxed); }

 private:
  alignas(64) std::atomic<Runnable*> head_{nullptr};
  std::atomic<std::uint64_t> pushed_{0};  // on the cache line that a push takes anyway
  alignas(64) std::atomic<bool> sleeping_{false};
};

}  // namespace weir
