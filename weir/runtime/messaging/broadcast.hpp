// A broadcast: what anybody publishes, every subscriber on every core receives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/runtime/broadcast_options.hpp"
#include "weir/runtime/messaging/detail/broadcast_ring.hpp"
#include "weir/task/task.hpp"

namespace weir {

namespace detail {

/// Memory of the core that asks for it; freed anywhere, it goes home.
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

/// Gives each value to every subscriber there is when it is published. All share it, const. Who
/// publishes never waits for readers: the broadcast keeps the last `capacity` values, and what
/// becomes of a reader who is slower is in the options. So is its memory bounded: these values, and
/// those that readers hold; with the last subscriber what is kept goes too. Everybody sees the same
/// order. Subscribers who wait are posted to their loops, each once, however much is published
/// until it runs; a loop is woken only if it sleeps.
///
/// Threads: any for publish(), close(), subscribe() and subscribers(). Lifetime: longer than every
/// subscription (asserted).
template <class T>
class Broadcast {
 public:
  explicit Broadcast(const BroadcastOptions& options = {})
      : ring_(std::make_unique<detail::BroadcastRing>(options)) {}

  class Receive;
  class Subscription;

  /// To all who subscribe now; does nothing when there are none. Never waits. Wakes subscribers who
  /// wait: each is resumed by its own loop. Errors: Errc::closed.
  Result<> publish(T value) {
    if (ring_->readers() == 0) return ring_->publish_to_nobody();
    return ring_->publish(share(std::move(value)));
  }

  /// From here on a subscriber; its first value is the next that is published.
  Subscription subscribe() { return Subscription(*ring_); }

  /// Nothing goes in any more; what is kept can still be received. Subscribers who wait for more
  /// fail with Errc::end_of_stream; their loops resume them. Closing twice does nothing.
  void close() { ring_->close(); }

  /// Those who have not been disconnected; see WhenSlow::disconnect for when that is.
  std::size_t subscribers() const { return ring_->readers(); }
  std::size_t capacity() const noexcept { return ring_->capacity(); }

 private:
  static std::shared_ptr<const T> share(T&& value) {
    return std::allocate_shared<const T>(detail::BlockAllocator<T>(), std::move(value));
  }

  std::unique_ptr<detail::BroadcastRing> ring_;
};

/// See Broadcast::subscribe(); it ends with this object. Threads: one task at a time, on one loop
/// at a time. Lifetime: not moved nor destroyed while it is received from (asserted).
template <class T>
class Broadcast<T>::Subscription {
 public:
  /// `auto value = co_await subscription.receive();`: a Result<std::shared_ptr<const T>>, the next
  /// value; at once if there is one. Otherwise the task is resumed by its own loop, after whoever
  /// publishes next has posted it there. After some hundred values in a row it lets its loop take a
  /// turn. Errors: Errc::limit_reached for who was too slow, see WhenSlow; Errc::end_of_stream when
  /// the broadcast is closed and everything was received; Errc::cancelled.
  /// Cancel: returns in one of the loop's next rounds and has taken nothing: the next receive()
  /// goes on where this would have. What was published before it was cancelled is returned. So
  /// timeout() loses nothing; in a race() with something else, a receive() that loses may have
  /// received: see arrival().
  Receive receive() noexcept { return Receive(reader_); }

  /// `co_await race(as_task(subscription.arrival()), as_task(quit.wait()))`: returns when receive()
  /// has something to say, and takes nothing; otherwise like receive(), and instead of it. Whatever
  /// it is raced with, no value is lost. (select() takes neither: its losers leave their queues at
  /// once, which here another core may have to agree to.)
  /// Errors: Errc::end_of_stream, Errc::cancelled; that it was too slow receive() tells.
  /// Cancel: as above.
  detail::BroadcastArrival arrival() noexcept { return detail::BroadcastArrival(reader_); }

  /// How many values this subscriber has lost by being slow, up to its last receive().
  std::uint64_t missed() const noexcept { return reader_.missed(); }

 private:
  friend class Broadcast;
  explicit Subscription(detail::BroadcastRing& ring) : reader_(ring) {}
  detail::BroadcastReader reader_;
};

/// See Broadcast::Subscription::receive().
template <class T>
class [[nodiscard]] Broadcast<T>::Receive {
 public:
  explicit Receive(detail::BroadcastReader& reader) noexcept : reader_(&reader) {}

  class Awaiter : public detail::BroadcastWait {
   public:
    explicit Awaiter(detail::BroadcastReader& reader) noexcept
        : BroadcastWait(reader, detail::BroadcastReader::Mode::take) {}
    Result<std::shared_ptr<const T>> await_resume() noexcept {
      auto taken = take();
      if (!taken) return fail(taken.error());
      return std::static_pointer_cast<const T>(std::move(*taken));
    }
  };
  Awaiter operator co_await() && noexcept { return Awaiter(*reader_); }

 private:
  detail::BroadcastReader* reader_;
};

}  // namespace weir
