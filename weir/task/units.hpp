// A number of units that tasks take and give back: what semaphores and mutexes are made of.
#pragma once

#include <cassert>
#include <cstddef>
#include <utility>

#include "weir/task/detail/wait.hpp"

namespace weir::detail {

/// Threads: its loop's. Lifetime: longer than every wait for it (asserted).
class Units {
 public:
  explicit Units(std::size_t free) noexcept : free_(free) {}
  Units(const Units&) = delete;
  Units& operator=(const Units&) = delete;

  std::size_t free() const noexcept { return free_; }

  /// No, as long as somebody waits: nobody is overtaken.
  bool try_take(std::size_t count) noexcept {
    if (count > free_ || !waiting_.empty()) return false;
    free_ -= count;
    return true;
  }
  void give(std::size_t count) {
    assert(free_ + count >= count);
    free_ += count;
    if (!waiting_.empty()) grant_waiting();
  }

  /// The part of a wait for units that does not depend on what they stand for.
  class Take : public QueuedWait {
   public:
    Take(Units& units, std::size_t count) noexcept : units_(units), count_(count) {}
    bool ready() noexcept { return units_.try_take(count_); }
    bool begin(Loop&) noexcept {
      units_.waiting_.push_back(*this);
      return true;
    }
    void withdraw() noexcept { unlink(); }
    /// Those behind may need fewer units than this one did.
    void withdrawn() { units_.grant_waiting(); }

   protected:
    Units& units() const noexcept { return units_; }
    std::size_t count() const noexcept { return count_; }

   private:
    friend class Units;
    Units& units_;
    std::size_t count_;
  };

 private:
  void grant_waiting();

  std::size_t free_;
  WaitQueue<Take> waiting_;
};

/// Units in somebody's hands: given back when it is destroyed or released. A moved-from one has
/// none. Threads: the loop's. Lifetime: the units outlive it.
class UnitsHold {
 public:
  UnitsHold() noexcept = default;
  UnitsHold(Units& units, std::size_t count) noexcept : units_(&units), count_(count) {}
  UnitsHold(UnitsHold&& other) noexcept
      : units_(std::exchange(other.units_, nullptr)), count_(other.count_) {}
  UnitsHold& operator=(UnitsHold&& other) noexcept {
    UnitsHold before(std::move(other));  // gives back what this one held
    std::swap(units_, before.units_);
    std::swap(count_, before.count_);
    return *this;
  }
  ~UnitsHold() { release(); }

  bool holds() const noexcept { return units_ != nullptr; }
  std::size_t count() const noexcept { return holds() ? count_ : 0; }
  void release() {
    if (Units* const units = std::exchange(units_, nullptr)) units->give(count_);
  }
  void forget() noexcept { units_ = nullptr; }

 private:
  Units* units_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace weir::detail
