// A mailbox: carries values from any number of senders, on any threads, to one task.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "weir/runtime/messaging/detail/mailbox_queue.hpp"
#include "weir/task/task.hpp"

namespace weir {

/// MailboxOptions sets the capacity of a Mailbox and its policy when it is full.
struct MailboxOptions {
  std::size_t capacity = 1024;  ///< values sent and not yet received; at least 1
  /// The behaviour of send() when the mailbox is full; try_send() never waits.
  OverflowPolicy overflow_policy = OverflowPolicy::wait;
};

/// A Mailbox carries values to one receiver, on any core. Senders may run on any core of any
/// runtime, or on threads outside Weir. Values of one sender arrive in the order of sending.
/// Senders that wait for room are served in their order, and no later sender overtakes them.
///
/// The mailbox takes no lock while no sender waits for room. A sender that the kernel suspends in
/// the middle of a call does not block other senders. It delays the receiver only for values that
/// were sent after its own. The constructor allocates all memory. A waiting receiver is posted to
/// its loop once, however many values are sent until it runs. The loop is woken only if it
/// sleeps.
///
/// Threads: any for send(), try_send() and close(). One task at a time may use receive(),
/// readable() and try_receive(); it may be a different task later. A second task must not wait
/// meanwhile (asserted).
/// Lifetime: longer than every call and every wait (asserted). Values that were not received are
/// destroyed with the mailbox.
template <class T>
class Mailbox {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_object_v<T>,
                "a value must not get lost half way");

 public:
  explicit Mailbox(const MailboxOptions& options = {})
      : queue_(std::make_unique<detail::MailboxQueue>(options.capacity, options.overflow_policy)),
        slots_(std::allocator<T>().allocate(queue_->mask() + 1)) {}
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox() {
    for (std::uint64_t each = queue_->front(); each != queue_->end(); ++each) {
      std::destroy_at(slot(each));
    }
    std::allocator<T>().deallocate(slots_, queue_->mask() + 1);
  }

  class ReceiveAwaiter;
  class ReceiveWait;
  /// A Receive is the awaitable of receive().
  using Receive = detail::Selectable<Mailbox, ReceiveAwaiter, ReceiveWait>;
  class SendFrom;
  class Send;

  /// `co_await mailbox.send(value)` returns when the value is in the mailbox, immediately if
  /// there is room. A full mailbox rejects the value or makes the sender wait in line, depending
  /// on MailboxOptions::overflow_policy. The receiver moves the value of the first waiting sender
  /// in as soon as it has made room, on its own core. The sender is resumed by its own loop.
  /// Errors: Errc::closed, Errc::limit_reached, Errc::cancelled. The value is then destroyed on
  /// the sender's core.
  /// Cancel: the sender leaves the line and resumes from the ready queue of its loop; the value
  /// was not sent. If the receiver had already taken the value in, send() returns success.
  Send send(T value) noexcept { return Send(*this, std::move(value)); }

  /// `co_await mailbox.send_from(value)` is send() with a value that the caller keeps. It moves
  /// from `value` if and only if it returns success.
  /// Errors: Errc::closed, Errc::limit_reached, Errc::cancelled.
  /// Cancel: the same as for send(); the value stays in `value`.
  /// Lifetime: `value` must live as long as the wait.
  SendFrom send_from(T& value) noexcept { return SendFrom(*this, value); }

  /// Sends without waiting. It moves from `value` if and only if it returns success.
  /// Errors: Errc::limit_reached if there is no room or other senders wait for it; Errc::closed.
  /// Threads: any.
  Result<> try_send(T&& value) noexcept {
    WEIR_TRY(const auto position, queue_->try_claim());
    put(position, value);
    queue_->publish(position);
    return {};
  }

  /// `auto value = co_await mailbox.receive();` returns the oldest value, immediately if there is
  /// one. Otherwise the task waits; a sender posts it to its own loop, which resumes it. It lets
  /// its loop take a turn after 256 values without a wait, so fast senders cannot starve that
  /// core. A receive() that loses a race() may have taken a value: use readable() there.
  /// Returns: a Result<T>.
  /// Errors: Errc::end_of_stream if the mailbox is closed and all values were received;
  /// Errc::cancelled.
  /// Cancel: resumes from the ready queue or the inbox of the loop and takes nothing; the next
  /// receive() gets the next value. A value or an end that came before the cancellation is
  /// returned instead. timeout() therefore loses no value.
  Receive receive() noexcept { return Receive(*this); }

  /// `co_await race(as_task(mailbox.readable()), as_task(quit.wait()))` waits until there is a
  /// value for try_receive() or receive(). It takes no value, so it loses none in a race(). A
  /// task calls it instead of receive(), not at the same time. In select(), receive() loses none
  /// either: `co_await select(mailbox.receive(), quit.wait())`.
  /// Errors: those of receive().
  /// Cancel: resumes from the ready queue or the inbox of the loop; if a value is already there,
  /// it succeeds.
  detail::MailboxReadable readable() noexcept { return detail::MailboxReadable(*queue_); }

  /// Returns the oldest value without waiting, or std::nullopt if there is none now. If closed()
  /// was true before the call, std::nullopt means that no value will ever arrive. No task except
  /// the receiver may call this.
  std::optional<T> try_receive() {
    if (!queue_->has_front()) return std::nullopt;
    return take();
  }

  /// Closes the mailbox: no value can be sent any more, and the values inside can still be
  /// received. Waiting senders fail with Errc::closed, and a receiver that waits for more fails
  /// with Errc::end_of_stream. They are resumed by their own loops. Closing twice has no effect.
  /// Threads: any.
  void close() { queue_->close(); }
  bool closed() const noexcept { return queue_->closed(); }
  std::size_t capacity() const noexcept { return queue_->capacity(); }

 private:
  class SendAwaiter;

  T* slot(std::uint64_t position) const noexcept { return slots_ + (position & queue_->mask()); }
  void put(std::uint64_t position, T& value) noexcept {
    std::construct_at(slot(position), std::move(value));
  }
  T take() {
    T& front = *slot(queue_->front());
    T value(std::move(front));
    std::destroy_at(&front);
    queue_->release_front();
    return value;
  }

  std::unique_ptr<detail::MailboxQueue> queue_;
  T* slots_;
};

template <class T>
class Mailbox<T>::ReceiveAwaiter final : public detail::MailboxAwaiter {
 public:
  explicit ReceiveAwaiter(Mailbox& mailbox) noexcept
      : MailboxAwaiter(*mailbox.queue_), mailbox_(mailbox) {}

  Result<T> await_resume() {
    WEIR_TRY(outcome());
    return mailbox_.take();
  }

 private:
  Mailbox& mailbox_;
};

template <class T>
class Mailbox<T>::ReceiveWait final : public detail::MailboxWait {
 public:
  using Value = Result<T>;
  explicit ReceiveWait(Mailbox& mailbox) noexcept
      : MailboxWait(*mailbox.queue_), mailbox_(mailbox) {}

  Value value() {
    WEIR_TRY(outcome());
    return mailbox_.take();
  }

 private:
  Mailbox& mailbox_;
};

template <class T>
class Mailbox<T>::SendAwaiter final : public detail::MailboxSender {
 public:
  SendAwaiter(Mailbox& mailbox, T& value) noexcept
      : MailboxSender(*mailbox.queue_), mailbox_(mailbox), value_(value) {}

  bool await_ready() noexcept {
    const auto sent = mailbox_.try_send(std::move(value_));
    if (sent) return true;
    if (sent.error() == Errc::limit_reached && queue().senders_can_wait()) return false;
    reject(sent.error());
    return true;
  }

 private:
  void put(std::uint64_t position) noexcept override { mailbox_.put(position, value_); }

  Mailbox& mailbox_;
  T& value_;
};

/// A SendFrom is the awaitable of Mailbox::send_from().
template <class T>
class [[nodiscard]] Mailbox<T>::SendFrom {
 public:
  SendFrom(Mailbox& mailbox, T& value) noexcept : mailbox_(&mailbox), value_(&value) {}
  SendAwaiter operator co_await() && noexcept { return SendAwaiter(*mailbox_, *value_); }

 private:
  Mailbox* mailbox_;
  T* value_;
};

/// A Send is the awaitable of Mailbox::send().
template <class T>
class [[nodiscard]] Mailbox<T>::Send {
 public:
  Send(Mailbox& mailbox, T value) noexcept : mailbox_(&mailbox), value_(std::move(value)) {}
  SendAwaiter operator co_await() && noexcept { return SendAwaiter(*mailbox_, value_); }

 private:
  Mailbox* mailbox_;
  T value_;
};

}  // namespace weir
