// What a loop runs next: an intrusive first-in first-out queue of things to run.
#pragma once

#include <cassert>
#include <utility>

namespace weir {

/// Something that a loop can run once; it lives in whatever waits (a coroutine's frame, mostly).
/// Neither copied nor moved while queued. Threads: those of the queue it is in.
class Runnable {
 public:
  using Function = void (*)(Runnable&);

  explicit Runnable(Function function) noexcept : run_(function) {}
  Runnable(const Runnable&) = delete;
  Runnable& operator=(const Runnable&) = delete;

  void run() { run_(*this); }
  /// What run() calls, to name it.
  const void* function() const noexcept { return reinterpret_cast<const void*>(run_); }

 protected:
  ~Runnable() = default;

 private:
  friend class RunQueue;
  friend class Inbox;
  Function run_;
  Runnable* next_ = nullptr;
};

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

  /// Takes everything that is queued now, in order.
  RunQueue take() noexcept {
    RunQueue taken;
    taken.first_ = std::exchange(first_, nullptr);
    taken.last_ = std::exchange(last_, nullptr);
    return taken;
  }

 private:
  Runnable* first_ = nullptr;
  Runnable* last_ = nullptr;
};

}  // namespace weir
