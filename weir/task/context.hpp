// A Context holds the loop and the cancellation source of a coroutine.
#pragma once

#include <cassert>
#include <concepts>
#include <coroutine>

#include "weir/loop/loop.hpp"
#include "weir/task/cancel.hpp"

namespace weir {

class Continuation;

/// A Context is part of every task's promise. An awaitable takes it from the awaiting task. A
/// task takes it from the code that awaits or spawns it.
struct Context {
  Loop* loop = nullptr;
  CancelSource* cancel = nullptr;  ///< nullptr if the task cannot be cancelled

  bool cancelled() const noexcept { return cancel != nullptr && cancel->cancelled(); }
  /// Returns the trace of the work that the task belongs to. It is nullptr for a task that is
  /// shielded from cancellation.
  const TraceContext* trace() const noexcept {
    return cancel == nullptr ? nullptr : cancel->trace();
  }
};

/// A ContextHolder is the first base of the promise of every coroutine that can await Weir's
/// awaitables.
class ContextHolder {
 public:
  const Context& context() const noexcept { return context_; }
  /// Returns the context of a `coroutine` whose promise begins with a ContextHolder.
  static const Context& of(std::coroutine_handle<> coroutine) noexcept {
    return std::coroutine_handle<ContextHolder>::from_address(coroutine.address())
        .promise()
        .context_;
  }
  /// Returns what runs at the end of a `coroutine` whose promise begins with a ContextHolder.
  /// nullptr if the coroutine is not a task that has begun.
  static const Continuation* continuation_of(std::coroutine_handle<> coroutine) noexcept {
    return std::coroutine_handle<ContextHolder>::from_address(coroutine.address())
        .promise()
        .continuation_;
  }

 protected:
  Context context_;
  Continuation* continuation_ = nullptr;
};

/// HasContext holds for the promise of a coroutine that can await Weir's awaitables. ContextHolder
/// is its first base. The position of a promise in its frame depends only on its alignment, so the
/// alignment is limited.
template <class Promise>
concept HasContext =
    std::derived_from<Promise, ContextHolder> && alignof(Promise) <= 2 * sizeof(void*);

/// Resumes a suspended coroutine inside the running runnable, and sets the current trace to the
/// trace of the coroutine.
inline void resume_coroutine(std::coroutine_handle<> coroutine) {
  loop::CurrentActivity::set_trace(ContextHolder::of(coroutine).trace());
  loop::CurrentActivity::resume(coroutine);
}

/// A Waiter is a base of awaiters. It resumes the suspended coroutine from the ready queue of its
/// loop.
class Waiter : public loop::Runnable {
 public:
  Waiter() noexcept
      : loop::Runnable(
            [](loop::Runnable& self) { resume_coroutine(static_cast<Waiter&>(self).handle_); }) {}

 protected:
  ~Waiter() = default;
  template <HasContext Promise>
  void set_coroutine(std::coroutine_handle<Promise> handle) noexcept {
    handle_ = handle;
    assert(&ContextHolder::of(handle) == &handle.promise().context() && "not its first base");
  }
  /// Resumes the coroutine from its loop's ready queue.
  /// Threads: the loop's.
  void resume_later() noexcept { context().loop->ready(*this); }
  /// Returns the context of the coroutine, after set_coroutine().
  const Context& context() const noexcept { return ContextHolder::of(handle_); }
  std::coroutine_handle<> coroutine() const noexcept { return handle_; }

 private:
  std::coroutine_handle<> handle_;
};

/// A CancellableWaiter is a Waiter that the cancellation of its task interrupts.
class CancellableWaiter : public Waiter, protected CancelNode {
 protected:
  /// `kind` is a waiting_kind(). Its function is called when the source of the task is cancelled
  /// after join().
  explicit CancellableWaiter(const CancelNode::Kind& kind) noexcept : CancelNode(kind) {}
  ~CancellableWaiter() = default;
  /// Returns the kind of a waiter for `awaits`, a text such as "sleep".
  static constexpr CancelNode::Kind waiting_kind(CancelNode::Function on_cancel,
                                                 std::string_view awaits) noexcept {
    return {on_cancel, awaits, [](const CancelNode& node) {
              return static_cast<const CancellableWaiter&>(node).coroutine();
            }};
  }

  /// Joins the source of the task; see CancelNode::join().
  [[nodiscard]] bool join() noexcept { return CancelNode::join(context().cancel); }
  /// Leaves the source and resumes the coroutine from its loop's ready queue.
  /// Threads: the loop's.
  void resume_later() noexcept {
    leave();
    Waiter::resume_later();
  }
};

/// The awaitable of this_context().
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

/// The awaitable of yield().
class [[nodiscard]] Yield : public Waiter {
 public:
  Yield() noexcept {}
  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    set_coroutine(handle);
    resume_later();
  }
  void await_resume() const noexcept {}
};

namespace detail {

/// `co_await ThisCoroutine()` returns the handle of the awaiting coroutine; it does not suspend.
/// Cancel: not affected.
class [[nodiscard]] ThisCoroutine {
 public:
  ThisCoroutine() noexcept {}
  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    handle_ = handle;
    return false;
  }
  std::coroutine_handle<> await_resume() const noexcept { return handle_; }

 private:
  std::coroutine_handle<> handle_;
};

}  // namespace detail

/// `co_await this_context()` returns the context of the awaiting task; it does not suspend.
/// Cancel: not affected.
inline ThisContext this_context() noexcept {
  return ThisContext();
}

/// `co_await yield()` lets everything else that is ready on this loop run first.
/// Cancel: not affected.
inline Yield yield() noexcept {
  return Yield();
}

}  // namespace weir
