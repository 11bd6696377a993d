// A broadcast: every subscriber on every core receives each published value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/runtime/messaging/detail/broadcast_ring.hpp"
#include "weir/runtime/messaging/overflow_policy.hpp"
#include "weir/task/task.hpp"

namespace weir {

namespace detail {

/// Allocates from the pool of the calling core. Memory that is freed on another core returns to
/// that pool.
template <class T>
struct BlockAllocator {
  using value_type = T;
  BlockAllocator() noexcept = default;
  template <class U>
  explicit(false) BlockAllocator(const BlockAllocator<U>&) noexcept {}
  T* allocate(std::size_t count) {
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    return static_cast<T*>(BlockPool::allocate(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t) noexcept { BlockPool::release(memory); }
  template <class U>
  bool operator==(const BlockAllocator<U>&) const noexcept {
    return true;
  }
};

}  // namespace detail

/// A Broadcast delivers each value to every subscriber that exists when it is published. All
/// subscribers share the value, as const. Publishers never wait for readers: the broadcast keeps
/// the last `capacity` values, and SlowReaderPolicy decides what happens to slower readers.
/// Memory is bounded by these values and those that readers hold; the kept values are freed with
/// the last subscriber. All subscribers see the same order. A waiting subscriber is posted to its
/// loop once, however many values are published until it runs. A loop is woken only if it sleeps.
///
/// Threads: any for publish(), close(), subscribe() and subscribers().
/// Lifetime: longer than every subscription (asserted).
template <class T>
class Broadcast {
 public:
  explicit Broadcast(const BroadcastOptions& options = {})
      : ring_(std::make_unique<detail::BroadcastRing>(options)) {}

  class ReceiveAwaiter;
  class ReceiveWait;
  /// A Receive is the awaitable of Subscription::receive().
  using Receive = detail::Selectable<detail::BroadcastReader, ReceiveAwaiter, ReceiveWait>;
  class Subscription;

  /// Publishes a value to all present subscribers; does nothing if there are none. It never
  /// waits. Waiting subscribers are resumed by their own loops.
  /// Errors: Errc::closed.
  Result<> publish(T value) {
    if (ring_->readers() == 0) return ring_->publish_without_readers();
    return ring_->publish(share(std::move(value)));
  }

  /// Returns a new subscription; its first value is the next one that is published.
  Subscription subscribe() { return Subscription(*ring_); }

  /// Closes the broadcast: publish() fails from now on, and kept values can still be received.
  /// Subscribers that wait for more fail with Errc::end_of_stream, resumed by their own loops.
  /// Closing twice has no effect.
  void close() { ring_->close(); }

  /// Returns the number of subscribers, without disconnected ones (SlowReaderPolicy::disconnect).
  std::size_t subscribers() const { return ring_->readers(); }
  std::size_t capacity() const noexcept { return ring_->capacity(); }

 private:
  static std::shared_ptr<const T> share(T&& value) {
    return std::allocate_shared<const T>(detail::BlockAllocator<T>(), std::move(value));
  }

  std::unique_ptr<detail::BroadcastRing> ring_;
};

/// A Subscription to a Broadcast ends when it is destroyed; see Broadcast::subscribe().
/// Threads: one task at a time, on one loop at a time.
/// Lifetime: must not be moved or destroyed during a receive() or readable() (asserted).
template <class T>
class Broadcast<T>::Subscription {
 public:
  /// `auto value = co_await subscription.receive();` returns the next value, immediately if there
  /// is one. Otherwise the task waits; the next publisher posts it to its own loop, which resumes
  /// it. It lets its loop take a turn after 256 values without a wait. A receive() that loses a
  /// race() may have taken a value: use readable() there.
  /// Returns: a Result<std::shared_ptr<const T>>.
  /// Errors: Errc::limit_reached if the subscriber was too slow, see SlowReaderPolicy;
  /// Errc::end_of_stream if the broadcast is closed and all values were received;
  /// Errc::cancelled.
  /// Cancel: resumes from the ready queue or the inbox of the loop and takes nothing; the next
  /// receive() gets the next value. A value or an end that came before the cancellation is
  /// returned instead. timeout() therefore loses no value.
  Receive receive() noexcept { return Receive(reader_); }

  /// `co_await race(as_task(subscription.readable()), as_task(quit.wait()))` waits until
  /// receive() would return without waiting. It takes no value, so it loses none in a race(). A
  /// task calls it instead of receive(), not at the same time. In select(), receive() loses none
  /// either: `co_await select(subscription.receive(), quit.wait())`.
  /// Errors: Errc::end_of_stream, Errc::cancelled. receive() reports a reader that was too slow.
  /// Cancel: resumes from the ready queue or the inbox of the loop; if a value is already there,
  /// it succeeds.
  detail::BroadcastReadable readable() noexcept { return detail::BroadcastReadable(reader_); }

  /// Returns the number of values that this subscriber lost by being slow, up to its last
  /// receive().
  std::uint64_t missed() const noexcept { return reader_.missed(); }

 private:
  friend class Broadcast;
  explicit Subscription(detail::BroadcastRing& ring) : reader_(ring) {}
  detail::BroadcastReader reader_;
};

template <class T>
class Broadcast<T>::ReceiveAwaiter final : public detail::BroadcastAwaiter {
 public:
  explicit ReceiveAwaiter(detail::BroadcastReader& reader) noexcept
      : BroadcastAwaiter(reader, detail::BroadcastReader::Mode::take) {}
  Result<std::shared_ptr<const T>> await_resume() noexcept {
    WEIR_TRY(auto taken, take());
    return std::static_pointer_cast<const T>(std::move(taken));
  }
};

template <class T>
class Broadcast<T>::ReceiveWait final : public detail::BroadcastWait {
 public:
  using Value = Result<std::shared_ptr<const T>>;
  explicit ReceiveWait(detail::BroadcastReader& reader) noexcept : BroadcastWait(reader) {}
  Value value() {
    WEIR_TRY(auto taken, take(detail::BroadcastReader::Mode::take));
    return std::static_pointer_cast<const T>(std::move(taken));
  }
};

}  // namespace weir
