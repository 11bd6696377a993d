// How tasks of one core wait for one another: the machinery of events, locks, channels, select().
//
// A naming rule goes with it. What several tasks share in order to wait for one another begins with
// `Core`: CoreMutex, CoreSemaphore, CoreChannel … None of them is safe between threads, nor needs
// an atomic: all who use one run on the same loop. (Between cores: Mailbox, Broadcast.)
//
// What they have in common, so that no comment has to repeat it:
// - Who waits is linked in a queue of the thing, from its own coroutine frame: waiting allocates
//   nothing. The queue is first come, first served, and nobody overtakes who waits in it.
// - Who opens the way (unlock(), set(), send() …) hands over what the first in the queue asked for
//   and puts that task on the loop's ready queue. It never resumes anybody itself: the other runs
//   in the loop's next round, on the same core.
// - Cancelling takes the waiter out of the queue and resumes it the same way, with Errc::cancelled.
//   Completion beats cancellation: who was handed something before keeps it. Nothing is lost: what
//   a cancelled waiter stood in the way of goes to those behind it.
// - What can be had at once is had without suspending, even under a cancelled source.
// - A thing that is destroyed while somebody waits for it is a fault of the program (asserted).
#pragma once

#include <cassert>
#include <coroutine>
#include <utility>

#include "weir/base/detail/list.hpp"
#include "weir/base/result.hpp"
#include "weir/task/context.hpp"

namespace weir {

class Wait;

/// Who is told that a wait has been granted: the awaiter of it, or of a select() that it is in.
class WaitOwner {
 public:
  using Function = void (*)(WaitOwner&, Wait& granted);

 protected:
  explicit WaitOwner(Function granted) noexcept : granted_(granted) {}
  ~WaitOwner() = default;

 private:
  friend class Wait;
  Function granted_;
};

/// Waiting for one thing. It lives in the frame of the task that waits, may be moved until it
/// begins, and is awaited once, as an rvalue: directly (`co_await event.wait()`), under timeout(),
/// in select(). Each kind of wait derives from it and has
///
///   using Value = Result<...>;         what awaiting it gives
///   bool ready();                      takes the thing if it can be had now; else no effect
///   bool begin(Loop&);                 starts to wait; false: it could be had after all
///   bool due(Loop&);                   optional: ready(), for what only the time decides
///   void withdraw();                   after begin(): stops waiting, nothing else
///   void withdrawn();                  after that: those it stood in the way of may go on
///   Value value();                     once, after it had the thing
///   Awaiting<Itself> operator co_await() && noexcept;
///
/// and the thing calls grant(), once, after which there is no withdraw().
class Wait {
 public:
  Wait() noexcept = default;
  Wait([[maybe_unused]] Wait&& other) noexcept {
    assert(other.owner_ == nullptr && "moved while it waits");
  }
  Wait& operator=(Wait&&) = delete;

  void owned_by(WaitOwner& owner) noexcept { owner_ = &owner; }
  /// It has its thing. Queues the owner's task on its loop and runs nothing else.
  void grant() { owner_->granted_(*owner_, *this); }
  void withdrawn() const noexcept {}

 protected:
  ~Wait() = default;

 private:
  WaitOwner* owner_ = nullptr;
};

/// A wait in a queue.
class QueuedWait : public Wait, public ListNode {
 public:
  QueuedWait() noexcept = default;
  QueuedWait(QueuedWait&& other) noexcept : Wait(std::move(other)), ListNode() {}

  void grant() {
    unlink();
    Wait::grant();
  }
};

/// Those who wait for a thing, in the order in which they came.
template <class W>
class WaitQueue : public List<W> {
 public:
  ~WaitQueue() { assert(this->empty() && "destroyed while waited on"); }
};

/// The awaiter of a single wait.
template <class W>
class Awaiting : Waiter, CancelNode, WaitOwner {
 public:
  explicit Awaiting(W& wait) noexcept
      : CancelNode(&Awaiting::cancel), WaitOwner(&Awaiting::granted), wait_(wait) {}

  bool await_ready() { return wait_.ready(); }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    wait_in(handle);
    wait_.owned_by(*this);
    if (!wait_.begin(*context().loop)) return false;
    if (context().cancel == nullptr) return true;
    if (context().cancelled()) {
      withdraw();
      return false;
    }
    context().cancel->add(*this);
    return true;
  }
  auto await_resume() {
    using Value = typename W::Value;
    if (cancelled_) return Value(fail(Errc::cancelled));
    return wait_.value();
  }

 private:
  static void granted(WaitOwner& owner, Wait&) {
    auto& self = static_cast<Awaiting&>(owner);
    static_cast<CancelNode&>(self).unlink();
    self.resume_later();
  }
  static void cancel(CancelNode& node) {
    auto& self = static_cast<Awaiting&>(node);
    self.withdraw();
    self.resume_later();
  }
  void withdraw() {
    cancelled_ = true;
    wait_.withdraw();
    wait_.withdrawn();
  }

  W& wait_;
  bool cancelled_ = false;
};

}  // namespace weir
