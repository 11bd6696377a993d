// Events on one core: something has happened, and tasks wait for it.
#pragma once

#include <utility>

#include "weir/task/detail/wait.hpp"

namespace weir {

/// Waiting for an `Event` of this file, or a latch: until its pass() says yes or it grants.
template <class Event>
class [[nodiscard]] EventWait : public QueuedWait {
 public:
  using Value = Result<>;
  explicit EventWait(Event& event) noexcept : event_(event) {}

  bool ready() noexcept { return event_.pass(); }
  bool begin(Loop&) noexcept {
    event_.waiting_.push_back(*this);
    return true;
  }
  void withdraw() noexcept { unlink(); }
  Value value() const noexcept { return {}; }
  Awaiting<EventWait> operator co_await() && noexcept { return Awaiting<EventWait>(*this); }

 private:
  Event& event_;
};

/// A door: once set, everybody passes until it is reset.
/// Threads: its loop's. Lifetime: longer than every wait for it (asserted).
class CoreManualResetEvent {
 public:
  explicit CoreManualResetEvent(bool set = false) noexcept : set_(set) {}
  CoreManualResetEvent(const CoreManualResetEvent&) = delete;
  CoreManualResetEvent& operator=(const CoreManualResetEvent&) = delete;

  bool is_set() const noexcept { return set_; }
  /// Lets everybody pass who waits now or comes later. Who waits is resumed by the loop in its next
  /// round, in the order of coming, also if the event is reset before.
  void set();
  void reset() noexcept { set_ = false; }

  /// `co_await event.wait()`: returns when the event is set; at once if it is.
  /// Errors: Errc::cancelled.
  /// Cancel: leaves the queue and returns in the loop's next round; a set() that came first wins.
  EventWait<CoreManualResetEvent> wait() noexcept { return EventWait<CoreManualResetEvent>(*this); }

 private:
  friend class EventWait<CoreManualResetEvent>;
  bool pass() const noexcept { return set_; }

  WaitQueue<QueuedWait> waiting_;
  bool set_;
};

/// A turnstile: each set() lets one pass. Sets are not counted: while nobody waits, one of them is
/// remembered (for counting there is CoreSemaphore).
/// Threads: its loop's. Lifetime: longer than every wait for it (asserted).
class CoreAutoResetEvent {
 public:
  explicit CoreAutoResetEvent(bool set = false) noexcept : set_(set) {}
  CoreAutoResetEvent(const CoreAutoResetEvent&) = delete;
  CoreAutoResetEvent& operator=(const CoreAutoResetEvent&) = delete;

  bool is_set() const noexcept { return set_; }
  /// Lets the first one pass who waits, or else the next one who comes. Who waited is resumed by
  /// the loop in its next round.
  void set() {
    if (QueuedWait* const first = waiting_.front()) {
      first->grant();
    } else {
      set_ = true;
    }
  }
  void reset() noexcept { set_ = false; }

  /// `co_await event.wait()`: returns when a set() is this one's; at once if one was remembered.
  /// Errors: Errc::cancelled.
  /// Cancel: leaves the queue and returns in the loop's next round, and takes no set(); one that
  /// had been given to it before the cancellation is kept: it returns success.
  EventWait<CoreAutoResetEvent> wait() noexcept { return EventWait<CoreAutoResetEvent>(*this); }

 private:
  friend class EventWait<CoreAutoResetEvent>;
  bool pass() noexcept { return std::exchange(set_, false); }

  WaitQueue<QueuedWait> waiting_;
  bool set_;
};

}  // namespace weir
