// Queue through which other threads return objects to their loop, which destroys them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weir/loop/contract/detail/runnable.hpp"
#include "weir/loop/detail/timers.hpp"

namespace weir {

class Loop;

/// A DestroyQueue takes objects of a loop that were released on other threads. Each object keeps
/// the queue alive and may outlive the loop. An object that outlives its loop is destroyed on the
/// thread that releases it.
/// Threads: any, except close() and the wakeup task.
class DestroyQueue {
 public:
  /// An object that is destroyed on the thread of its loop.
  class Destroyable {
   public:
    /// Destroys the object and frees its memory.
    using Destroy = void (*)(Destroyable&) noexcept;
    Destroyable(DestroyQueue& queue, Destroy destroy) noexcept : queue_(queue), destroy_(destroy) {
      queue.add_reference();
    }
    Destroyable(const Destroyable&) = delete;
    Destroyable& operator=(const Destroyable&) = delete;

    /// Destroys the object immediately if this thread runs a turn of the owner loop, or if that
    /// loop no longer exists. Otherwise the owner loop destroys its objects in the order of the
    /// calls, at most 1024 per turn. Call it exactly once.
    /// Threads: any.
    void destroy_on_owner() noexcept;

   protected:
    ~Destroyable() { queue_.remove_reference(); }

   private:
    friend class DestroyQueue;
    DestroyQueue& queue_;
    Destroy destroy_;
    Destroyable* next_ = nullptr;
  };

  /// Creates the queue of `loop`. The reference of the loop ends with close().
  static DestroyQueue& make(Loop& loop) { return *new DestroyQueue(loop); }

  /// Destroys the returned objects and accepts no more. Call it on the thread of the loop, or
  /// after the loop has run.
  void close() noexcept;

 private:
  /// Limit of objects destroyed per turn.
  static constexpr unsigned destroys_per_turn = 1024;

  explicit DestroyQueue(Loop& loop) noexcept : loop_(loop) {}
  ~DestroyQueue() = default;
  void add_reference() noexcept;
  void remove_reference() noexcept;
  bool push(Destroyable& item) noexcept;
  void notify() noexcept;
  void take_returned(Destroyable* newest) noexcept;
  void destroy_returned() noexcept;

  struct WakeupTask : Runnable {
    explicit WakeupTask(DestroyQueue& owner) noexcept
        : Runnable([](Runnable& self) { static_cast<WakeupTask&>(self).queue.destroy_returned(); }),
          queue(owner) {}
    DestroyQueue& queue;
  };
  /// Notifies the loop for the next turn when this turn ends.
  struct TurnEnd : Timer {
    explicit TurnEnd(DestroyQueue& owner) noexcept
        : Timer([](Timer& self) { static_cast<TurnEnd&>(self).queue.notify(); }), queue(owner) {}
    DestroyQueue& queue;
  };

  Loop& loop_;                                   // valid until close()
  std::atomic<std::size_t> references_{1};       // the loop and the destroyable objects
  std::atomic<Destroyable*> returned_{nullptr};  // newest first
  std::atomic<bool> notified_{false};  // true while wakeup_ is in the inbox or about to be
  std::atomic<std::size_t> producers_in_flight_{0};  // foreign threads that may still use the loop
  Destroyable* first_ = nullptr;  // taken and not yet destroyed; used only by the loop
  Destroyable* last_ = nullptr;
  std::uint64_t turn_ = UINT64_MAX;  // last turn in which the wakeup task ran
  unsigned budget_ = 0;              // objects left to destroy in that turn
  WakeupTask wakeup_{*this};
  TurnEnd turn_end_{*this};
};

}  // namespace weir
