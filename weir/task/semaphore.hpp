// A semaphore on one core: so many at a time.
#pragma once

#include <cstddef>
#include <optional>

#include "weir/task/units.hpp"

namespace weir {

/// Units of a CoreSemaphore that somebody holds; they go back when it is destroyed.
/// Threads: the loop's. Lifetime: the semaphore outlives it.
class [[nodiscard]] CorePermit : detail::UnitsHold {
 public:
  /// Holds nothing.
  CorePermit() noexcept = default;

  /// How many units; 0 when it was released, forgotten or moved from.
  using UnitsHold::count;
  /// Gives the units back now. Whoever waits for them is resumed by the loop in its next round.
  using UnitsHold::release;
  /// Lets go without giving back: they are gone, or somebody else calls CoreSemaphore::release().
  using UnitsHold::forget;

 private:
  friend class CoreSemaphore;
  using UnitsHold::UnitsHold;
};

/// Threads: its loop's. Lifetime: longer than every wait for it (asserted) and every permit.
class CoreSemaphore {
 public:
  explicit CoreSemaphore(std::size_t units) noexcept : units_(units) {}

  /// How many units nobody holds.
  std::size_t free() const noexcept { return units_.free(); }

  class [[nodiscard]] Acquire : public detail::Units::Take {
   public:
    using Value = Result<CorePermit>;
    using Take::Take;
    Value value() noexcept { return CorePermit(units(), count()); }
    Awaiting<Acquire> operator co_await() && noexcept { return Awaiting<Acquire>(*this); }
  };

  /// `auto permit = co_await semaphore.acquire();`: a Result<CorePermit> with so many units; at
  /// once if they are free and nobody waits. Who asks for many is not overtaken by those behind who
  /// ask for few. More units than there will ever be: waits until it is cancelled.
  /// Errors: Errc::cancelled.
  /// Cancel: leaves the queue and returns in the loop's next round, without units; those behind it
  /// for whom there are enough get theirs. Units that it had been given before are kept: it returns
  /// the permit.
  Acquire acquire(std::size_t count = 1) noexcept { return Acquire(units_, count); }

  /// The same without waiting; nothing if that many are not free, or somebody waits.
  std::optional<CorePermit> try_acquire(std::size_t count = 1) noexcept {
    if (!units_.try_take(count)) return std::nullopt;
    return CorePermit(units_, count);
  }

  /// Adds units that no permit gives back. Those who wait for them are resumed by the loop in its
  /// next round, in the order of coming.
  void release(std::size_t count = 1) { units_.give(count); }

 private:
  detail::Units units_;
};

}  // namespace weir
