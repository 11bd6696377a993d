// A Channel passes values between tasks of one core through a bounded queue.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "weir/task/detail/wait.hpp"

namespace weir::detail {

/// A ChannelRing is a first-in, first-out queue of at most `capacity` elements. The constructor
/// allocates its memory once.
/// Threads: one at a time.
template <class T>
class ChannelRing {
 public:
  explicit ChannelRing(std::size_t capacity)
      : slots_(capacity == 0 ? nullptr : std::allocator<T>().allocate(capacity)),
        capacity_(capacity) {}
  ChannelRing(const ChannelRing&) = delete;
  ChannelRing& operator=(const ChannelRing&) = delete;
  ~ChannelRing() {
    while (!empty()) std::destroy_at(slots_ + advance_first());
    if (slots_ != nullptr) std::allocator<T>().deallocate(slots_, capacity_);
  }

  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  bool full() const noexcept { return size_ == capacity_; }

  void push(T&& element) noexcept {
    assert(!full());
    std::construct_at(slots_ + next_, std::move(element));
    next_ = next_index(next_);
    ++size_;
  }
  T pop() noexcept {
    assert(!empty());
    T& slot = slots_[advance_first()];
    T element(std::move(slot));
    std::destroy_at(&slot);
    return element;
  }

 private:
  std::size_t next_index(std::size_t index) const noexcept {
    return index + 1 == capacity_ ? 0 : index + 1;
  }
  std::size_t advance_first() noexcept {
    --size_;
    return std::exchange(first_, next_index(first_));
  }

  T* slots_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  std::size_t first_ = 0;
  std::size_t next_ = 0;
};

}  // namespace weir::detail

namespace weir {

/// A Channel holds at most `capacity` values that were sent and not yet received. A channel with
/// a capacity of zero passes each value directly from a sender to a receiver. It has any number
/// of senders and receivers. Values come out in the order in which they were sent. A value that a
/// waiting receiver was granted belongs to this receiver even before it runs.
/// Threads: its loop's.
/// Lifetime: it outlives every wait for it (asserted). Values that were not received are
/// destroyed with it.
template <class T>
class Channel {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_object_v<T>,
                "weir: a channel needs an object type with a noexcept move constructor");

 public:
  explicit Channel(std::size_t capacity) : values_(capacity) {}

  class Receive;
  class SendFrom;
  class Send;

  /// Sends `value`: `co_await channel.send(value)`. It returns when the value is in the channel
  /// or with a receiver, immediately if there is room. The loop resumes the first waiting
  /// receiver from its ready queue.
  /// Errors: Errc::closed, Errc::cancelled; the value is then destroyed (see send_from()).
  /// Cancel: leaves the queue and resumes from the loop's ready queue; the value was not sent. It
  /// returns success if the value was taken before the cancellation.
  Send send(T value) noexcept { return Send(*this, std::move(value)); }

  /// Sends a `value` that stays the caller's until it is sent. `value` is moved from if and only
  /// if this returns success.
  /// Errors: Errc::closed, Errc::cancelled.
  /// Cancel: leaves the queue and resumes from the loop's ready queue; the value stays in `value`.
  /// It returns success if the value was taken before the cancellation.
  /// Lifetime: `value` lives as long as the wait.
  SendFrom send_from(T& value) noexcept { return SendFrom(*this, value); }

  /// Receives the oldest value: `auto value = co_await channel.receive();`. It returns
  /// immediately if there is a value. The first waiting sender fills the room, and the loop
  /// resumes it from its ready queue.
  /// Returns: a Result<T>.
  /// Errors: Errc::end_of_stream when the channel is closed and all values were received;
  /// Errc::cancelled.
  /// Cancel: leaves the queue and resumes from the loop's ready queue without a value; the values
  /// stay for other receivers. A value that was granted before the cancellation is returned.
  Receive receive() noexcept { return Receive(*this); }

  /// Sends `value` without waiting. `value` is moved from if and only if this returns success.
  /// Errors: Errc::limit_reached if there is no room; Errc::closed.
  Result<> try_send(T&& value) {
    if (closed_) return fail(Errc::closed);
    if (!try_push(value)) return fail(Errc::limit_reached);
    return {};
  }
  /// Receives the oldest value without waiting.
  /// Returns: the value; std::nullopt if there is none now, or (see closed()) ever.
  std::optional<T> try_receive() {
    std::optional<T> value;
    try_pop(value);
    return value;
  }

  /// Closes the channel: it takes no more values, and the values in it can still be received.
  /// Waiting senders fail with Errc::closed and keep their values. Waiting receivers fail with
  /// Errc::end_of_stream. The loop resumes them from its ready queue. A second call has no effect.
  void close();

  bool closed() const noexcept { return closed_; }
  std::size_t size() const noexcept { return values_.size(); }
  std::size_t capacity() const noexcept { return values_.capacity(); }

 private:
  bool try_push(T& value);
  bool try_pop(std::optional<T>& value);

  detail::ChannelRing<T> values_;
  WaitQueue<Receive> receivers_;  // empty while there is a value
  WaitQueue<SendFrom> senders_;   // empty while there is room
  bool closed_ = false;
};

template <class T>
class [[nodiscard]] Channel<T>::Receive : public QueuedWait {
 public:
  using Value = Result<T>;
  explicit Receive(Channel& channel) noexcept : channel_(channel) {}

  bool ready() { return channel_.try_pop(value_) || channel_.closed_; }
  bool begin(Loop&) noexcept {
    channel_.receivers_.push_back(*this);
    return true;
  }
  void withdraw() noexcept { unlink(); }
  Value value() noexcept {
    if (!value_) return fail(Errc::end_of_stream);
    return std::move(*value_);
  }
  WaitAwaiter<Receive> operator co_await() && noexcept { return WaitAwaiter<Receive>(*this); }

 private:
  friend class Channel;
  Channel& channel_;
  std::optional<T> value_;
};

template <class T>
class [[nodiscard]] Channel<T>::SendFrom : public QueuedWait {
 public:
  using Value = Result<>;
  SendFrom(Channel& channel, T& value) noexcept : channel_(channel), value_(&value) {}

  bool ready() {
    rejected_ = channel_.closed_;
    return rejected_ || channel_.try_push(*value_);
  }
  bool begin(Loop&) noexcept {
    channel_.senders_.push_back(*this);
    return true;
  }
  void withdraw() noexcept { unlink(); }
  Value value() const noexcept {
    if (rejected_) return fail(Errc::closed);
    return {};
  }
  WaitAwaiter<SendFrom> operator co_await() && noexcept { return WaitAwaiter<SendFrom>(*this); }

 protected:
  explicit SendFrom(Channel& channel) noexcept : channel_(channel) {}
  void set_value(T& value) noexcept { value_ = &value; }

 private:
  friend class Channel;
  Channel& channel_;
  T* value_ = nullptr;
  bool rejected_ = false;
};

template <class T>
class [[nodiscard]] Channel<T>::Send : public SendFrom {
 public:
  Send(Channel& channel, T value) noexcept : SendFrom(channel), owned_value_(std::move(value)) {}

  bool ready() {
    this->set_value(owned_value_);  // the wait does not move any more
    return SendFrom::ready();
  }
  WaitAwaiter<Send> operator co_await() && noexcept { return WaitAwaiter<Send>(*this); }

 private:
  T owned_value_;
};

/// Takes `value` if a receiver waits or there is room.
template <class T>
bool Channel<T>::try_push(T& value) {
  if (Receive* const receiver = receivers_.front()) {
    receiver->value_.emplace(std::move(value));
    receiver->grant();
    return true;
  }
  if (values_.full()) return false;
  values_.push(std::move(value));
  return true;
}

/// Takes the oldest value, if any; the first waiting sender fills the room.
template <class T>
bool Channel<T>::try_pop(std::optional<T>& value) {
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
void Channel<T>::close() {
  closed_ = true;
  while (Receive* const receiver = receivers_.front()) receiver->grant();
  while (SendFrom* const sender = senders_.front()) {
    sender->rejected_ = true;
    sender->grant();
  }
}

}  // namespace weir
