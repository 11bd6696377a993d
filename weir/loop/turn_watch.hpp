// What made a turn slow: found out at next to no cost while turns are quick.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <string>
#include <utility>

#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/contract/detail/runnable.hpp"

namespace weir {

class WorkUnit;

/// What the loop of this thread runs at the moment: the function that it has called, or else the
/// coroutine that this has resumed. A store each; read only when a turn was slow.
///
/// What a coroutine calls, starts or awaits counts as its own until it suspends or ends; whoever
/// has awaited its end and goes on in its place is told apart.
class Running {
 public:
  static void begin(const Runnable& runnable) noexcept {
    function_ = runnable.function();
    unit_ = nullptr;
  }
  /// Nothing runs any more.
  static void end() noexcept { unit_ = nullptr; }
  /// Resumes it on behalf of the runnable that is running.
  static void resume(std::coroutine_handle<> coroutine) {
    function_ = function_of(coroutine);
    coroutine.resume();
  }
  /// The coroutine that was running has ended, and this one, which is returned, goes on in its
  /// place.
  static std::coroutine_handle<> go_on(std::coroutine_handle<> coroutine) noexcept {
    // A tail call, so that nothing has to be kept across it where it is not made. relaxed: see
    // TurnWatch::ticked().
    if (ticks_->load(std::memory_order_relaxed) != 0) [[unlikely]]
      return look_and_go_on(coroutine);
    function_ = function_of(coroutine);
    return coroutine;
  }
  static const void* function() noexcept { return function_; }

  /// For whom this thread works at the moment; nullptr: for nobody in particular. For logs only.
  static const WorkUnit* unit() noexcept { return unit_; }
  /// From now on, until something else is run or says otherwise, for that one.
  static void work_for(const WorkUnit* unit) noexcept { unit_ = unit; }
  /// While it lives; then for whom it was before.
  class Working {
   public:
    explicit Working(const WorkUnit* unit) noexcept : before_(std::exchange(unit_, unit)) {}
    ~Working() { unit_ = before_; }
    Working(const Working&) = delete;
    Working& operator=(const Working&) = delete;

   private:
    const WorkUnit* before_;
  };

 private:
  friend class TurnWatch;
  /// The first word of a suspended coroutine's frame is the address of the function that goes on
  /// with it: the ABI that clang and GCC share.
  static const void* function_of(std::coroutine_handle<> coroutine) noexcept {
    return *static_cast<const void* const*>(coroutine.address());
  }
  static std::coroutine_handle<> look_and_go_on(std::coroutine_handle<> coroutine) noexcept;

  // Outside of turns, nobody ticks.
  static constinit inline const std::atomic<std::uint32_t> no_ticks_{0};
  static constinit inline thread_local const std::atomic<std::uint32_t>* ticks_ = &no_ticks_;
  static constinit inline thread_local const void* function_ = nullptr;
  static constinit inline thread_local const WorkUnit* unit_ = nullptr;
};

/// Where a turn spent its time.
struct TurnPlace {
  const void* function = nullptr;  ///< nullptr: no one thing was seen to take long
  std::string name = {};           ///< if not empty, instead of a function's: "GET /slow"

  bool operator==(const TurnPlace&) const = default;
};

/// Tells which of the things that a turn runs takes long.
///
/// To look at the clock around each would cost more than many of them. Instead the host has a
/// watchdog: while a loop is in a turn, it adds one to the loop's ticks every 20 ms, never sooner.
/// The loop looks at them behind each thing that has run, a load and a branch that is not taken.
/// Two ticks or more behind one thing prove that this took 20 ms at least: so nobody innocent is
/// named, however late the watchdog is. Where the clock costs nothing (Host::clock_is_free()), it
/// is read instead, each time.
///
/// Threads: the loop's, but for tick() and what is said to be the watchdog's.
class TurnWatch {
 public:
  static constexpr Duration tick_length = std::chrono::milliseconds(20);

  explicit TurnWatch(Host& host) noexcept : host_(host), exact_(host.clock_is_free()) {
    if (exact_) ticks_.store(1, std::memory_order_relaxed);  // for good
  }

  /// From now on, for the time it lives, what this thread runs is the loop's.
  class Turn {
   public:
    Turn(TurnWatch& watch, Instant now) noexcept
        : before_(std::exchange(Running::ticks_, &watch.ticks_)) {
      watch.begin_turn(now);
    }
    ~Turn() { Running::ticks_ = before_; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    const std::atomic<std::uint32_t>* before_;
  };

  /// Whether to look. relaxed, as all that concerns ticks: they order nothing, and one that is seen
  /// late is counted with the next.
  bool ticked() const noexcept { return ticks_.load(std::memory_order_relaxed) != 0; }
  /// Of the watchdog, since the last look.
  std::uint32_t ticks() const noexcept {
    return ticks_.load(std::memory_order_relaxed) & ~part_blamed;
  }
  /// Something has run that is called `name()`. A part of it that was blamed is called so too.
  template <class Name>
  void look_at(const Name& name) {
    const bool part = is_part_blamed();
    if (look() || part) suspect_ = {.name = name()};
  }
  /// What Running says has run, as a part of something or as all of it.
  void look_at_part() noexcept;
  void look_at_all() noexcept {
    if (look()) suspect_ = {Running::function()};
  }
  /// What took longest in this turn.
  const TurnPlace& suspect() const noexcept { return suspect_; }

  /// Any thread, at most one each `tick_length`.
  void tick() noexcept { ticks_.fetch_add(1, std::memory_order_relaxed); }

  // A watchdog that has seen the loop do nothing for long sleeps until it is woken by the next turn
  // of any loop. It may miss that turn's beginning; then what made that turn slow has no name.

  /// The watchdog's: from now on, or no more, the loop is to call `wake` at its next turn.
  void set_watchdog(void (*wake)(void*), void* watchdog) noexcept {
    wake_ = wake;
    watchdog_ = watchdog;
  }
  void watchdog_sleeps(bool sleeps) noexcept {
    watchdog_sleeps_.store(sleeps, std::memory_order_relaxed);
  }
  /// The loop's, in each turn.
  void wake_watchdog() noexcept {
    if (watchdog_sleeps_.load(std::memory_order_relaxed)) wake_sleeping_watchdog();
  }

 private:
  // In ticks_, so that whoever looks at the whole looks for it.
  static constexpr std::uint32_t part_blamed = std::uint32_t{1} << 31;

  void begin_turn(Instant now) noexcept {
    if (longest_ > 1) suspect_ = {};
    longest_ = 1;
    looked_at_ = now;
    if (!exact_ && ticked()) ticks_.store(0, std::memory_order_relaxed);
  }
  bool is_part_blamed() const noexcept {
    return (ticks_.load(std::memory_order_relaxed) & part_blamed) != 0;
  }
  /// Whether what has run since the last look took 20 ms or more, and longer than anything else in
  /// this turn.
  bool look() noexcept;
  void wake_sleeping_watchdog() noexcept;

  Host& host_;
  bool exact_;
  std::atomic<std::uint32_t> ticks_{0};
  std::atomic<bool> watchdog_sleeps_{false};
  std::uint32_t longest_ = 1;  // ticks behind one thing in this turn
  Instant looked_at_{};        // where the clock is free
  TurnPlace suspect_;
  void (*wake_)(void*) = nullptr;  // set before the loop runs
  void* watchdog_ = nullptr;
};

}  // namespace weir
