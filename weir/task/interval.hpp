// Interval: a tick every so often, on a grid that does not drift.
#pragma once

#include <cassert>
#include <cstdint>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/task/detail/wait.hpp"

namespace weir {

/// What becomes of ticks whose time passed while nobody waited for them.
enum class MissedTicks : std::uint8_t {
  skip,   ///< the latest of them is given, late; the ones before it are counted
  burst,  ///< all of them are given, late, one in each round of the loop
};

struct IntervalOptions {
  MissedTicks missed = MissedTicks::skip;
  /// From the first next() to the first tick; negative: a whole period.
  Duration first_after = Duration(-1);
};

struct Tick {
  std::uint64_t number = 0;  ///< on the grid, from 0
  Instant due{};             ///< its place on the grid: that of tick 0 + number × period
  std::uint64_t missed = 0;  ///< ticks skipped since the one given before
};

/// Ticks at fixed distances from the first, however late each is taken: `Interval ticks(100ms);
/// while (auto tick = co_await ticks.next()) …`. The grid begins at the first next().
/// Threads: its loop's. Lifetime: longer than the wait for a tick.
class Interval {
 public:
  /// `period` is greater than zero (asserted).
  explicit Interval(Duration period, const IntervalOptions& options = {}) noexcept;
  ~Interval() { assert(!waited_on_ && "destroyed while waited on"); }
  Interval(const Interval&) = delete;
  Interval& operator=(const Interval&) = delete;

  Duration period() const noexcept { return period_; }
  /// Forgets the grid: the next next() begins another. Not while somebody waits (asserted).
  void restart() noexcept;

  class [[nodiscard]] Next : public Wait, Timer {
   public:
    using Value = Result<Tick>;
    explicit Next(Interval& interval) noexcept : Timer(&fire), interval_(interval) {}
    Next(Next&& other) noexcept
        : Wait(std::move(other)), Timer(&fire), interval_(other.interval_) {}

    bool ready() const noexcept { return false; }
    bool due(Loop& loop) noexcept;
    bool begin(Loop& loop);
    void withdraw() noexcept;
    Value value() const noexcept { return tick_; }
    Awaiting<Next> operator co_await() && noexcept { return Awaiting<Next>(*this); }

   private:
    static void fire(Timer& timer);
    Interval& interval_;
    Loop* loop_ = nullptr;
    Tick tick_;
  };

  /// `auto tick = co_await ticks.next();`: the next tick when its time comes, or, when that has
  /// passed, in the loop's next round; see MissedTicks. One task at a time (asserted). The loop's
  /// timer queues the task, which runs in that round.
  /// Errors: Errc::cancelled.
  /// Cancel: returns in the loop's next round; the tick stays for the next call, and the grid where
  /// it is. A tick whose timer had fired before is kept: it returns that.
  Next next() noexcept { return Next(*this); }

 private:
  void start_grid(Loop& loop) noexcept;
  Tick take(Instant now) noexcept;

  Duration period_;
  IntervalOptions options_;
  Tick next_;  // valid when started
  bool started_ = false;
  bool waited_on_ = false;
};

}  // namespace weir
