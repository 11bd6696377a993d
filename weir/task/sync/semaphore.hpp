// A Semaphore limits how many tasks of one core do something at the same time.
#pragma once

#include <cstddef>
#include <optional>

#include "weir/task/sync/detail/permit_pool.hpp"

namespace weir {

/// A SemaphorePermit holds permits of a Semaphore and gives them back when it is destroyed.
/// Threads: the loop's.
/// Lifetime: the semaphore outlives it.
class [[nodiscard]] SemaphorePermit : detail::PermitGuard {
 public:
  /// Makes an object that holds no permits.
  SemaphorePermit() noexcept = default;

  /// Returns the number of permits; 0 after release(), forget() or a move from it.
  using PermitGuard::count;
  /// Gives the permits back now. The loop resumes the waiters that get them from its ready queue.
  using PermitGuard::release;
  /// Drops the permits without giving them back. They are lost, or other code calls
  /// Semaphore::release().
  using PermitGuard::forget;

 private:
  friend class Semaphore;
  using PermitGuard::PermitGuard;
};

/// A Semaphore is a number of permits that tasks take and give back.
/// Threads: its loop's.
/// Lifetime: it outlives every wait for it (asserted) and every permit.
class Semaphore {
 public:
  explicit Semaphore(std::size_t permits) noexcept : permits_(permits) {}

  /// Returns the number of free permits.
  std::size_t available() const noexcept { return permits_.available(); }

  class [[nodiscard]] Acquire : public detail::PermitPool::PermitWait {
   public:
    using Value = Result<SemaphorePermit>;
    using PermitWait::PermitWait;
    Value value() noexcept { return SemaphorePermit(permits(), count()); }
    WaitAwaiter<Acquire> operator co_await() && noexcept { return WaitAwaiter<Acquire>(*this); }
  };

  /// Takes `count` permits: `auto permit = co_await semaphore.acquire();`. It returns immediately
  /// if they are free and no task waits. Waiters are served in the order of arrival, so small
  /// requests do not overtake a large one. A request for more permits than there will ever be
  /// waits until it is cancelled.
  /// Returns: a Result<SemaphorePermit> with `count` permits.
  /// Errors: Errc::cancelled.
  /// Cancel: leaves the queue and resumes from the loop's ready queue without permits; the waiters
  /// behind it get theirs if enough are free. Permits that were granted before the cancellation
  /// are kept: it returns them.
  Acquire acquire(std::size_t count = 1) noexcept { return Acquire(permits_, count); }

  /// Takes `count` permits without waiting.
  /// Returns: the permits; std::nullopt if fewer are free or if a task waits.
  std::optional<SemaphorePermit> try_acquire(std::size_t count = 1) noexcept {
    if (!permits_.try_acquire(count)) return std::nullopt;
    return SemaphorePermit(permits_, count);
  }

  /// Adds `count` permits that no SemaphorePermit gives back. The loop resumes the waiters that
  /// get them from its ready queue, in the order of arrival.
  void release(std::size_t count = 1) { permits_.release(count); }

 private:
  detail::PermitPool permits_;
};

}  // namespace weir
