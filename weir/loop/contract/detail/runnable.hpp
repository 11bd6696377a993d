// Runnable, the unit of work of a loop, and its intrusive first-in first-out queue.
#pragma once

#include <cassert>
#include <utility>

namespace weir::loop {

/// A Runnable is a callback that a loop runs once. It lives in the object that waits, mostly the
/// frame of a coroutine.
/// Threads: those of the queue that holds it.
/// Lifetime: neither copied nor moved while queued.
class Runnable {
 public:
  using Function = void (*)(Runnable&);

  explicit Runnable(Function function) noexcept : run_(function) {}
  Runnable(const Runnable&) = delete;
  Runnable& operator=(const Runnable&) = delete;

  void run() { run_(*this); }
  /// Returns the address of the function that run() calls, to name it in logs.
  const void* function() const noexcept { return reinterpret_cast<const void*>(run_); }

 protected:
  ~Runnable() = default;

 private:
  friend class RunQueue;
  friend class Inbox;
  Function run_;
  Runnable* next_ = nullptr;
};

/// An intrusive first-in first-out queue.
/// Threads: one at a time.
class RunQueue {
 public:
  bool empty() const noexcept { return first_ == nullptr; }

  void push(Runnable& runnable) noexcept {
    assert(runnable.next_ == nullptr && last_ != &runnable);
    (last_ == nullptr ? first_ : last_->next_) = &runnable;
    last_ = &runnable;
  }

  Runnable* pop() noexcept {
    Runnable* runnable = first_;
    if (runnable == nullptr) return nullptr;
    first_ = std::exchange(runnable->next_, nullptr);
    if (first_ == nullptr) last_ = nullptr;
    return runnable;
  }

  /// Removes and returns everything that is queued now, in order.
  RunQueue take() noexcept {
    RunQueue taken;
    taken.first_ = std::exchange(first_, nullptr);
    taken.last_ = std::exchange(last_, nullptr);
    return taken;
  }

 private:
  friend class Inbox;
  Runnable* first_ = nullptr;
  Runnable* last_ = nullptr;
};

}  // namespace weir::loop
