// Lock-free list of objects that other threads pass to one consumer.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace weir::loop {

/// Objects in the order of their arrival, linked by their `next` member.
template <class T>
struct ArrivalChain {
  T* first = nullptr;
  T* last = nullptr;
};

/// A lock-free stack with many producers and one consumer. The consumer takes the whole stack at
/// one time, in the order of arrival. `next` is a member of T that links it.
/// Threads: push() and empty() on any; the other functions on the consumer's.
template <class T, T* T::* next>
class ArrivalList {
 public:
  enum class Pushed : std::uint8_t {
    first,    ///< the list was as take() leaves it
    another,  ///< there were other items, or the list was as take_notified() leaves it
    refused,  ///< the list is closed
  };
  /// Adds an item, unless the list is closed. A producer that does not push the first item uses
  /// nothing of the list after the item has been taken.
  Pushed push(T& item) noexcept {
    // relaxed, here and when the exchange fails: the head is only stored for the consumer.
    T* head = head_.load(std::memory_order_relaxed);
    do {
      if (head == closed_mark()) return Pushed::refused;
      item.*next = head;
      // release: the consumer sees the contents of the item. acquire: the producer of the first
      // item sees that the consumer has taken the others. seq_cst: a consumer that goes to sleep
      // looks once more with that order; see Inbox.
    } while (!head_.compare_exchange_weak(head, &item, std::memory_order_seq_cst,
                                          std::memory_order_relaxed));
    return head == nullptr ? Pushed::first : Pushed::another;
  }

  /// Returns true if no item has arrived.
  /// relaxed by default: the result is a hint. take() acquires the contents, and a later look finds
  /// later arrivals.
  bool empty(std::memory_order order = std::memory_order_relaxed) const noexcept {
    return is_end(head_.load(order));
  }
  /// Returns true if the next item is the first; see Pushed.
  bool untouched() const noexcept { return head_.load(std::memory_order_acquire) == nullptr; }

  /// Removes and returns all items that have arrived. The next item is the first.
  ArrivalChain<T> take() noexcept {
    // relaxed: only the consumer closes it.
    if (head_.load(std::memory_order_relaxed) == closed_mark()) return {};
    // acquire and release pair with the push.
    return in_order(head_.exchange(nullptr, std::memory_order_acq_rel));
  }
  /// Does what take() does, but the next item is not the first.
  ArrivalChain<T> take_notified() noexcept {
    if (empty()) return {};
    return in_order(head_.exchange(notified_mark(), std::memory_order_acquire));
  }
  /// Removes and returns all items that have arrived, and refuses others. The list is not closed.
  /// Sets `notified` to false if the next item would have been the first.
  ArrivalChain<T> close(bool& notified) noexcept {
    // acq_rel: a producer that finds the mark sees what the consumer did before.
    T* const newest = head_.exchange(closed_mark(), std::memory_order_acq_rel);
    notified = newest != nullptr;
    return in_order(newest);
  }
  /// Accepts items after close(). `notified` says that the next item is not the first.
  void reopen(bool notified) noexcept {
    head_.store(notified ? notified_mark() : nullptr, std::memory_order_release);
  }

 private:
  // Values of the head that are no items. No code dereferences them.
  static T* notified_mark() noexcept { return reinterpret_cast<T*>(std::uintptr_t{1}); }
  static T* closed_mark() noexcept { return reinterpret_cast<T*>(std::uintptr_t{2}); }
  static bool is_end(const T* head) noexcept { return reinterpret_cast<std::uintptr_t>(head) <= 2; }

  static ArrivalChain<T> in_order(T* newest) noexcept {
    if (is_end(newest)) return {};
    ArrivalChain<T> chain{nullptr, newest};
    while (!is_end(newest)) {
      T* const older = std::exchange(newest->*next, chain.first);
      chain.first = std::exchange(newest, older);
    }
    return chain;
  }

  std::atomic<T*> head_{nullptr};
};

}  // namespace weir::loop
