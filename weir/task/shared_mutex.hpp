// A shared mutex on one core: many who read, or one who writes.
#pragma once

#include <cassert>
#include <cstddef>
#include <limits>
#include <optional>

#include "weir/task/units.hpp"

namespace weir {

/// As CoreMutex, with a second way in that many may use at once. In order of coming: a reader who
/// comes behind a waiting writer waits too, so that neither can starve the other.
/// Threads: its loop's. Lifetime: longer than every wait for it and every guard (asserted).
class CoreSharedMutex {
  // A reader takes one unit, a writer all of them.
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

 public:
  CoreSharedMutex() noexcept : units_(all) {}
  ~CoreSharedMutex() { assert(units_.free() == all && "destroyed while locked"); }

  /// The right to be in, as a writer or as a reader; given back when it is destroyed.
  class [[nodiscard]] Guard : detail::UnitsHold {
   public:
    /// Holds nothing.
    Guard() noexcept = default;
    /// Whether it holds the mutex: not when it was unlocked or moved from.
    using UnitsHold::holds;
    /// Whether it keeps everybody else out.
    bool exclusive() const noexcept { return count() == all; }
    /// Unlocks now. Those whose turn it is (a writer, or all readers up to the next writer) are in
    /// at once; the loop resumes them in its next round.
    void unlock() { release(); }

   private:
    friend class CoreSharedMutex;
    using UnitsHold::UnitsHold;
  };

  class [[nodiscard]] Lock : public detail::Units::Take {
   public:
    using Value = Result<Guard>;
    using Take::Take;
    Value value() noexcept { return Guard(units(), count()); }
    Awaiting<Lock> operator co_await() && noexcept { return Awaiting<Lock>(*this); }
  };

  /// `auto guard = co_await mutex.lock();`: a Result<Guard>, in alone.
  /// Errors: Errc::cancelled.
  /// Cancel: leaves the queue and returns in the loop's next round, without the lock; readers who
  /// waited behind it get in if readers are in. A lock that had been handed to it before is kept:
  /// it returns the guard.
  Lock lock() noexcept { return Lock(units_, all); }

  /// The same, in together with other readers.
  /// Errors: Errc::cancelled.
  /// Cancel: as above.
  Lock lock_shared() noexcept { return Lock(units_, 1); }

  /// The same without waiting; nothing if it would have to wait.
  std::optional<Guard> try_lock() noexcept { return try_take(all); }
  std::optional<Guard> try_lock_shared() noexcept { return try_take(1); }

 private:
  std::optional<Guard> try_take(std::size_t count) noexcept {
    if (!units_.try_take(count)) return std::nullopt;
    return Guard(units_, count);
  }

  detail::Units units_;
};

}  // namespace weir
