// A mailbox: values from any number of senders, on any threads, for one task.
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

struct MailboxOptions {
  std::size_t capacity = 1024;  ///< values that were sent and not yet received; at least 1
  /// What becomes of send() when it is full. try_send() never waits.
  WhenFull when_full = WhenFull::wait;
};

/// Brings values to one receiver, whichever core it is on. Senders may be on any core, of any
/// runtime, or on threads that Weir does not know. Values of one sender come out in the order in
/// which it sent them, and nobody overtakes a sender who waits for room.
///
/// As long as nobody waits for room it takes no lock: a sender that is stopped half way keeps
/// nobody from sending, and the receiver, at most, from what was sent after. Memory is taken once,
/// by the constructor. A receiver that waits is posted to its loop once, however much is sent until
/// it runs, and that loop is woken only if it sleeps.
///
/// Threads: any for send(), try_send() and close(); receive(), arrival() and try_receive() belong
/// to one task at a time (asserted), which may be another one later. Lifetime: longer than every
/// call and every wait (asserted); what nobody received is destroyed with it.
template <class T>
class Mailbox {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_object_v<T>,
                "a value must not get lost half way");

 public:
  explicit Mailbox(const MailboxOptions& options = {})
      : gate_(std::make_unique<detail::MailboxGate>(options.capacity, options.when_full)),
        places_(std::allocator<T>().allocate(gate_->mask() + 1)) {}
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox() {
    for (std::uint64_t each = gate_->front(); each != gate_->end(); ++each) {
      std::destroy_at(place(each));
    }
    std::allocator<T>().deallocate(places_, gate_->mask() + 1);
  }

  class Receive;
  class SendFrom;
  class Send;

  /// `co_await mailbox.send(value)`, in a task: returns when the value is in the mailbox, at once
  /// if there is room. Otherwise it is refused or waits in line, as the options say; then the
  /// receiver, on its own core, moves the value in as soon as it has made room, and the sender is
  /// resumed by its own loop. Errors: Errc::closed, Errc::limit_reached, Errc::cancelled; the value
  /// is destroyed then, here. Cancel: leaves the line and returns in the loop's next round; the
  /// value was not sent. If it had been taken in before, it returns success.
  Send send(T value) noexcept { return Send(*this, std::move(value)); }

  /// The same with a value that stays the caller's until it is sent: `value` is moved from if and
  /// only if this returns success. It must live as long as the wait.
  /// Cancel: as above; the value stays in `value`.
  SendFrom send_from(T& value) noexcept { return SendFrom(*this, value); }

  /// The same from any thread, without waiting; `value` is moved from if and only if this returns
  /// success. Errors: Errc::limit_reached when there is no room, or others wait for it;
  /// Errc::closed.
  Result<> try_send(T&& value) noexcept {
    const auto position = gate_->enter();
    if (!position) return fail(position.error());
    put(*position, value);
    gate_->publish(*position);
    return {};
  }

  /// `auto value = co_await mailbox.receive();`: a Result<T>, the oldest value; at once if there is
  /// one. Otherwise the task is resumed by its own loop, after a sender has posted it there. After
  /// some hundred values in a row it lets its loop take a turn, so that senders who are quicker
  /// cannot keep everything else from that core.
  /// Errors: Errc::end_of_stream when the mailbox is closed and everything was received;
  /// Errc::cancelled.
  /// Cancel: returns in one of the loop's next rounds and has taken nothing; a value that comes
  /// later is for the next receive(). One that came before is returned. So timeout() loses nothing;
  /// in a race() with something else, a receive() that loses may have received: see arrival().
  Receive receive() noexcept { return Receive(*this); }

  /// `co_await race(as_task(mailbox.arrival()), as_task(quit.wait()))`: returns when there is a
  /// value for try_receive() or receive(), and takes nothing; otherwise like receive(), and instead
  /// of it. Whatever it is raced with, no value is lost. (select() takes neither: its losers leave
  /// their queues at once, which here another core may have to agree to.)
  /// Errors: those of receive(). Cancel: as above.
  detail::MailboxArrival arrival() noexcept { return detail::MailboxArrival(*gate_); }

  /// The oldest value without waiting, for whoever may receive(); nothing if there is none now, or
  /// (when closed() was true before) ever.
  std::optional<T> try_receive() {
    if (!gate_->arrived()) return std::nullopt;
    return take();
  }

  /// Nothing goes in any more; what is in can still be received. Senders who wait fail with
  /// Errc::closed, a receiver who waits for more with Errc::end_of_stream; their loops resume them.
  /// Any thread; closing twice does nothing.
  void close() { gate_->close(); }
  bool closed() const noexcept { return gate_->closed(); }
  std::size_t capacity() const noexcept { return gate_->capacity(); }

 private:
  class Receiving;
  class Sending;

  T* place(std::uint64_t position) const noexcept { return places_ + (position & gate_->mask()); }
  void put(std::uint64_t position, T& value) noexcept {
    std::construct_at(place(position), std::move(value));
  }
  T take() {
    T& front = *place(gate_->front());
    T value(std::move(front));
    std::destroy_at(&front);
    gate_->taken();
    return value;
  }

  std::unique_ptr<detail::MailboxGate> gate_;
  T* places_;
};

template <class T>
class Mailbox<T>::Receiving final : public detail::MailboxReceiver {
 public:
  explicit Receiving(Mailbox& mailbox) noexcept
      : MailboxReceiver(*mailbox.gate_), mailbox_(mailbox) {}

  Result<T> await_resume() {
    if (const auto came = outcome(); !came) return fail(came.error());
    return mailbox_.take();
  }

 private:
  Mailbox& mailbox_;
};

/// See Mailbox::receive().
template <class T>
class [[nodiscard]] Mailbox<T>::Receive {
 public:
  explicit Receive(Mailbox& mailbox) noexcept : mailbox_(&mailbox) {}
  Receiving operator co_await() && noexcept { return Receiving(*mailbox_); }

 private:
  Mailbox* mailbox_;
};

template <class T>
class Mailbox<T>::Sending final : public detail::MailboxSender {
 public:
  Sending(Mailbox& mailbox, T& value) noexcept
      : MailboxSender(*mailbox.gate_), mailbox_(mailbox), value_(value) {}

  bool await_ready() noexcept {
    const auto sent = mailbox_.try_send(std::move(value_));
    if (sent) return true;
    if (sent.error() == Errc::limit_reached && gate().lets_wait()) return false;
    refuse(sent.error());
    return true;
  }

 private:
  void put(std::uint64_t position) noexcept override { mailbox_.put(position, value_); }

  Mailbox& mailbox_;
  T& value_;
};

/// See Mailbox::send_from().
template <class T>
class [[nodiscard]] Mailbox<T>::SendFrom {
 public:
  SendFrom(Mailbox& mailbox, T& value) noexcept : mailbox_(&mailbox), value_(&value) {}
  Sending operator co_await() && noexcept { return Sending(*mailbox_, *value_); }

 private:
  Mailbox* mailbox_;
  T* value_;
};

/// See Mailbox::send().
template <class T>
class [[nodiscard]] Mailbox<T>::Send {
 public:
  Send(Mailbox& mailbox, T value) noexcept : mailbox_(&mailbox), value_(std::move(value)) {}
  Sending operator co_await() && noexcept { return Sending(*mailbox_, value_); }

 private:
  Mailbox* mailbox_;
  T value_;
};

}  // namespace weir
