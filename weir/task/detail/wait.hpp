// Waits between tasks of one core: the common part of events, locks, channels and select().
//
// Mutex, Semaphore, Channel and the other primitives are for the tasks of one loop. They are not
// safe between threads, and they need no atomic operations. Mailbox and Broadcast work between
// cores.
//
// All primitives follow these rules:
// - A waiter is linked into the queue of the primitive from its own coroutine frame, so waiting
//   allocates nothing. The queue is first come, first served, and no task overtakes a waiter.
// - The task that calls unlock(), set(), send() and so on grants the request of the first waiter.
//   It puts that waiter on the loop's ready queue and never resumes the waiter itself. The loop
//   resumes it after the work queued before it, on the same core: later in this turn, or in the
//   next one.
// - Cancelling removes a waiter from the queue and resumes it in the same way, with
//   Errc::cancelled. Completion beats cancellation: a waiter keeps what was granted to it before.
//   Nothing is lost: what a cancelled waiter blocked goes to the waiters behind it.
// - A thing that is available immediately is taken without suspending, even under a cancelled
//   source.
// - A program that destroys a primitive while a task waits for it has a bug (asserted).
#pragma once

#include <cassert>
#include <coroutine>
#include <utility>

#include "weir/base/detail/list.hpp"
#include "weir/base/detail/type_name.hpp"
#include "weir/base/result.hpp"
#include "weir/task/context.hpp"

namespace weir {

class Wait;

/// A WaitObserver is the callback for the grant of a wait: the awaiter of the wait, or of a
/// select() that contains it.
class WaitObserver {
 public:
  using Function = void (*)(WaitObserver&, Wait& granted);

 protected:
  explicit WaitObserver(Function on_granted) noexcept : on_granted_(on_granted) {}
  ~WaitObserver() = default;

 private:
  friend class Wait;
  Function on_granted_;
};

/// A Wait is the request of one task for one thing. It lives in the frame of the waiting task and
/// may be moved until it begins. It is awaited once, as an rvalue: directly
/// (`co_await event.wait()`), under timeout() or in select(). Each kind of wait derives from Wait
/// and has
///
///     using Value = Result<...>;      the result of the await
///     bool ready();                   takes the thing if it is available; else has no effect
///     bool begin(Loop&);              starts to wait; false if the thing was available after all
///     bool due(Loop&);                optional: ready() for a thing that only needs time
///     void withdraw();                called after begin(): stops waiting and does nothing else
///     void on_withdrawn();            called after withdraw(): grants the waiters that it blocked
///     Value value();                  called once, after the grant
///     WaitAwaiter<Itself> operator co_await() && noexcept;
///
/// The primitive calls grant() once, and withdraw() is not called after that. A wait that other
/// cores grant has `bool withdraw()`: false means that a core has posted the wait already. The wait
/// then calls grant() later in any case, and its frame must live until that call. Only select()
/// takes such a wait.
class Wait {
 public:
  Wait() noexcept = default;
  Wait([[maybe_unused]] Wait&& other) noexcept {
    assert(other.observer_ == nullptr && "moved while it waits");
  }
  Wait& operator=(Wait&&) = delete;

  void set_observer(WaitObserver& observer) noexcept { observer_ = &observer; }
  /// Reports that the wait has its thing. It queues the observer's task and runs nothing else.
  void grant() { observer_->on_granted_(*observer_, *this); }
  void on_withdrawn() const noexcept {}

 protected:
  ~Wait() = default;

 private:
  WaitObserver* observer_ = nullptr;
};

/// A QueuedWait is a wait in the queue of a primitive.
class QueuedWait : public Wait, public detail::ListNode {
 public:
  QueuedWait() noexcept = default;
  QueuedWait(QueuedWait&& other) noexcept : Wait(std::move(other)), detail::ListNode() {}

  void grant() {
    unlink();
    Wait::grant();
  }
};

/// A WaitQueue holds the waits for a primitive in the order of arrival.
template <class W>
class WaitQueue : public detail::List<W> {
 public:
  ~WaitQueue() { assert(this->empty() && "destroyed while waited on"); }
};

/// WaitAwaiter is the awaiter of a single wait.
template <class W>
class WaitAwaiter : CancellableWaiter, WaitObserver {
 public:
  explicit WaitAwaiter(W& wait) noexcept
      : CancellableWaiter(wait_kind), WaitObserver(&WaitAwaiter::on_granted), wait_(&wait) {}

  bool await_ready() { return wait_->ready(); }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    set_coroutine(handle);
    wait_->set_observer(*this);
    if (!wait_->begin(*context().loop)) return false;
    if (join()) return true;
    withdraw();
    return false;
  }
  auto await_resume() {
    using Value = typename W::Value;
    if (wait_ == nullptr) return Value(fail(Errc::cancelled));
    return wait_->value();
  }

 private:
  static void on_granted(WaitObserver& observer, Wait&) {
    static_cast<WaitAwaiter&>(observer).resume_later();
  }
  static void cancel(CancelNode& node) {
    auto& self = static_cast<WaitAwaiter&>(node);
    self.withdraw();
    self.resume_later();
  }
  static constexpr CancelNode::Kind wait_kind =
      WaitAwaiter::waiting_kind(&cancel, inject::type_name<W>());
  void withdraw() {
    W& wait = *std::exchange(wait_, nullptr);
    wait.withdraw();
    wait.on_withdrawn();
  }

  W* wait_;  // nullptr once it was cancelled
};

}  // namespace weir
