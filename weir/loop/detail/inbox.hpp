// The inbox of a loop: what other threads give it to run.
#pragma once

#include <atomic>
#include <cstdint>

#include "weir/loop/contract/detail/runnable.hpp"

namespace weir {

/// A lock-free stack with many producers, emptied at once by its one consumer, who runs it in the
/// order of arrival. Threads: push() any; take() and the sleeping flag the loop's only.
class Inbox {
 public:
  /// Returns whether the consumer sleeps and has to be woken; at most one producer is told so for
  /// each sleep, so a batch costs one wake-up.
  [[nodiscard]] bool push(Runnable& runnable) noexcept {
    // relaxed: it orders nothing. Before the push, so that no more are ever taken than were
    // counted.
    pushed_.fetch_add(1, std::memory_order_relaxed);
    Runnable* head = head_.load(std::memory_order_relaxed);
    do {
      runnable.next_ = head;
      // release: the consumer sees the runnable's contents. seq_cst, because of the handshake
      // below: either this push is seen by the check before sleeping, or the flag is seen here.
    } while (!head_.compare_exchange_weak(head, &runnable, std::memory_order_seq_cst,
                                          std::memory_order_relaxed));
    // seq_cst: see above. The exchange only picks one of several producers who see the flag;
    // acq_rel is more than that needs.
    return sleeping_.load(std::memory_order_seq_cst) &&
           sleeping_.exchange(false, std::memory_order_acq_rel);
  }

  /// All that were pushed so far, or are about to be. Any thread.
  std::uint64_t pushed() const noexcept { return pushed_.load(std::memory_order_relaxed); }
  /// relaxed: a hint; what is there is acquired by take(), what comes later is found later.
  bool empty() const noexcept { return head_.load(std::memory_order_relaxed) == nullptr; }

  /// Everything that has arrived, oldest first.
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

  /// Announces that the consumer is about to sleep. False: something has arrived, do not sleep.
  [[nodiscard]] bool prepare_to_sleep() noexcept {
    // Both seq_cst: see push().
    sleeping_.store(true, std::memory_order_seq_cst);
    if (head_.load(std::memory_order_seq_cst) == nullptr) return true;
    // relaxed, also in woke(): a producer that still sees the flag wakes in vain, once.
    sleeping_.store(false, std::memory_order_relaxed);
    return false;
  }
  void woke() noexcept { sleeping_.store(false, std::memory_order_relaxed); }
  /// Any thread. relaxed: it may have changed when the caller looks at it.
  bool sleeping() const noexcept { return sleeping_.load(std::memory_order_relaxed); }

 private:
  alignas(64) std::atomic<Runnable*> head_{nullptr};
  std::atomic<std::uint64_t> pushed_{0};  // on the line that a push takes anyway
  alignas(64) std::atomic<bool> sleeping_{false};
};

}  // namespace weir
