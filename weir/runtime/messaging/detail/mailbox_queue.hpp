// The order at a mailbox's door: who may touch which of its places when, and who is woken.
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
#include "weir/runtime/when_full.hpp"
#include "weir/task/context.hpp"

namespace weir::detail {

class MailboxGate;

/// Its one receiver while it waits, in the frame of that coroutine. Threads: its loop's. Whoever
/// brings it mail takes it from the gate and posts it home; only the home loop resumes it.
class MailboxReceiver : Runnable, CancelNode, Timer {
 public:
  bool await_ready() const noexcept;
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    handle_ = handle;
    return begin(handle.promise().context());
  }

 protected:
  explicit MailboxReceiver(MailboxGate& gate) noexcept
      : Runnable(&run), CancelNode(&ask), Timer(&turned), gate_(gate) {}
  ~MailboxReceiver() = default;
  /// Errors: Errc::end_of_stream, Errc::cancelled; none: the front can be taken.
  Result<> outcome() const noexcept;

 private:
  friend class MailboxGate;
  bool begin(const Context& context);
  static void run(Runnable& self);
  static void ask(CancelNode& node);
  static void turned(Timer& timer);

  MailboxGate& gate_;
  std::coroutine_handle<> handle_;
  Loop* loop_ = nullptr;
  bool cancelled_ = false;
};

/// A receiver that takes nothing.
class MailboxArriving final : public MailboxReceiver {
 public:
  explicit MailboxArriving(MailboxGate& gate) noexcept : MailboxReceiver(gate) {}
  Result<> await_resume() const noexcept { return outcome(); }
};

/// See Mailbox::arrival().
class [[nodiscard]] MailboxArrival {
 public:
  explicit MailboxArrival(MailboxGate& gate) noexcept : gate_(&gate) {}
  MailboxArriving operator co_await() && noexcept { return MailboxArriving(*gate_); }

 private:
  MailboxGate* gate_;
};

/// A sender while it waits for room, in the frame of its coroutine. Threads: its loop's, but what
/// the gate's mutex guards. Whoever lets it in (the receiver, mostly) moves its value for it, takes
/// it off the list and posts it home; only the home loop resumes it.
class MailboxSender : Runnable, public ListNode {
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
  explicit MailboxSender(MailboxGate& gate) noexcept : Runnable(&run), gate_(gate) {}
  virtual ~MailboxSender() { assert(!linked()); }

  MailboxGate& gate() const noexcept { return gate_; }
  void refuse(std::error_code error) noexcept { error_ = error; }
  /// Moves the value to where it shall lie. On any thread.
  virtual void put(std::uint64_t position) noexcept = 0;

 private:
  friend class MailboxGate;
  /// Its own, since it is in the gate's list as itself.
  struct Cancelling : CancelNode {
    explicit Cancelling(MailboxSender& of) noexcept : CancelNode(&ask), sender(of) {}
    static void ask(CancelNode& node);
    MailboxSender& sender;
  };
  bool begin(const Context& context);
  static void run(Runnable& self);

  MailboxGate& gate_;
  std::coroutine_handle<> handle_;
  Loop* loop_ = nullptr;
  std::error_code error_;
  Cancelling cancelling_{*this};
};

/// Values lie at positions, counted from 0 and never used twice; the place of a position is
/// `position & mask()`. A sender claims the next position, puts its value there and publishes it;
/// the receiver takes them in order. The path without anybody who waits takes no lock.
class MailboxGate {
 public:
  /// After so many values without a wait the receiver lets its loop take a turn.
  static constexpr unsigned streak_max = 256;

  MailboxGate(std::size_t capacity, WhenFull when_full);
  ~MailboxGate();
  MailboxGate(const MailboxGate&) = delete;
  MailboxGate& operator=(const MailboxGate&) = delete;

  std::size_t mask() const noexcept { return mask_; }
  std::size_t capacity() const noexcept { return capacity_; }
  bool lets_wait() const noexcept { return when_full_ == WhenFull::wait; }

  // Senders, any thread.

  /// A position that is the caller's own until publish(). Errors: Errc::limit_reached, Errc::closed
  Result<std::uint64_t> enter() noexcept;
  void publish(std::uint64_t position) noexcept;
  void close();
  /// acquire, with close(): who sees it closed sees what its closer did before.
  bool closed() const noexcept { return (tail_.load(std::memory_order_acquire) & closed_bit) != 0; }

  // The receiver.

  /// relaxed: its own; whoever receives next has been told so by this one.
  std::uint64_t front() const noexcept { return head_.load(std::memory_order_relaxed); }
  /// Whether the front can be taken. seq_cst: see rest().
  bool arrived() const noexcept {
    const std::uint64_t head = front();
    return turns_[head & mask_].load(std::memory_order_seq_cst) == head + 1;
  }
  /// Whether nothing will arrive any more. seq_cst: see rest().
  bool ended() const noexcept {
    return tail_.load(std::memory_order_seq_cst) == (front() | closed_bit);
  }
  /// The front has been taken and its place is free: the next sender who waits comes in.
  void taken();
  /// Whether another value may be taken without a turn of the loop in between.
  bool goes_on() noexcept { return ++streak_ < streak_max; }

  /// While nobody sends. relaxed: whoever knows that has synchronized with the last who did.
  std::uint64_t end() const noexcept { return tail_.load(std::memory_order_relaxed) & ~closed_bit; }

 private:
  friend class MailboxReceiver;
  friend class MailboxSender;
  static constexpr std::uint64_t closed_bit = std::uint64_t{1} << 63;

  Result<std::uint64_t> claim() noexcept;
  bool rest(MailboxReceiver& receiver) noexcept;
  bool withdraw(MailboxReceiver& receiver) noexcept;
  void wake_receiver() noexcept;
  bool wait_for_room(MailboxSender& sender);
  bool withdraw(MailboxSender& sender);
  bool let_in(RunQueue& entered) noexcept;
  static void send_home(RunQueue& senders) noexcept;

  // Never written after the constructor.
  const std::size_t capacity_;
  const std::size_t mask_;
  const WhenFull when_full_;
  // For each place: 1 + the position that was published there last.
  const std::unique_ptr<std::atomic<std::uint64_t>[]> turns_;
  // The senders': the next position to claim, with closed_bit; and what they last knew of head_.
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  std::atomic<std::uint64_t> head_seen_{0};
  // Written by the receiver only: the first position that has not been taken.
  alignas(64) std::atomic<std::uint64_t> head_{0};
  unsigned streak_ = 0;
  // Seldom written.
  alignas(64) std::atomic<MailboxReceiver*> receiver_{nullptr};  // while it waits
  // Written under the mutex: a copy of the list's length for those who only look. It goes up before
  // who waits looks for room a last time (seq_cst, see wait_for_room()). It comes down relaxed: the
  // receiver who does not see that yet takes the mutex and finds nobody, and enter() see there.
  std::atomic<std::size_t> waiting_count_{0};
  std::mutex mutex_;  // guards the list
  List<MailboxSender> waiting_;
};

inline bool MailboxReceiver::await_ready() const noexcept {
  return gate_.arrived() ? gate_.goes_on() : gate_.ended();
}

inline Result<> MailboxReceiver::outcome() const noexcept {
  // In this order: what came beats a cancellation, and so does the end.
  if (gate_.arrived()) return {};
  return fail(gate_.ended() ? Errc::end_of_stream : Errc::cancelled);
}

inline Result<std::uint64_t> MailboxGate::claim() noexcept {
  std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  for (;;) {
    if ((tail & closed_bit) != 0) return fail(Errc::closed);
    // Positions as differences: `tail` may be old, and behind the head by now.
    const auto full = [&](std::uint64_t head) {
      return static_cast<std::int64_t>(tail - head) >= static_cast<std::int64_t>(capacity_);
    };
    // acquire: what the receiver did in the place before it moved head_ comes before what this
    // sender does there; directly, or through the sender who stored head_seen_ with release.
    if (full(head_seen_.load(std::memory_order_acquire))) {
      // seq_cst, which includes acquire: see wait_for_room().
      const std::uint64_t head = head_.load(std::memory_order_seq_cst);
      head_seen_.store(head, std::memory_order_release);  // an older one does no harm
      if (full(head)) return fail(Errc::limit_reached);
    }
    // relaxed: only the number matters; the value is published by its turn. Nothing can be claimed
    // once close() has set its bit in the same word.
    if (tail_.compare_exchange_weak(tail, tail + 1, std::memory_order_relaxed)) return tail;
  }
}

inline Result<std::uint64_t> MailboxGate::enter() noexcept {
  // Nobody overtakes who waits. relaxed: whoever can tell that somebody waited before this call has
  // synchronized with that one, and does not see an older count. A count that is too high by now
  // (the one who waited has just been let in) only refuses, or lets wait_for_room() look again,
  // under the mutex; one that is too low belongs to calls at the same time, which have no order.
  if (waiting_count_.load(std::memory_order_relaxed) != 0 && !closed()) {
    return fail(Errc::limit_reached);
  }
  return claim();
}

inline void MailboxGate::publish(std::uint64_t position) noexcept {
  // release: the receiver sees the value. seq_cst: see rest().
  turns_[position & mask_].store(position + 1, std::memory_order_seq_cst);
  if (receiver_.load(std::memory_order_seq_cst) != nullptr) wake_receiver();
}

}  // namespace weir::detail
