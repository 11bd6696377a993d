// A Mutex admits one task of a core at a time, also while that task waits; a SharedMutex admits
// several readers or one writer.
#pragma once

#include <cassert>
#include <cstddef>
#include <limits>
#include <optional>

#include "weir/task/sync/detail/permit_pool.hpp"

namespace weir {

/// A SharedMutex is held by one writer, or by any number of readers at the same time. It is
/// granted in the order of arrival: a reader behind a waiting writer waits too, so neither can
/// starve the other.
/// Threads: its loop's.
/// Lifetime: it outlives every wait for it and every guard (asserted).
class SharedMutex {
  // A reader takes one permit, a writer takes all permits.
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

 public:
  SharedMutex() noexcept : permits_(all) {}
  ~SharedMutex() { assert(permits_.available() == all && "destroyed while locked"); }

  /// A Guard holds the mutex for a writer or a reader, and unlocks it when it is destroyed.
  class [[nodiscard]] Guard : detail::PermitGuard {
   public:
    /// Makes a guard that holds nothing.
    Guard() noexcept = default;
    /// Returns true if the guard holds the mutex; false after unlock() or a move from it.
    using PermitGuard::owns;
    /// Returns true if the guard holds the mutex alone, for a writer.
    bool exclusive() const noexcept { return count() == all; }
    /// Unlocks the mutex now. The next waiters (a writer, or all readers up to the next writer)
    /// hold it immediately. The loop resumes them from its ready queue.
    void unlock() { release(); }

   private:
    friend class SharedMutex;
    using PermitGuard::PermitGuard;
  };

  class [[nodiscard]] Lock : public detail::PermitPool::PermitWait {
   public:
    using Value = Result<Guard>;
    using PermitWait::PermitWait;
    Value value() noexcept { return Guard(permits(), count()); }
    WaitAwaiter<Lock> operator co_await() && noexcept { return WaitAwaiter<Lock>(*this); }
  };

  /// Locks the mutex for a writer, alone: `auto guard = co_await mutex.lock();`.
  /// Returns: a Result<Guard>.
  /// Errors: Errc::cancelled.
  /// Cancel: leaves the queue and resumes from the loop's ready queue without the lock. Readers
  /// that waited behind it get the lock if other readers hold it. A lock that was granted before
  /// the cancellation is kept: it returns the guard.
  Lock lock() noexcept { return Lock(permits_, all); }

  /// Locks the mutex for a reader, together with other readers.
  /// Returns: a Result<Guard>.
  /// Errors: Errc::cancelled.
  /// Cancel: leaves the queue and resumes from the loop's ready queue without the lock. A lock that
  /// was granted before the cancellation is kept: it returns the guard.
  Lock lock_shared() noexcept { return Lock(permits_, 1); }

  /// These functions lock the mutex without waiting, for a writer or for a reader.
  /// Returns: a guard; std::nullopt if the function would have to wait.
  std::optional<Guard> try_lock() noexcept { return try_lock_with(all); }
  std::optional<Guard> try_lock_shared() noexcept { return try_lock_with(1); }

 private:
  std::optional<Guard> try_lock_with(std::size_t count) noexcept {
    if (!permits_.try_acquire(count)) return std::nullopt;
    return Guard(permits_, count);
  }

  detail::PermitPool permits_;
};

/// A Mutex keeps out other tasks of the same loop, not other threads. It protects work of several
/// steps with a co_await between them. Work that does not wait needs no lock, since no other task
/// of its core runs meanwhile.
/// Threads: its loop's.
/// Lifetime: it outlives every wait for it and every guard (asserted).
class Mutex {
 public:
  Mutex() noexcept : permits_(1) {}
  ~Mutex() { assert(!locked() && "destroyed while locked"); }

  /// A Guard holds the mutex and unlocks it when it is destroyed. It is neither copied nor
  /// shared.
  class [[nodiscard]] Guard : detail::PermitGuard {
   public:
    /// Makes a guard that holds nothing.
    Guard() noexcept = default;
    /// Returns true if the guard holds the mutex; false after unlock() or a move from it.
    using PermitGuard::owns;
    /// Unlocks the mutex now. The first waiter holds it immediately, and the loop resumes this
    /// waiter from its ready queue.
    void unlock() { release(); }

   private:
    friend class Mutex;
    using PermitGuard::PermitGuard;
  };

  class [[nodiscard]] Lock : public detail::PermitPool::PermitWait {
   public:
    using Value = Result<Guard>;
    explicit Lock(detail::PermitPool& permits) noexcept : PermitWait(permits, 1) {}
    Value value() noexcept { return Guard(permits(), 1); }
    WaitAwaiter<Lock> operator co_await() && noexcept { return WaitAwaiter<Lock>(*this); }
  };

  bool locked() const noexcept { return permits_.available() == 0; }

  /// Locks the mutex: `auto guard = co_await mutex.lock();`. It returns immediately if no task
  /// holds the mutex. It is not recursive: a task that locks twice waits until it is cancelled.
  /// Returns: a Result<Guard>.
  /// Errors: Errc::cancelled.
  /// Cancel: leaves the queue and resumes from the loop's ready queue without the lock. A lock that
  /// was granted before the cancellation is kept: it returns the guard.
  Lock lock() noexcept { return Lock(permits_); }

  /// Locks the mutex without waiting.
  /// Returns: a guard; std::nullopt if the mutex is locked.
  std::optional<Guard> try_lock() noexcept {
    if (!permits_.try_acquire(1)) return std::nullopt;
    return Guard(permits_, 1);
  }

 private:
  detail::PermitPool permits_;
};

}  // namespace weir
