// Timers: a hierarchical wheel that is told the time and calls what is due.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "weir/base/detail/list.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/slot_set.hpp"

namespace weir {

/// Something to be called at a moment; it lives in whatever waits. Destroying it cancels it.
/// Neither copied nor moved. Threads: those of its wheel.
class Timer : public ListNode {
 public:
  using Function = void (*)(Timer&);
  explicit Timer(Function fire) noexcept : fire_(fire) {}
  ~Timer() { cancel(); }

  bool armed() const noexcept { return wheel_ != nullptr; }
  Instant deadline() const noexcept { return deadline_; }
  /// Does nothing when it is not armed. O(1).
  void cancel() noexcept;

 private:
  friend class TimerWheel;
  Function fire_;
  Instant deadline_{};
  class TimerWheel* wheel_ = nullptr;
  std::uint16_t slot_ = 0;
};

/// The timers of one loop. Starting and cancelling are O(1), firing is amortised O(levels): five
/// wheels of 1024 slots, each 1024 times coarser than the one below (Varghese and Lauck, "Hashed
/// and Hierarchical Timing Wheels", 1987); a timer of less than 69 s moves from one to the other at
/// most once. The finest slot is 65.5 us wide, but a timer never fires
/// before its deadline, and a loop that wakes at next() fires it at its exact time.
/// Threads: one. Lifetime: timers may outlive it; they are cancelled.
class TimerWheel {
 public:
  explicit TimerWheel(Instant now);
  ~TimerWheel();
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  /// Arms `timer` for `deadline` (re-arms it if it was armed). A deadline in the past fires at the
  /// next advance(); with `never` it is only disarmed.
  void start(Timer& timer, Instant deadline) noexcept;

  /// Fires all timers with deadlines up to `now`; those of one slot in the order of their
  /// deadlines, equal ones in the order in which they were started. A fired timer is disarmed
  /// before it is called and may start itself again; what is started for a moment up to `now`
  /// while this runs fires at the next call.
  void advance(Instant now);

  /// When advance() has something to do: not later than the earliest deadline. `never`: nothing.
  Instant next() const noexcept;

  std::size_t armed() const noexcept { return armed_; }

 private:
  friend class Timer;
  static constexpr unsigned level_count = 5;
  static constexpr unsigned slot_bits = 10;
  static constexpr unsigned slots = 1U << slot_bits;
  static_assert(slots == SlotSet::size);
  static constexpr unsigned tick_bits = 16;
  static constexpr std::uint16_t due_slot = level_count * slots;

  struct Due {
    Instant deadline;
    std::size_t order;
    Timer* timer;
    bool operator<(const Due& other) const noexcept {
      return deadline != other.deadline ? deadline < other.deadline : order < other.order;
    }
  };

  void place(Timer& timer) noexcept;
  void forget(Timer& timer) noexcept;
  void take_due(unsigned slot, Instant now) noexcept;
  void turn_to(std::uint64_t target, Instant now) noexcept;
  std::uint64_t tick_of(Instant moment) const noexcept;

  std::array<std::array<List<Timer>, slots>, level_count> wheels_;
  std::array<SlotSet, level_count> occupied_;
  std::array<Instant, slots> earliest_{};  // of each finest slot, a lower bound
  List<Timer> due_;                        // deadlines before tick_
  std::vector<Due> sorting_;               // kept for its memory, some from the start
  Instant origin_;
  std::uint64_t tick_ = 0;  // the wheels stand here
  std::size_t armed_ = 0;
};

inline void Timer::cancel() noexcept {
  if (wheel_ != nullptr) wheel_->forget(*this);
}

}  // namespace weir
