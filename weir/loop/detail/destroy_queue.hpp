// Queue through which other threads return objects to their loop, which destroys them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weir/loop/detail/cross_core_queue.hpp"

namespace weir {
class Loop;
}  // namespace weir

namespace weir::loop {

/// A DestroyQueue takes objects of a loop that were released on other threads. Each object keeps
/// the queue alive and may outlive the loop. An object that outlives its loop is destroyed on the
/// thread that releases it.
/// Threads: any, except close().
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

  explicit DestroyQueue(Loop& loop) noexcept
      : loop_(loop),
        returned_([](void* self, Loop&) { static_cast<DestroyQueue*>(self)->destroy_returned(); },
                  this) {}
  ~DestroyQueue() = default;
  void add_reference() noexcept;
  void remove_reference() noexcept;
  bool push(Destroyable& item) noexcept;
  void destroy_returned() noexcept;

  using Returned = CrossCoreQueue<Destroyable, &Destroyable::next_>;

  Loop& loop_;                                       // valid until close()
  std::atomic<std::size_t> references_{1};           // the loop and the destroyable objects
  std::atomic<std::size_t> producers_in_flight_{0};  // foreign threads that may still use the loop
  Returned returned_;
  std::uint64_t turn_ = UINT64_MAX;  // last turn in which destroy_returned() ran
  unsigned budget_ = 0;              // objects left to destroy in that turn
};

}  // namespace weir::loop
