// An Interval ticks with a fixed period and does not drift.
#pragma once

#include <cassert>
#include <cstdint>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/task/detail/wait.hpp"

namespace weir {

/// The handling of ticks whose time passed while no task waited for them.
enum class MissedTicks : std::uint8_t {
  skip,   ///< the latest of these ticks is returned, late; the earlier ones are counted
  burst,  ///< all of these ticks are returned, late, one per turn of the loop
};

/// IntervalOptions sets the first tick of an Interval and its policy for missed ticks.
struct IntervalOptions {
  MissedTicks missed = MissedTicks::skip;
  /// The delay from the first next() to the first tick; a negative value means one period.
  Duration initial_delay = Duration(-1);
};

/// One tick of an Interval.
struct Tick {
  std::uint64_t number = 0;  ///< position on the grid, from 0
  Instant due{};             ///< planned time: that of tick 0 + number × period
  std::uint64_t missed = 0;  ///< number of ticks skipped since the last returned tick
};

/// An Interval returns ticks at fixed distances from the first, however late each is taken:
/// `Interval ticks(100ms); while (auto tick = co_await ticks.next()) …`.
/// The grid begins at the first next(). A tick after the end of the clock never comes.
/// Threads: its loop's.
/// Lifetime: it outlives the wait for a tick (asserted).
class Interval {
 public:
  /// Takes a `period` that is greater than zero (asserted).
  explicit Interval(Duration period, const IntervalOptions& options = {}) noexcept;
  ~Interval() { assert(!waited_on_ && "destroyed while waited on"); }
  Interval(const Interval&) = delete;
  Interval& operator=(const Interval&) = delete;

  Duration period() const noexcept { return period_; }
  /// Drops the grid; the next next() begins a new one. No task waits for a tick (asserted).
  void restart() noexcept;

  class [[nodiscard]] Next : public Wait, loop::Timer {
   public:
    using Value = Result<Tick>;
    explicit Next(Interval& interval) noexcept : loop::Timer(&fire), interval_(interval) {}
    Next(Next&& other) noexcept
        : Wait(std::move(other)), loop::Timer(&fire), interval_(other.interval_) {}

    bool ready() const noexcept { return false; }
    bool due(Loop& loop) noexcept;
    bool begin(Loop& loop);
    void withdraw() noexcept;
    Value value() const noexcept { return tick_; }
    WaitAwaiter<Next> operator co_await() && noexcept { return WaitAwaiter<Next>(*this); }

   private:
    static void fire(loop::Timer& timer);
    Interval& interval_;
    Loop* loop_ = nullptr;
    Tick tick_;
  };

  /// Waits until the time of the next tick: `auto tick = co_await ticks.next();`. If that time
  /// has passed, it returns in the loop's next turn; see MissedTicks. A second task must not
  /// wait meanwhile (asserted). The timer puts the task on the loop's ready queue.
  /// Returns: a Result<Tick>.
  /// Errors: Errc::cancelled.
  /// Cancel: resumes from the loop's ready queue. The tick stays for the next call, and the grid
  /// does not change. A tick whose timer fired before the cancellation is returned.
  Next next() noexcept { return Next(*this); }

 private:
  void start_grid(Loop& loop) noexcept;
  Tick take(Instant now) noexcept;

  Duration period_;
  IntervalOptions options_;
  Tick next_;  // valid if started_
  bool started_ = false;
  bool waited_on_ = false;
};

}  // namespace weir
