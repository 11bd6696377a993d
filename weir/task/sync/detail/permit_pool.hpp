// A PermitPool is a number of permits that tasks take and give back, for semaphores and mutexes.
#pragma once

#include <cassert>
#include <cstddef>
#include <utility>

#include "weir/task/detail/wait.hpp"

namespace weir::detail {

/// A PermitPool counts the free permits and queues the waits for permits.
/// Threads: its loop's.
/// Lifetime: it outlives every wait for it (asserted).
class PermitPool {
 public:
  explicit PermitPool(std::size_t available) noexcept : available_(available) {}
  PermitPool(const PermitPool&) = delete;
  PermitPool& operator=(const PermitPool&) = delete;

  std::size_t available() const noexcept { return available_; }

  /// Returns true if it took `count` permits; false if fewer are free or if a task waits, since
  /// no task overtakes a waiter.
  bool try_acquire(std::size_t count) noexcept {
    if (count > available_ || !waiting_.empty()) return false;
    available_ -= count;
    return true;
  }
  void release(std::size_t count) {
    assert(available_ + count >= count);
    available_ += count;
    if (!waiting_.empty()) grant_waiters();
  }

  /// A PermitWait is the part of a wait for permits that does not depend on their use.
  class PermitWait : public QueuedWait {
   public:
    PermitWait(PermitPool& permits, std::size_t count) noexcept
        : permits_(permits), count_(count) {}
    bool ready() noexcept { return permits_.try_acquire(count_); }
    bool begin(Loop&) noexcept {
      permits_.waiting_.push_back(*this);
      return true;
    }
    void withdraw() noexcept { unlink(); }
    /// Grants the waiters behind this one, which may need fewer permits.
    void on_withdrawn() { permits_.grant_waiters(); }

   protected:
    PermitPool& permits() const noexcept { return permits_; }
    std::size_t count() const noexcept { return count_; }

   private:
    friend class PermitPool;
    PermitPool& permits_;
    std::size_t count_;
  };

 private:
  void grant_waiters();

  std::size_t available_;
  WaitQueue<PermitWait> waiting_;
};

/// A PermitGuard holds permits and gives them back when it is destroyed or released. A moved-from
/// guard holds none.
/// Threads: the loop's.
/// Lifetime: the permit pool outlives it.
class PermitGuard {
 public:
  PermitGuard() noexcept = default;
  PermitGuard(PermitPool& permits, std::size_t count) noexcept
      : permits_(&permits), count_(count) {}
  PermitGuard(PermitGuard&& other) noexcept
      : permits_(std::exchange(other.permits_, nullptr)), count_(other.count_) {}
  PermitGuard& operator=(PermitGuard&& other) noexcept {
    PermitGuard before(std::move(other));  // gives back the permits of this guard
    std::swap(permits_, before.permits_);
    std::swap(count_, before.count_);
    return *this;
  }
  ~PermitGuard() { release(); }

  bool owns() const noexcept { return permits_ != nullptr; }
  std::size_t count() const noexcept { return owns() ? count_ : 0; }
  void release() {
    if (PermitPool* const permits = std::exchange(permits_, nullptr)) permits->release(count_);
  }
  void forget() noexcept { permits_ = nullptr; }

 private:
  PermitPool* permits_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace weir::detail
