// Balance between the cores that listen on one address: new connections of a core that has too
// many go to the one that has the fewest, before a byte of them has been read.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/descriptor.hpp"
#include "weir/loop/contract/detail/runnable.hpp"

namespace weir {

class Loop;

/// When a core hands connections over: it has at least `connections_min`; it begins at 1.25 times
/// the mean of all cores and ends at the mean. So traffic that is strictly even never causes any.
/// Clients that the kernel spreads at random do, rarely and while they are few, for then some core
/// has a quarter too many by chance: calculated for the first 4,000 that come and stay, 0.02 % of
/// them are moved on 2 cores, 0.1 % on 4, 0.6 % on 16.
class BalanceRule {
 public:
  static constexpr std::size_t connections_min = 32;

  /// Of a core with `own` of the `all` connections that `cores` cores have.
  bool hands_over(std::size_t own, std::size_t all, std::size_t cores) noexcept;

 private:
  bool begun_ = false;
};

/// What other cores hand over to one core's listener. A connection that was taken is served or
/// closed: none is lost between the cores, also while one of them drains.
class Intake : Runnable {
 public:
  explicit Intake(Loop& loop) noexcept : Runnable(&rang), loop_(loop) {}

  /// Told on the loop's thread that take() has something, after it has been given.
  class Receiver {
   public:
    virtual void connections_came() = 0;

   protected:
    ~Receiver() = default;
  };

  // Any thread.

  /// What its core has, with what is on its way there.
  std::size_t load() const noexcept;
  bool is_open() const noexcept { return open_.load(std::memory_order_relaxed); }
  /// Whether it takes the connection over; else the caller keeps it.
  [[nodiscard]] bool give(Descriptor& connection);

  // The loop's thread.

  /// Whether `receiver` gets what is given from now on; else somebody does already.
  [[nodiscard]] bool open(Receiver& receiver);
  /// Nothing is given any more; what has been can still be taken.
  void shut();
  /// The same, and what nobody has taken is closed. The receiver is not told any more.
  void close();
  bool empty() const noexcept { return waiting_.load(std::memory_order_relaxed) == 0; }
  /// The oldest; empty where there is none.
  Descriptor take();

 private:
  friend class Balance;
  static void rang(Runnable& self);

  Loop& loop_;
  Receiver* receiver_ = nullptr;  // the loop's
  BalanceRule rule_;              // the loop's
  std::atomic<bool> open_{false};
  std::atomic<std::size_t> waiting_{0};
  std::mutex mutex_;  // guards what follows, and that nothing is given after shut()
  std::deque<Descriptor> given_;
  bool rung_ = false;  // it is on its way through the loop's inbox, where it may be but once
};

/// The listeners of a group's loops on one address. Threads: any, where nothing else is said.
/// Lifetime: outlives the loops.
class Balance {
 public:
  explicit Balance(std::span<Loop* const> loops);

  Intake& intake(unsigned core) noexcept { return *intakes_[core]; }
  /// Whether the connection that `core` has just accepted has been handed over. On that core's
  /// thread, whose intake is open.
  [[nodiscard]] bool hand_over(unsigned core, Descriptor& connection);

 private:
  std::vector<std::unique_ptr<Intake>> intakes_;  // by core
};

}  // namespace weir
