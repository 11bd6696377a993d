// Batches: what one core sends to another, many at a time, for one wake-up.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "weir/loop/loop.hpp"

namespace weir::wiring {

/// Values on their way to a loop, in order per sender. `receive(batch)` is called there.
/// Threads: send() any; the rest is the loop's. Lifetime: destroyed when nothing is on its way and
/// no sender is inside.
template <class T>
class Batches : Runnable {
 public:
  using Receive = void (*)(void* receiver, std::vector<T>& batch);
  Batches(Loop& to, Receive receive, void* receiver) noexcept
      : Runnable(&run), to_(to), receive_(receive), receiver_(receiver) {}
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  /// All of `batch`, which is empty then.
  void send(std::vector<T>& batch) {
    if (batch.empty()) return;
    bool ring = false;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) {
        waiting_.swap(batch);
        ring = true;
      } else {
        for (T& each : batch) waiting_.push_back(std::move(each));
        batch.clear();
      }
    }
    if (ring) to_.post(*this);
  }

 private:
  static void run(Runnable& self) {
    auto& batches = static_cast<Batches&>(self);
    std::vector<T> taken;
    {
      const std::lock_guard lock(batches.mutex_);
      taken.swap(batches.waiting_);
    }
    batches.receive_(batches.receiver_, taken);
  }

  Loop& to_;
  Receive receive_;
  void* receiver_;
  std::mutex mutex_;
  std::vector<T> waiting_;
};

}  // namespace weir::wiring
