// The queue of a mailbox: gives out its slots to senders and the receiver, and wakes waiting
// tasks.
#pragma once

#include <atomic>
#include <cassert>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "weir/base/detail/list.hpp"
#include "weir/base/result.hpp"
#include "weir/runtime/messaging/detail/selectable.hpp"
#include "weir/runtime/messaging/overflow_policy.hpp"
#include "weir/task/context.hpp"
#include "weir/task/detail/wait.hpp"

namespace weir::detail {

class MailboxQueue;

/// A MailboxReceiver is the one waiting receiver, in the frame of its coroutine. A sender takes
/// it out of the queue and posts it to its owner loop; only that loop resumes it.
/// Threads: its loop's.
class MailboxReceiver : protected loop::Runnable, protected loop::Timer {
 protected:
  MailboxReceiver(MailboxQueue& queue, loop::Runnable::Function run,
                  loop::Timer::Function on_turn_end) noexcept
      : loop::Runnable(run), loop::Timer(on_turn_end), queue_(queue) {}
  ~MailboxReceiver() = default;

  /// Returns true if it need not wait.
  bool poll() const noexcept;
  /// Joins the queue of `loop`, or waits for the end of the turn if it may not continue. Returns
  /// false if it need not wait after all.
  bool park(Loop& loop);
  /// Joins the queue again after a sender has posted it too early.
  bool park_again() noexcept;
  /// Returns false if a sender has posted it, so that it is about to run.
  bool withdraw() noexcept;
  /// Returns success if the front can be taken.
  /// Errors: Errc::end_of_stream, Errc::cancelled.
  Result<> outcome() const noexcept;
  MailboxQueue& queue() const noexcept { return queue_; }
  Loop& loop() const noexcept { return *loop_; }

 private:
  friend class MailboxQueue;

  MailboxQueue& queue_;
  Loop* loop_ = nullptr;
};

/// A MailboxAwaiter is the receiver of a task that waits for nothing else.
class MailboxAwaiter : MailboxReceiver, CancelNode {
 public:
  bool await_ready() const noexcept { return poll(); }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    handle_ = handle;
    return begin(handle.promise().context());
  }

 protected:
  explicit MailboxAwaiter(MailboxQueue& queue) noexcept
      : MailboxReceiver(queue, &run, &on_turn_end), CancelNode(receive_kind) {}
  ~MailboxAwaiter() = default;
  using MailboxReceiver::outcome;

 private:
  bool begin(const Context& context);
  static void run(loop::Runnable& self);
  static void on_cancel(CancelNode& node);
  static void on_turn_end(loop::Timer& timer);
  static std::coroutine_handle<> coroutine_of(const CancelNode& node) noexcept {
    return static_cast<const MailboxAwaiter&>(node).handle_;
  }
  static constexpr CancelNode::Kind receive_kind{&on_cancel, "Mailbox::receive", &coroutine_of};

  std::coroutine_handle<> handle_;
  bool cancelled_ = false;
};

/// A MailboxReadableAwaiter waits as a receiver but takes nothing.
class MailboxReadableAwaiter final : public MailboxAwaiter {
 public:
  explicit MailboxReadableAwaiter(MailboxQueue& queue) noexcept : MailboxAwaiter(queue) {}
  Result<> await_resume() const noexcept { return outcome(); }
};

/// A MailboxWait is the receiver as a case of a select(). It takes nothing before it is chosen.
class MailboxWait : public Wait, MailboxReceiver {
 public:
  MailboxWait(MailboxWait&& other) noexcept : MailboxWait(other.queue()) {}
  bool ready() const noexcept { return poll(); }
  bool begin(Loop& loop) { return park(loop); }
  bool withdraw() noexcept {
    withdrawn_ = !MailboxReceiver::withdraw();
    return !withdrawn_;
  }

 protected:
  explicit MailboxWait(MailboxQueue& queue) noexcept : MailboxReceiver(queue, &run, &on_turn_end) {}
  ~MailboxWait() = default;
  using MailboxReceiver::outcome;

 private:
  static void run(loop::Runnable& self);
  static void on_turn_end(loop::Timer& timer);

  bool withdrawn_ = false;  // true if it has lost but still has to run
};

/// A MailboxReadableWait is Mailbox::readable() as a case of a select().
class MailboxReadableWait final : public MailboxWait {
 public:
  using Value = Result<>;
  explicit MailboxReadableWait(MailboxQueue& queue) noexcept : MailboxWait(queue) {}
  Value value() const noexcept { return outcome(); }
};

/// A MailboxReadable is the awaitable of Mailbox::readable().
using MailboxReadable = Selectable<MailboxQueue, MailboxReadableAwaiter, MailboxReadableWait>;

/// A MailboxSender waits for room, in the frame of its coroutine. The task that admits it,
/// usually the receiver, moves its value, takes it off the list and posts it to its owner loop.
/// No other loop resumes it.
/// Threads: its loop's, except for what the queue's mutex guards.
class MailboxSender : loop::Runnable, public detail::ListNode {
 public:
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    handle_ = handle;
    return begin(handle.promise().context());
  }
  Result<> await_resume() const noexcept {
    if (error_) return fail(error_);
    return {};
  }

 protected:
  explicit MailboxSender(MailboxQueue& queue) noexcept : loop::Runnable(&run), queue_(queue) {}
  virtual ~MailboxSender() { assert(!linked()); }

  MailboxQueue& queue() const noexcept { return queue_; }
  void reject(std::error_code error) noexcept { error_ = error; }
  /// Moves the value into the slot of `position`.
  /// Threads: any.
  virtual void put(std::uint64_t position) noexcept = 0;

 private:
  friend class MailboxQueue;
  /// A separate node, because the sender itself is linked in the queue's list.
  struct CancelHook : CancelNode {
    explicit CancelHook(MailboxSender& of) noexcept : CancelNode(send_kind), sender(of) {}
    static void on_cancel(CancelNode& node);
    static std::coroutine_handle<> coroutine_of(const CancelNode& node) noexcept {
      return static_cast<const CancelHook&>(node).sender.handle_;
    }
    static constexpr Kind send_kind{&on_cancel, "Mailbox::send", &coroutine_of};
    MailboxSender& sender;
  };
  bool begin(const Context& context);
  static void run(loop::Runnable& self);

  MailboxQueue& queue_;
  std::coroutine_handle<> handle_;
  Loop* loop_ = nullptr;
  std::error_code error_;
  CancelHook cancel_hook_{*this};
};

/// A MailboxQueue assigns positions, counted from 0 and never reused; the slot of a position is
/// `position & mask()`. A sender claims the next position, stores its value there and publishes
/// the position. The receiver takes the positions in order. The path without waiting tasks takes
/// no lock.
class MailboxQueue {
 public:
  /// Number of values without a wait after which the receiver lets its loop take a turn.
  static constexpr unsigned streak_max = 256;

  MailboxQueue(std::size_t capacity, OverflowPolicy overflow_policy);
  ~MailboxQueue();
  MailboxQueue(const MailboxQueue&) = delete;
  MailboxQueue& operator=(const MailboxQueue&) = delete;

  std::size_t mask() const noexcept { return mask_; }
  std::size_t capacity() const noexcept { return capacity_; }
  bool senders_can_wait() const noexcept { return overflow_policy_ == OverflowPolicy::wait; }

  // Functions for senders, on any thread.

  /// Returns a position that belongs to the caller until publish().
  /// Errors: Errc::limit_reached, Errc::closed.
  Result<std::uint64_t> try_claim() noexcept;
  void publish(std::uint64_t position) noexcept;
  void close();
  /// acquire pairs with close(): a caller that sees true sees what the closer did before.
  bool closed() const noexcept { return (tail_.load(std::memory_order_acquire) & closed_bit) != 0; }

  // Functions for the receiver.

  /// relaxed: only the receiver writes it, and receivers that follow each other synchronize.
  std::uint64_t front() const noexcept { return head_.load(std::memory_order_relaxed); }
  /// Returns true if the front can be taken. seq_cst: see park().
  bool has_front() const noexcept {
    const std::uint64_t head = front();
    return sequences_[head & mask_].load(std::memory_order_seq_cst) == head + 1;
  }
  /// Returns true if no value will arrive any more. seq_cst: see park().
  bool at_end() const noexcept {
    return tail_.load(std::memory_order_seq_cst) == (front() | closed_bit);
  }
  /// Frees the slot of the front, which has been taken, and admits the next waiting sender.
  void release_front();
  /// Returns true if another value may be taken before the loop takes a turn.
  bool may_continue() noexcept { return ++streak_ < streak_max; }

  /// Returns the end of the published positions; only while no sender is active. The load is
  /// relaxed: a caller that can rely on that has synchronized with the last sender.
  std::uint64_t end() const noexcept { return tail_.load(std::memory_order_relaxed) & ~closed_bit; }

 private:
  friend class MailboxReceiver;
  friend class MailboxSender;
  static constexpr std::uint64_t closed_bit = std::uint64_t{1} << 63;

  Result<std::uint64_t> claim() noexcept;
  bool park(MailboxReceiver& receiver) noexcept;
  bool withdraw(MailboxReceiver& receiver) noexcept;
  void wake_receiver() noexcept;
  bool wait_for_room(MailboxSender& sender);
  bool withdraw(MailboxSender& sender);
  bool grant_waiters(loop::RunQueue& granted) noexcept;
  static void resume_on_owner(loop::RunQueue& senders) noexcept;

  // Constant after construction.
  const std::size_t capacity_;
  const std::size_t mask_;
  const OverflowPolicy overflow_policy_;
  // The last published position of each slot, plus 1.
  const std::unique_ptr<std::atomic<std::uint64_t>[]> sequences_;
  // Written by senders: the next position to claim, with closed_bit, and their last known head_.
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  std::atomic<std::uint64_t> head_seen_{0};
  // Written by the receiver only: the first position that has not been taken.
  alignas(64) std::atomic<std::uint64_t> head_{0};
  unsigned streak_ = 0;
  // Rarely written.
  alignas(64) std::atomic<MailboxReceiver*> receiver_{nullptr};  // set while it waits
  // A copy of the list's length for readers without the mutex; written under the mutex. The
  // increment is seq_cst and precedes the sender's last look for room, see wait_for_room().
  // Decrements are relaxed: a receiver that sees an old count takes the mutex and finds the list
  // empty. Senders: see try_claim().
  std::atomic<std::size_t> waiting_count_{0};
  std::mutex mutex_;  // guards the list
  detail::List<MailboxSender> waiting_;
};

inline bool MailboxReceiver::poll() const noexcept {
  return queue_.has_front() ? queue_.may_continue() : queue_.at_end();
}

inline Result<> MailboxReceiver::outcome() const noexcept {
  // Values and the end of the stream take precedence over a cancellation.
  if (queue_.has_front()) return {};
  return fail(queue_.at_end() ? Errc::end_of_stream : Errc::cancelled);
}

inline Result<std::uint64_t> MailboxQueue::claim() noexcept {
  std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  for (;;) {
    if ((tail & closed_bit) != 0) return fail(Errc::closed);
    // Compare positions by their difference: `tail` may be old and behind the head by now.
    const auto full = [&](std::uint64_t head) {
      return static_cast<std::int64_t>(tail - head) >= static_cast<std::int64_t>(capacity_);
    };
    // acquire: what the receiver did in the slot before it moved head_ happens before what this
    // sender does there. The order holds directly, or through the sender that stored head_seen_
    // with release.
    if (full(head_seen_.load(std::memory_order_acquire))) {
      // seq_cst, which includes acquire: see wait_for_room().
      const std::uint64_t head = head_.load(std::memory_order_seq_cst);
      head_seen_.store(head, std::memory_order_release);  // storing an older one is harmless
      if (full(head)) return fail(Errc::limit_reached);
    }
    // relaxed: only the number matters, because publish() makes the value visible. Claims fail
    // after close() has set its bit in the same word.
    if (tail_.compare_exchange_weak(tail, tail + 1, std::memory_order_relaxed)) return tail;
  }
}

inline Result<std::uint64_t> MailboxQueue::try_claim() noexcept {
  // No sender overtakes a waiting one. The load is relaxed: a caller that can observe that a
  // sender waited before this call has synchronized with that sender, and sees no older count. A
  // count that is too high (the waiting sender was just admitted) only makes this call refuse, or
  // makes wait_for_room() check again under the mutex. A count that is too low belongs to a
  // concurrent call, which has no order.
  if (waiting_count_.load(std::memory_order_relaxed) != 0 && !closed()) {
    return fail(Errc::limit_reached);
  }
  return claim();
}

inline void MailboxQueue::publish(std::uint64_t position) noexcept {
  // release: the receiver sees the value. seq_cst: see park().
  sequences_[position & mask_].store(position + 1, std::memory_order_seq_cst);
  if (receiver_.load(std::memory_order_seq_cst) != nullptr) wake_receiver();
}

}  // namespace weir::detail
