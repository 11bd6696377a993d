// Detection of the cause of a slow turn, at almost no cost while turns are quick.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/contract/detail/runnable.hpp"
#include "weir/os/detail/io/fd.hpp"

namespace weir {
class TraceContext;
}  // namespace weir

namespace weir::loop {

/// CurrentActivity names what the loop of this thread runs at the moment. That is the function
/// that the loop has called, or the coroutine that this function has resumed; nullptr between two
/// turns. Each change costs one store. A slow turn, a profile and a report of tasks read it.
///
/// Work that a coroutine calls, starts or awaits counts as its own until it suspends or ends. The
/// coroutine that awaited its end and then continues counts separately.
class CurrentActivity {
 public:
  static void begin(const Runnable& runnable) noexcept {
    set_function(runnable.function());
    trace_ = nullptr;
  }
  /// Reports that nothing runs any more.
  static void end() noexcept {
    set_function(nullptr);
    trace_ = nullptr;
  }
  /// Resumes `coroutine` on behalf of the runnable that is running.
  static void resume(std::coroutine_handle<> coroutine) {
    set_function(function_of(coroutine));
    coroutine.resume();
  }
  /// Reports that the running coroutine has ended and that `coroutine` continues.
  /// Returns: `coroutine`.
  static std::coroutine_handle<> transfer_to(std::coroutine_handle<> coroutine) noexcept {
    // The tail call keeps no value across it, so the usual path costs nothing. relaxed: see
    // StallDetector::ticked().
    if (ticks_->load(std::memory_order_relaxed) != 0) [[unlikely]]
      return check_and_transfer_to(coroutine);
    set_function(function_of(coroutine));
    return coroutine;
  }
  static const void* function() noexcept { return function_.load(std::memory_order_relaxed); }

  /// Returns the trace context that this thread works for; nullptr if there is none. Use it only
  /// for logs.
  static const TraceContext* trace() noexcept { return trace_; }
  /// Sets the trace context until the next runnable begins or another call sets it.
  static void set_trace(const TraceContext* trace) noexcept { trace_ = trace; }
  /// Sets a trace context while the guard lives, and then restores the one before.
  class TraceGuard {
   public:
    explicit TraceGuard(const TraceContext* trace) noexcept
        : before_(std::exchange(trace_, trace)) {}
    ~TraceGuard() { trace_ = before_; }
    TraceGuard(const TraceGuard&) = delete;
    TraceGuard& operator=(const TraceGuard&) = delete;

   private:
    const TraceContext* before_;
  };

 private:
  friend class StallDetector;
  /// Returns the function that resumes a suspended coroutine. Its address is the first word of the
  /// frame in the ABI that clang and GCC share.
  static const void* function_of(std::coroutine_handle<> coroutine) noexcept {
    return *static_cast<const void* const*>(coroutine.address());
  }
  // relaxed: a plain store. Another thread reads it only for StallDetector::activity().
  static void set_function(const void* function) noexcept {
    function_.store(function, std::memory_order_relaxed);
  }
  static std::coroutine_handle<> check_and_transfer_to(std::coroutine_handle<> coroutine) noexcept;

  // Read outside of turns; never incremented.
  static constinit inline const std::atomic<std::uint32_t> no_ticks_{0};
  static constinit inline thread_local const std::atomic<std::uint32_t>* ticks_ = &no_ticks_;
  static constinit inline thread_local std::atomic<const void*> function_{nullptr};
  static constinit inline thread_local const TraceContext* trace_ = nullptr;
};

/// The code in which a turn spent its time.
struct StallSite {
  const void* function = nullptr;  ///< nullptr: no single slow function
  std::string name = {};           ///< if not empty, replaces the name of the function: "GET /slow"

  bool operator==(const StallSite&) const = default;
};

/// StallDetector finds which of the functions that a turn runs takes long.
///
/// Reading the clock around each function would cost more than many of them. A watchdog of the
/// platform therefore counts instead. It adds one to the ticks of a loop every 20 ms while the
/// loop is in a turn, never sooner. The loop looks at the ticks after each function, which costs a
/// load and a branch that is not taken. Two or more ticks after one function prove that it took at
/// least 20 ms. No innocent function is named, however late the watchdog is. If the clock costs
/// nothing (PlatformClock::clock_is_free()), the detector reads it each time instead.
///
/// Threads: the loop's, except tick() and the functions of the watchdog.
class StallDetector {
 public:
  static constexpr Duration tick_length = std::chrono::milliseconds(20);

  explicit StallDetector(PlatformClock& clock) noexcept
      : clock_(clock), exact_(clock.clock_is_free()) {
    if (exact_) ticks_.store(1, std::memory_order_relaxed);  // stays non-zero
  }

  /// Makes the activity of this thread count for the loop while the object lives. Turns may nest.
  class Turn {
   public:
    Turn(StallDetector& detector, Instant now) noexcept
        : before_(std::exchange(CurrentActivity::ticks_, &detector.ticks_)),
          function_before_(CurrentActivity::function()) {
      // relaxed: see activity().
      detector.activity_.store(&CurrentActivity::function_, std::memory_order_relaxed);
      detector.begin_turn(now);
    }
    ~Turn() {
      CurrentActivity::ticks_ = before_;
      CurrentActivity::set_function(function_before_);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    const std::atomic<std::uint32_t>* before_;
    const void* function_before_;
  };

  /// Returns true if there is something to check. relaxed, like every access to ticks, which order
  /// nothing. A tick that is seen late counts with the next one.
  bool ticked() const noexcept { return ticks_.load(std::memory_order_relaxed) != 0; }
  /// Returns the ticks of the watchdog since the last check.
  std::uint32_t ticks() const noexcept {
    return ticks_.load(std::memory_order_relaxed) & ~part_stalled;
  }
  /// Reports that the work named `name()` has run. It also names a part of that work that has
  /// stalled.
  template <class Name>
  void check_as(const Name& name) {
    const bool part = is_part_stalled();
    if (check() || part) suspect_ = {.name = name()};
  }
  /// Checks the activity that CurrentActivity names: check_part() as a part of some work,
  /// check_runnable() as the whole.
  void check_part() noexcept;
  void check_runnable() noexcept {
    if (check()) suspect_ = {CurrentActivity::function()};
  }
  /// Returns the function that the loop runs; nullptr if it runs nothing. The caller keeps the
  /// thread of the loop from ending meanwhile.
  /// Threads: any. relaxed: the address is only a name.
  const void* activity() const noexcept {
    const auto* const function = activity_.load(std::memory_order_relaxed);
    return function == nullptr ? nullptr : function->load(std::memory_order_relaxed);
  }
  /// Returns the site that took longest in this turn.
  const StallSite& suspect() const noexcept { return suspect_; }

  /// Adds a tick, at most one per `tick_length`.
  /// Threads: any.
  void tick() noexcept { ticks_.fetch_add(1, std::memory_order_relaxed); }

  // The watchdog goes to sleep when no loop has had work for a while. The next turn of any loop
  // wakes it. It may miss the beginning of that turn; the cause of a slow turn then has no name.

  /// Sets the function that wakes the watchdog; nullptr removes it. The watchdog calls this.
  void set_watchdog(void (*wake)(void*), void* watchdog) noexcept {
    wake_ = wake;
    watchdog_ = watchdog;
  }
  void set_watchdog_sleeping(bool sleeps) noexcept {
    watchdog_sleeping_.store(sleeps, std::memory_order_relaxed);
  }
  /// Wakes a sleeping watchdog. The loop calls it in each turn.
  void wake_watchdog() noexcept {
    if (watchdog_sleeping_.load(std::memory_order_relaxed)) notify_watchdog();
  }

 private:
  // A bit of ticks_, set when a part has stalled: ticked() then stays true until the whole work is
  // checked.
  static constexpr std::uint32_t part_stalled = std::uint32_t{1} << 31;

  void begin_turn(Instant now) noexcept {
    if (longest_ > 1) suspect_ = {};
    longest_ = 1;
    checked_at_ = now;
    if (!exact_ && ticked()) ticks_.store(0, std::memory_order_relaxed);
  }
  bool is_part_stalled() const noexcept {
    return (ticks_.load(std::memory_order_relaxed) & part_stalled) != 0;
  }
  /// Returns true if the work since the last check took at least 20 ms, and longer than any other
  /// in this turn.
  bool check() noexcept;
  void notify_watchdog() noexcept;

  PlatformClock& clock_;
  bool exact_;
  std::atomic<std::uint32_t> ticks_{0};
  std::atomic<bool> watchdog_sleeping_{false};
  std::atomic<const std::atomic<const void*>*> activity_{nullptr};  // that of the loop's thread
  std::uint32_t longest_ = 1;  // most ticks of one piece of work in this turn
  Instant checked_at_{};       // used if the clock is free
  StallSite suspect_;
  void (*wake_)(void*) = nullptr;  // set before the loop runs
  void* watchdog_ = nullptr;
};

// Slow turns by cause: logged once for each site, and always counted.

/// The slow turns of one cause, on all cores of a runtime.
struct StallSummary {
  std::string name;         ///< "GET /slow", "serve_client"
  std::uint64_t turns = 0;  ///< turns that ran longer than Loop::slow_turn with this cause
  Duration longest{};       ///< longest of these turns
};

/// The slow turns of all loops of a group.
/// Threads: any. A loop uses it only after a slow turn.
class StallLog {
 public:
  /// Limit of sites; turns of further sites count as "others".
  static constexpr std::size_t sites_max = 64;

  /// Counts a slow turn. Looking up the name of a site takes milliseconds, once.
  /// Returns: the name, to be logged, if this is the first turn of the site; empty otherwise.
  std::string add(const StallSite& site, Duration took);
  /// Returns the summaries, most turns first, then by name.
  std::vector<StallSummary> summaries() const;

 private:
  struct Entry {
    StallSite site;
    StallSummary summary;
  };
  Entry* find(const StallSite& site);

  mutable std::mutex mutex_;  // guards the members below
  std::vector<Entry> entries_;
};

// The watchdog of loops on threads, which adds ticks to the loops that are in a turn.

/// A Watchdog gives a StallDetector its ticks. It wakes 50 times a second while a loop has work,
/// and not at all when no loop has had work for a second.
/// Threads: one, which calls check() and wake().
/// Lifetime: made before the loops run, destroyed after they have ended.
class Watchdog {
 public:
  /// Makes the watchdog of the loops in `placements`.
  /// Errors: that of the kernel if it has no descriptor left.
  static Result<Watchdog> make(PlatformClock& clock, std::span<const LoopPlacement> placements);
  Watchdog(Watchdog&&) noexcept = default;
  Watchdog& operator=(Watchdog&&) = delete;
  ~Watchdog();

  /// Starts to watch. Call it before the loops run. The watchdog must not move afterwards, because
  /// the loops store its address.
  void start();
  /// Returns the time of the next check(); `never` while the watchdog sleeps.
  Instant next() const noexcept { return next_; }
  void check();
  /// Returns a descriptor that becomes readable when a loop wakes the watchdog. The caller then
  /// calls wake().
  int wake_descriptor() const noexcept { return wake_event_.get(); }
  void wake();

 private:
  struct WatchedLoop {
    Loop* loop;
    std::uint64_t turns = 0;  // turns at the last check
  };
  // 1 s: a loop that sleeps for less never has to wake the watchdog.
  static constexpr unsigned idle_checks_max = 50;

  Watchdog(PlatformClock& clock, os::Fd wake_event) noexcept
      : clock_(&clock), wake_event_(std::move(wake_event)) {}
  void schedule_next() { next_ = after(clock_->now(), StallDetector::tick_length); }
  static void wake_up(void* self);
  bool check_as(WatchedLoop& watched);
  void set_sleeping(bool sleeps);

  PlatformClock* clock_;
  os::Fd wake_event_;
  std::vector<WatchedLoop> watched_;
  Instant next_ = never;
  unsigned idle_checks_ = 0;
};

}  // namespace weir::loop
