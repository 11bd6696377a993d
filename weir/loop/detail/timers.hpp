// Timers of a loop: a hierarchical wheel that gets the time and calls the timers that are due.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/base/detail/counter.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/base/time.hpp"

namespace weir::loop {

// A set of small numbers that finds its smallest one in constant time.

/// A set of numbers below `size`. Each operation reads or writes two bits, however many numbers
/// the set contains.
class HierarchicalBitset {
 public:
  static constexpr unsigned size = 1024;

  bool empty() const noexcept { return words_in_use_ == 0; }
  bool contains(unsigned slot) const noexcept {
    return (words_[slot / word_bits] & bit_of(slot % word_bits)) != 0;
  }
  void insert(unsigned slot) noexcept {
    words_[slot / word_bits] |= bit_of(slot % word_bits);
    words_in_use_ |= bit_of(slot / word_bits);
  }
  void erase(unsigned slot) noexcept {
    std::uint64_t& word = words_[slot / word_bits];
    word &= ~bit_of(slot % word_bits);
    if (word == 0) words_in_use_ &= ~bit_of(slot / word_bits);
  }
  /// Returns the smallest number. The set is not empty.
  unsigned first() const noexcept {
    const auto word = static_cast<unsigned>(std::countr_zero(words_in_use_));
    return word * word_bits + static_cast<unsigned>(std::countr_zero(words_[word]));
  }

 private:
  static constexpr unsigned word_bits = 64;
  static_assert(size <= word_bits * word_bits);
  static constexpr std::uint64_t bit_of(unsigned index) noexcept {
    return std::uint64_t{1} << index;
  }

  std::uint64_t words_in_use_ = 0;  // one bit per word
  std::array<std::uint64_t, size / word_bits> words_{};
};

/// A Timer is a callback for a moment. It lives in the object that waits; destroying it cancels
/// it.
/// Threads: those of its wheel.
/// Lifetime: neither copied nor moved.
class Timer : public detail::ListNode {
 public:
  using Function = void (*)(Timer&);
  explicit Timer(Function fire) noexcept : fire_(fire) {}
  ~Timer() { cancel(); }

  bool armed() const noexcept { return wheel_ != nullptr; }
  Instant deadline() const noexcept { return deadline_; }
  /// Disarms the timer; does nothing if it is not armed. O(1).
  void cancel() noexcept;

 private:
  friend class TimerWheel;
  Function fire_;
  Instant deadline_{};
  class TimerWheel* wheel_ = nullptr;
  std::uint16_t slot_ = 0;
};

/// The timers of one loop. Starting and cancelling are O(1); firing is amortised O(levels). The
/// five wheels have 1024 slots each; each is 1024 times coarser than the one below (Varghese and
/// Lauck, "Hashed and Hierarchical Timing Wheels", 1987). A timer of less than 69 s moves to
/// another wheel at most once. The finest slot is 65.5 us wide, but a timer never fires before its
/// deadline. A loop that wakes at next() fires the timer at its exact time.
/// Threads: one.
/// Lifetime: timers may outlive the wheel, which cancels them.
class TimerWheel {
 public:
  explicit TimerWheel(Instant now);
  ~TimerWheel();
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  /// Arms `timer` for `deadline`, also if it is armed already. A deadline in the past fires at the
  /// next advance(). The deadline `never` only disarms the timer.
  void start(Timer& timer, Instant deadline) noexcept;

  /// Fires all timers with deadlines up to `now`. The timers of one slot fire in the order of
  /// their deadlines; those with equal deadlines fire in the order of their starts. A timer is
  /// disarmed before it is called and may start itself again. A timer that is started during this
  /// call, for a moment up to `now`, fires at the next call.
  void advance(Instant now);

  /// Returns the time at which advance() has work: at the latest the earliest deadline; `never` if
  /// there is none.
  Instant next() const noexcept;

  std::size_t armed() const noexcept { return armed_.value(); }

 private:
  friend class Timer;
  static constexpr unsigned level_count = 5;
  static constexpr unsigned slot_bits = 10;
  static constexpr unsigned slots = 1U << slot_bits;
  static_assert(slots == HierarchicalBitset::size);
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

  void insert(Timer& timer) noexcept;
  void remove(Timer& timer) noexcept;
  void take_due(unsigned slot, Instant now) noexcept;
  void advance_to(std::uint64_t target, Instant now) noexcept;
  std::uint64_t tick_of(Instant moment) const noexcept;

  std::array<std::array<detail::List<Timer>, slots>, level_count> wheels_;
  std::array<HierarchicalBitset, level_count> occupied_;
  std::array<Instant, slots> earliest_{};  // a lower bound for each finest slot
  detail::List<Timer> due_;                // timers with deadlines before tick_
  std::vector<Due> sort_buffer_;  // kept to reuse its memory; some is reserved at the start
  Instant origin_;
  std::uint64_t tick_ = 0;  // present tick of the wheels
  weir::detail::Counter armed_;
};

inline void Timer::cancel() noexcept {
  if (wheel_ != nullptr) wheel_->remove(*this);
}

}  // namespace weir::loop
