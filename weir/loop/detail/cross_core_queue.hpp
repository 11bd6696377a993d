// CrossCoreQueue: objects that many threads pass to one loop, with one wake-up for many.
#pragma once

#include <utility>

#include "weir/loop/contract/detail/runnable.hpp"
#include "weir/loop/detail/arrival_list.hpp"
#include "weir/loop/detail/timers.hpp"

namespace weir {
class Loop;
}  // namespace weir

namespace weir::loop {

/// The part of a CrossCoreQueue that does not depend on its type: how the loop calls
/// receive().
class CrossCoreReceiver : protected Runnable {
 public:
  using Receive = void (*)(void* receiver, Loop& loop);
  CrossCoreReceiver(const CrossCoreReceiver&) = delete;
  CrossCoreReceiver& operator=(const CrossCoreReceiver&) = delete;

  /// Calls receive() again in the next turn. For a receiver that leaves items.
  void receive_again(Loop& loop) noexcept;

 protected:
  CrossCoreReceiver(Function on_arrived, Receive receive, void* receiver) noexcept
      : Runnable(on_arrived), receive_(receive), receiver_(receiver) {}
  ~CrossCoreReceiver() = default;

  /// Posts this Runnable to the loop `to`. Any thread may call it.
  void post(Loop& to) noexcept;
  Loop& posted_to() const noexcept { return *to_; }
  void receive(Loop& loop) { receive_(receiver_, loop); }
  /// Ends the effect of receive_again(), if this turn has not ended yet.
  void cancel_again() noexcept {
    if (again_.armed()) again_.loop = nullptr;
    again_.cancel();
  }
  bool receives_again() const noexcept { return again_.loop != nullptr; }

 private:
  struct Again : Timer, Runnable {
    explicit Again(CrossCoreReceiver& of) noexcept
        : Timer(&on_turn_end), Runnable(&on_next_turn), receiver(of) {}
    static void on_turn_end(Timer& self);
    static void on_next_turn(Runnable& self) {
      auto& again = static_cast<Again&>(self);
      again.receiver.receive(*std::exchange(again.loop, nullptr));
    }
    CrossCoreReceiver& receiver;
    Loop* loop = nullptr;  // set from receive_again() until the call
  };

  Receive receive_;
  void* receiver_;
  Loop* to_ = nullptr;  // set by the thread that posts
  Again again_{*this};
};

/// A CrossCoreQueue passes objects to one loop. The object that arrives first wakes the loop, and
/// the loop receives all that have arrived by then at one time. `next` is a member of T that links
/// it.
///
/// The loop calls receive(). The objects then wait in the queue, oldest first, until pop() removes
/// them. receive() may be called without an object, if collect() was called before.
/// Threads: push() on any; the other functions on the thread of the loop.
/// Lifetime: the queue may be destroyed when it is idle().
template <class T, T* T::* next>
class CrossCoreQueue : public CrossCoreReceiver {
 public:
  CrossCoreQueue(Receive receive, void* receiver) noexcept
      : CrossCoreReceiver(&on_arrived, receive, receiver) {}

  /// Adds `item` for the loop `to`, which is the same in each call.
  /// Returns: false if the queue is closed. The caller keeps the item then.
  [[nodiscard]] bool push(T& item, Loop& to) noexcept {
    using Pushed = typename ArrivalList<T, next>::Pushed;
    const Pushed pushed = arrived_.push(item);
    if (pushed == Pushed::first) post(to);
    return pushed != Pushed::refused;
  }

  /// Returns the oldest received item, or nullptr.
  T* front() const noexcept { return received_.first; }
  /// Removes and returns the oldest received item; nullptr if there is none.
  T* pop() noexcept {
    T* const item = received_.first;
    if (item != nullptr) received_.first = item->*next;
    return item;
  }
  /// Receives what has arrived, before receive() is called for it.
  void collect() noexcept { append(arrived_.take_notified()); }
  /// Returns true if no item has arrived or waits. The answer may be outdated immediately.
  bool empty() const noexcept { return received_.first == nullptr && arrived_.empty(); }
  /// Returns true if the queue is empty and receive() will not be called.
  bool idle() const noexcept {
    return received_.first == nullptr && !receives_again() &&
           (closed_ ? !posted_at_close_ : arrived_.untouched());
  }

  /// Receives what has arrived, refuses further items, and ends the effect of receive_again().
  void close() noexcept {
    cancel_again();
    if (closed_) return;
    append(arrived_.close(posted_at_close_));
    closed_ = true;
  }
  /// Accepts items again after close().
  void reopen() noexcept {
    closed_ = false;
    arrived_.reopen(posted_at_close_);
  }

 private:
  static void on_arrived(Runnable& self) {
    auto& queue = static_cast<CrossCoreQueue&>(self);
    Loop& loop = queue.posted_to();  // the producer of the next first item sets it again
    queue.posted_at_close_ = false;
    queue.append(queue.arrived_.take());
    // Otherwise these items wait with those that receive() left.
    if (!queue.receives_again()) queue.receive(loop);
  }
  void append(ArrivalChain<T> chain) noexcept {
    if (chain.first == nullptr) return;
    (received_.first == nullptr ? received_.first : received_.last->*next) = chain.first;
    received_.last = chain.last;
  }

  ArrivalList<T, next> arrived_;
  ArrivalChain<T> received_;  // `last` is valid if `first` is set
  bool closed_ = false;
  bool posted_at_close_ = false;  // true if the Runnable was in the inbox at close(), and still is
};

}  // namespace weir::loop
