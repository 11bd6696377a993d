// Waits for a loop to drain, and cancels work when it drains.
#pragma once

#include "weir/loop/loop.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/context.hpp"

namespace weir::inject {

/// `co_await DrainAwaiter()` returns when this task's loop drains or the task is cancelled.
/// Cancel: resumes from the loop's ready queue.
class [[nodiscard]] DrainAwaiter : CancellableWaiter, DrainObserver {
 public:
  DrainAwaiter() noexcept : CancellableWaiter(drain_kind), DrainObserver(&on_drain) {}

  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    set_coroutine(handle);
    if (context().loop->draining() || !join()) return false;
    context().loop->observe_drain(*this);
    return true;
  }
  void await_resume() const noexcept {}

 private:
  static void on_drain(DrainObserver& watcher) {
    static_cast<DrainAwaiter&>(watcher).resume_later();
  }
  static void on_cancel(CancelNode& node) {
    auto& self = static_cast<DrainAwaiter&>(node);
    static_cast<DrainObserver&>(self).unlink();
    self.resume_later();
  }
  static constexpr Kind drain_kind = waiting_kind(&on_cancel, "drain");
};

/// A CancelOnDrain cancels the work below it when its loop drains. The cancellation of its parent
/// cancels that work too.
/// Threads: the loop's.
/// Lifetime: it outlives everything that runs in its context().
class CancelOnDrain : DrainObserver {
 public:
  explicit CancelOnDrain(const Context& parent)
      : DrainObserver(&on_drain), source_(parent.cancel), loop_(*parent.loop) {
    if (loop_.draining()) {
      source_.cancel();
    } else {
      loop_.observe_drain(*this);
    }
  }
  Context context() noexcept { return {&loop_, &source_}; }

 private:
  static void on_drain(DrainObserver& self) { static_cast<CancelOnDrain&>(self).source_.cancel(); }

  CancelSource source_;
  Loop& loop_;
};

}  // namespace weir::inject
