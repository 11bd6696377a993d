// Events for the tasks of one core: tasks wait until an event is set.
#pragma once

#include <utility>

#include "weir/task/detail/wait.hpp"

namespace weir {

/// An EventWait is the wait for an `Event` of this file or a latch. It ends when try_wait()
/// returns true or the event grants it.
template <class Event>
class [[nodiscard]] EventWait : public QueuedWait {
 public:
  using Value = Result<>;
  explicit EventWait(Event& event) noexcept : event_(event) {}

  bool ready() noexcept { return event_.try_wait(); }
  bool begin(Loop&) noexcept {
    event_.waiting_.push_back(*this);
    return true;
  }
  void withdraw() noexcept { unlink(); }
  Value value() const noexcept { return {}; }
  WaitAwaiter<EventWait> operator co_await() && noexcept { return WaitAwaiter<EventWait>(*this); }

 private:
  Event& event_;
};

/// A ManualResetEvent lets all tasks pass from set() until reset().
/// Threads: its loop's.
/// Lifetime: it outlives every wait for it (asserted).
class ManualResetEvent {
 public:
  explicit ManualResetEvent(bool set = false) noexcept : set_(set) {}
  ManualResetEvent(const ManualResetEvent&) = delete;
  ManualResetEvent& operator=(const ManualResetEvent&) = delete;

  bool is_set() const noexcept { return set_; }
  /// Sets the event, which lets all waiters and later tasks pass. The loop resumes the waiters from
  /// its ready queue, in the order of arrival, even if the event is reset before that.
  void set();
  void reset() noexcept { set_ = false; }

  /// Waits until the event is set: `co_await event.wait()`. It returns immediately if the event
  /// is set.
  /// Errors: Errc::cancelled.
  /// Cancel: leaves the queue and resumes from the loop's ready queue; an earlier set() wins.
  EventWait<ManualResetEvent> wait() noexcept { return EventWait<ManualResetEvent>(*this); }

 private:
  friend class EventWait<ManualResetEvent>;
  bool try_wait() const noexcept { return set_; }

  WaitQueue<QueuedWait> waiting_;
  bool set_;
};

/// An AutoResetEvent lets one task pass for each set(). It does not count: at most one set() is
/// stored while no task waits. Use a Semaphore to count.
/// Threads: its loop's.
/// Lifetime: it outlives every wait for it (asserted).
class AutoResetEvent {
 public:
  explicit AutoResetEvent(bool set = false) noexcept : set_(set) {}
  AutoResetEvent(const AutoResetEvent&) = delete;
  AutoResetEvent& operator=(const AutoResetEvent&) = delete;

  bool is_set() const noexcept { return set_; }
  /// Lets the first waiter pass, or the next task that waits if there is no waiter. The loop
  /// resumes the waiter from its ready queue.
  void set() {
    if (QueuedWait* const first = waiting_.front()) {
      first->grant();
    } else {
      set_ = true;
    }
  }
  void reset() noexcept { set_ = false; }

  /// Waits until a set() lets this task pass: `co_await event.wait()`. It returns immediately if
  /// a set() is stored.
  /// Errors: Errc::cancelled.
  /// Cancel: leaves the queue and resumes from the loop's ready queue without using a set(). It
  /// returns success if a set() was granted before the cancellation.
  EventWait<AutoResetEvent> wait() noexcept { return EventWait<AutoResetEvent>(*this); }

 private:
  friend class EventWait<AutoResetEvent>;
  bool try_wait() noexcept { return std::exchange(set_, false); }

  WaitQueue<QueuedWait> waiting_;
  bool set_;
};

}  // namespace weir
