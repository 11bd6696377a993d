// Waiting for a loop to be asked to drain, and being cancelled by that.
#pragma once

#include "weir/loop/loop.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/context.hpp"

namespace weir::wiring {

/// `co_await Drain()`: returns when this task's loop drains, or the task is cancelled.
/// Cancel: returns in the loop's next round.
class [[nodiscard]] Drain : Waiter, CancelNode, DrainWatcher {
 public:
  Drain() noexcept : CancelNode(&cancelled), DrainWatcher(&asked) {}

  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    wait_in(handle);
    if (context().loop->draining() || context().cancelled()) return false;
    context().loop->watch_drain(*this);
    if (context().cancel != nullptr) context().cancel->add(*this);
    return true;
  }
  void await_resume() const noexcept {}

 private:
  static void asked(DrainWatcher& watcher) {
    auto& self = static_cast<Drain&>(watcher);
    static_cast<CancelNode&>(self).unlink();
    self.resume_later();
  }
  static void cancelled(CancelNode& node) {
    auto& self = static_cast<Drain&>(node);
    static_cast<DrainWatcher&>(self).unlink();
    self.resume_later();
  }
};

/// What is under it is cancelled when its loop drains, and with what it is under itself.
/// Threads: the loop's. Lifetime: outlives what runs in its context().
class UntilDrain : DrainWatcher {
 public:
  explicit UntilDrain(const Context& outside)
      : DrainWatcher(&asked), source_(outside.cancel), loop_(*outside.loop) {
    if (loop_.draining()) {
      source_.cancel();
    } else {
      loop_.watch_drain(*this);
    }
  }
  Context context() noexcept { return {&loop_, &source_}; }

 private:
  static void asked(DrainWatcher& self) { static_cast<UntilDrain&>(self).source_.cancel(); }

  CancelSource source_;
  Loop& loop_;
};

}  // namespace weir::wiring
