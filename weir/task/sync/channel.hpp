// A bounded channel on one core: values from tasks that send to tasks that receive.
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include "weir/task/channel_ring.hpp"
#include "weir/task/detail/wait.hpp"

namespace weir {

/// Holds at most `capacity` values that were sent and not yet received; with none, each value goes
/// straight from a sender to a receiver. Any number of both. Values come out in the order in which
/// they were sent. A value handed to a receiver that waits is already its own, before it runs.
/// Threads: its loop's. Lifetime: longer than every wait for it (asserted); values that nobody
/// received are destroyed with it.
template <class T>
class CoreChannel {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_object_v<T>,
                "a value must not get lost half way");

 public:
  explicit CoreChannel(std::size_t capacity) : values_(capacity) {}

  class Receive;
  class SendFrom;
  class Send;

  /// `co_await channel.send(value)`: returns when the value is in the channel or with a receiver;
  /// at once if there is room. Wakes the receiver who waits first: the loop resumes it in its next
  /// round. Errors: Errc::closed, Errc::cancelled; the value is destroyed then (see send_from()).
  /// Cancel: leaves the queue and returns in the loop's next round, and the value was not sent. If
  /// it had been taken before, it returns success.
  Send send(T value) noexcept { return Send(*this, std::move(value)); }

  /// The same with a value that stays the caller's until it is sent: `value` is moved from if and
  /// only if this returns success. It must live as long as the wait.
  /// Cancel: as above; the value stays in `value`.
  SendFrom send_from(T& value) noexcept { return SendFrom(*this, value); }

  /// `auto value = co_await channel.receive();`: a Result<T>, the oldest value; at once if there is
  /// one. Makes room for the sender who waits first: the loop resumes it in its next round.
  /// Errors: Errc::end_of_stream when the channel is closed and everything was received;
  /// Errc::cancelled.
  /// Cancel: leaves the queue and returns in the loop's next round; it took nothing, the values are
  /// for others. A value that it had been given before is not lost: it returns that.
  Receive receive() noexcept { return Receive(*this); }

  /// The same without waiting; `value` is moved from if and only if this returns success.
  /// Errors: Errc::limit_reached when there is no room; Errc::closed.
  Result<> try_send(T&& value) {
    if (closed_) return fail(Errc::closed);
    if (!take_in(value)) return fail(Errc::limit_reached);
    return {};
  }
  /// The oldest value without waiting; nothing if there is none now, or (see closed()) ever.
  std::optional<T> try_receive() {
    std::optional<T> value;
    give_out(value);
    return value;
  }

  /// Nothing goes in any more; what is in can still be received. Senders who wait fail with
  /// Errc::closed and keep their values, receivers who wait fail with Errc::end_of_stream; the loop
  /// resumes them in its next round. Closing twice does nothing.
  void close();

  bool closed() const noexcept { return closed_; }
  std::size_t size() const noexcept { return values_.size(); }
  std::size_t capacity() const noexcept { return values_.capacity(); }

 private:
  bool take_in(T& value);
  bool give_out(std::optional<T>& value);

  detail::ChannelRing<T> values_;
  WaitQueue<Receive> receivers_;  // empty while there is a value
  WaitQueue<SendFrom> senders_;   // empty while there is room
  bool closed_ = false;
};

template <class T>
class [[nodiscard]] CoreChannel<T>::Receive : public QueuedWait {
 public:
  using Value = Result<T>;
  explicit Receive(CoreChannel& channel) noexcept : channel_(channel) {}

  bool ready() { return channel_.give_out(value_) || channel_.closed_; }
  bool begin(Loop&) noexcept {
    channel_.receivers_.push_back(*this);
    return true;
  }
  void withdraw() noexcept { unlink(); }
  Value value() noexcept {
    if (!value_) return fail(Errc::end_of_stream);
    return std::move(*value_);
  }
  Awaiting<Receive> operator co_await() && noexcept { return Awaiting<Receive>(*this); }

 private:
  friend class CoreChannel;
  CoreChannel& channel_;
  std::optional<T> value_;
};

template <class T>
class [[nodiscard]] CoreChannel<T>::SendFrom : public QueuedWait {
 public:
  using Value = Result<>;
  SendFrom(CoreChannel& channel, T& value) noexcept : channel_(channel), value_(&value) {}

  bool ready() {
    refused_ = channel_.closed_;
    return refused_ || channel_.take_in(*value_);
  }
  bool begin(Loop&) noexcept {
    channel_.senders_.push_back(*this);
    return true;
  }
  void withdraw() noexcept { unlink(); }
  Value value() const noexcept {
    if (refused_) return fail(Errc::closed);
    return {};
  }
  Awaiting<SendFrom> operator co_await() && noexcept { return Awaiting<SendFrom>(*this); }

 protected:
  explicit SendFrom(CoreChannel& channel) noexcept : channel_(channel) {}
  void send_this(T& value) noexcept { value_ = &value; }

 private:
  friend class CoreChannel;
  CoreChannel& channel_;
  T* value_ = nullptr;
  bool refused_ = false;
};

template <class T>
class [[nodiscard]] CoreChannel<T>::Send : public SendFrom {
 public:
  Send(CoreChannel& channel, T value) noexcept : SendFrom(channel), own_(std::move(value)) {}

  bool ready() {
    this->send_this(own_);  // from here on it does not move any more
    return SendFrom::ready();
  }
  Awaiting<Send> operator co_await() && noexcept { return Awaiting<Send>(*this); }

 private:
  T own_;
};

/// Takes `value` in if there is a receiver or room for it.
template <class T>
bool CoreChannel<T>::take_in(T& value) {
  if (Receive* const receiver = receivers_.front()) {
    receiver->value_.emplace(std::move(value));
    receiver->grant();
    return true;
  }
  if (values_.full()) return false;
  values_.push(std::move(value));
  return true;
}

/// The oldest value, if any; the room goes to the first sender who waits.
template <class T>
bool CoreChannel<T>::give_out(std::optional<T>& value) {
  SendFrom* const sender = senders_.front();
  if (values_.empty()) {
    if (sender == nullptr) return false;
    value.emplace(std::move(*sender->value_));
  } else {
    value.emplace(values_.pop());
    if (sender == nullptr) return true;
    values_.push(std::move(*sender->value_));
  }
  sender->grant();
  return true;
}

template <class T>
void CoreChannel<T>::close() {
  closed_ = true;
  while (Receive* const receiver = receivers_.front()) receiver->grant();
  while (SendFrom* const sender = senders_.front()) {
    sender->refused_ = true;
    sender->grant();
  }
}

}  // namespace weir
