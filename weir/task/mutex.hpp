// A mutex on one core: one task at a time, also while it waits for something else.
#pragma once

#include <cassert>
#include <optional>

#include "weir/task/units.hpp"

namespace weir {

/// Keeps other tasks of the same loop out, not other threads: for what takes several steps with a
/// co_await between them. (What does not wait needs no lock: nothing else runs on its core.)
/// Threads: its loop's. Lifetime: longer than every wait for it and every guard (asserted).
class CoreMutex {
 public:
  CoreMutex() noexcept : units_(1) {}
  ~CoreMutex() { assert(!locked() && "destroyed while locked"); }

  /// The right to be in; given back when it is destroyed. Neither copied nor shared.
  class [[nodiscard]] Guard : detail::UnitsHold {
   public:
    /// Holds nothing.
    Guard() noexcept = default;
    /// Whether it holds the mutex: not when it was unlocked or moved from.
    using UnitsHold::holds;
    /// Unlocks now. The mutex belongs at once to the first who waits, whom the loop resumes in its
    /// next round.
    void unlock() { release(); }

   private:
    friend class CoreMutex;
    using UnitsHold::UnitsHold;
  };

  class [[nodiscard]] Lock : public detail::Units::Take {
   public:
    using Value = Result<Guard>;
    explicit Lock(detail::Units& units) noexcept : Take(units, 1) {}
    Value value() noexcept { return Guard(units(), 1); }
    Awaiting<Lock> operator co_await() && noexcept { return Awaiting<Lock>(*this); }
  };

  bool locked() const noexcept { return units_.free() == 0; }

  /// `auto guard = co_await mutex.lock();`: a Result<Guard>; at once if nobody is in. Not
  /// recursive: a task that locks twice waits until it is cancelled. Errors: Errc::cancelled.
  /// Cancel: leaves the queue and returns in the loop's next round, without the lock. A lock that
  /// had been handed to it before is kept: it returns the guard.
  Lock lock() noexcept { return Lock(units_); }

  /// The same without waiting; nothing if somebody is in.
  std::optional<Guard> try_lock() noexcept {
    if (!units_.try_take(1)) return std::nullopt;
    return Guard(units_, 1);
  }

 private:
  detail::Units units_;
};

}  // namespace weir
