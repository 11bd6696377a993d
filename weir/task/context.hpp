// What a coroutine knows of its surroundings: its loop and who may cancel it.
#pragma once

#include <cassert>
#include <concepts>
#include <coroutine>

#include "weir/loop/loop.hpp"
#include "weir/task/cancel.hpp"

namespace weir {

/// Rides in every task's promise: awaitables take it from the awaiting task, a task from whoever
/// awaits or spawns it.
struct Context {
  Loop* loop = nullptr;
  CancelSource* cancel = nullptr;  ///< nullptr: cannot be cancelled

  bool cancelled() const noexcept { return cancel != nullptr && cancel->cancelled(); }
  /// For whom it works; what is shielded from cancellation works for nobody in particular.
  const WorkUnit* unit() const noexcept { return cancel == nullptr ? nullptr : cancel->unit(); }
};

/// What the promise of every coroutine begins with that Weir's awaitables can be awaited in.
class ContextHolder {
 public:
  const Context& context() const noexcept { return context_; }
  /// That of such a coroutine, whatever else its promise has.
  static const Context& of(std::coroutine_handle<> coroutine) noexcept {
    return std::coroutine_handle<ContextHolder>::from_address(coroutine.address())
        .promise()
        .context_;
  }

 protected:
  Context context_;
};

/// A coroutine type that Weir's awaitables can be awaited in: ContextHolder is the first base of
/// its promise. Where a promise begins in a frame depends on its alignment, and on that alone.
template <class Promise>
concept HasContext =
    std::derived_from<Promise, ContextHolder> && alignof(Promise) <= 2 * sizeof(void*);

/// Goes on with a suspended coroutine on behalf of the runnable that is running, for whom it works.
inline void go_on_with(std::coroutine_handle<> coroutine) {
  Running::work_for(ContextHolder::of(coroutine).unit());
  Running::resume(coroutine);
}

/// A suspended coroutine that is resumed from its loop's ready queue. Base of awaiters.
class Waiter : public Runnable {
 public:
  Waiter() noexcept
      : Runnable([](Runnable& self) { go_on_with(static_cast<Waiter&>(self).handle_); }) {}

 protected:
  ~Waiter() = default;
  template <HasContext Promise>
  void wait_in(std::coroutine_handle<Promise> handle) noexcept {
    handle_ = handle;
    context_ = handle.promise().context();
    assert(&ContextHolder::of(handle) == &handle.promise().context() && "not its first base");
  }
  /// Resumes the coroutine in its loop's next round. Only on the loop's thread.
  void resume_later() noexcept { context_.loop->ready(*this); }
  const Context& context() const noexcept { return context_; }

 private:
  std::coroutine_handle<> handle_;
  Context context_;
};

/// See this_context().
class [[nodiscard]] ThisContext {
 public:
  ThisContext() noexcept {}
  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    context_ = handle.promise().context();
    return false;
  }
  Context await_resume() const noexcept { return context_; }

 private:
  Context context_;
};

/// See yield().
class [[nodiscard]] Yield : public Waiter {
 public:
  Yield() noexcept {}
  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    wait_in(handle);
    resume_later();
  }
  void await_resume() const noexcept {}
};

/// `co_await this_context()`: the context of the awaiting task; does not suspend.
/// Cancel: not affected.
inline ThisContext this_context() noexcept {
  return ThisContext();
}

/// `co_await yield()`: lets everything else that is ready on this loop run first.
/// Cancel: not affected; it returns in the next round anyway.
inline Yield yield() noexcept {
  return Yield();
}

}  // namespace weir
