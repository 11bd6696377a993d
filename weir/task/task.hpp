// A Task<T> is a coroutine that may wait.
#pragma once

#include <cassert>
#include <concepts>
#include <coroutine>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/task/detail/promise.hpp"

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13 && !defined(WEIR_KNOWS_GCC_12)
#pragma message(                                                                             \
    "Weir: GCC 12 destroys some temporaries of a co_await expression twice. docs/gcc-12.md " \
    "(installed: share/doc/weir) lists these expressions and their replacements; define "    \
    "WEIR_KNOWS_GCC_12 to silence this note")
#endif

namespace weir {

// True if a transfer from one coroutine to another leaves nothing on the stack. GCC does this
// only when it optimises (-O2) and no sanitizer keeps the frames. Otherwise a loop over tasks
// that finish immediately would overflow the stack, so an awaiter calls resume() to start a task.
#if defined(__clang__) || \
    (defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__))
inline constexpr bool transfers_are_tail_calls = true;
#else
inline constexpr bool transfers_are_tail_calls = false;
#endif

/// A Task is a coroutine that returns a T and may wait. It is lazy: it runs when a coroutine
/// awaits it or a Scope spawns it. It runs on the loop of the awaiting coroutine and under its
/// cancellation. A task is awaited once: `T value = co_await std::move(task)`, or directly the
/// call that returns it. The co_await throws what the task throws.
/// Cancel: passed to what the task awaits; the task continues with the errors that it gets there.
/// Threads: those of one loop from its start to its end; a task may be made on another thread.
/// Lifetime: a task that was never started may be dropped. The code that awaits a running
/// task owns it and outlives it. Parameters by reference must live until the end of the task.
template <class T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  class Awaiter : protected Continuation {
   public:
    explicit Awaiter(Handle task) noexcept : Awaiter(task, awaited_kind) {}

    bool await_ready() const noexcept { return false; }
    template <HasContext P>
    auto await_suspend(std::coroutine_handle<P> parent) {
      return begin(parent, parent.promise().context());
    }
    T await_resume() { return task_.promise().take(); }

   protected:
    Awaiter(Handle task, const Kind& kind) noexcept : Continuation(kind), task_(task) {}

    auto begin(std::coroutine_handle<> parent, const Context& context) {
      parent_ = parent;
      task_.promise().begin(context, *this);
      if constexpr (transfers_are_tail_calls) {
        return task_;
      } else {
        starting_ = true;
        task_.resume();
        starting_ = false;
        return !task_.done();
      }
    }
    static std::coroutine_handle<> completed(Continuation& self, std::coroutine_handle<>) {
      auto& awaiter = static_cast<Awaiter&>(self);
      if (!transfers_are_tail_calls && awaiter.starting_) return std::noop_coroutine();
      return loop::CurrentActivity::transfer_to(awaiter.parent_);
    }
    std::coroutine_handle<> parent() const noexcept { return parent_; }
    static std::coroutine_handle<> parent_of(const Continuation& self) noexcept {
      return static_cast<const Awaiter&>(self).parent_;
    }

   private:
    static constexpr Kind awaited_kind{&completed, &parent_of};
    Handle task_;
    std::coroutine_handle<> parent_;
    bool starting_ = false;
  };

  Awaiter operator co_await() && noexcept {
    assert(handle_ && !handle_.done());
    return Awaiter(handle_);
  }

  /// Starts the task outside a coroutine. It calls `continuation` at the end of the task,
  /// possibly during this call. Only code that runs tasks uses it.
  void start(const Context& context, Continuation& continuation) {
    const loop::CurrentActivity::TraceGuard trace_guard(context.trace());
    handle_.promise().begin(context, continuation);
    loop::CurrentActivity::resume(handle_);
  }
  /// Gives up the frame, which the caller destroys from now on. Only code that runs tasks uses
  /// it.
  Handle release() noexcept { return std::exchange(handle_, nullptr); }
  Handle handle() const noexcept { return handle_; }

 private:
  friend promise_type;
  explicit Task(Handle handle) noexcept : handle_(handle) {}
  Handle handle_;
};

template <class T>
Task<T> Promise<T>::get_return_object() noexcept {
  return Task<T>(Task<T>::Handle::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() noexcept {
  return Task<void>(Task<void>::Handle::from_promise(*this));
}

/// `co_await in_context(context, task)` runs a task under another cancellation, or under none (a
/// shield).
/// Cancel: `context.cancel` cancels `task`; a cancellation of the awaiting task does not reach it.
template <class T>
class in_context {
  /// The awaiting coroutine may have another trace than the task.
  class Awaiter : public Task<T>::Awaiter {
    using Base = typename Task<T>::Awaiter;

   public:
    Awaiter(typename Task<T>::Handle task, const Context& context) noexcept
        : Base(task, elsewhere_kind), context_(context) {}
    template <HasContext P>
    auto await_suspend(std::coroutine_handle<P> parent) {
      loop::CurrentActivity::set_trace(context_.trace());
      return Base::begin(parent, context_);
    }

   private:
    static std::coroutine_handle<> completed_elsewhere(Continuation& self,
                                                       std::coroutine_handle<> finished) {
      loop::CurrentActivity::set_trace(
          ContextHolder::of(static_cast<Awaiter&>(self).parent()).trace());
      return Base::completed(self, finished);
    }
    static constexpr Continuation::Kind elsewhere_kind{&completed_elsewhere, &Base::parent_of};
    const Context& context_;  // member of the in_context, which outlives its task
  };

 public:
  in_context(const Context& context, Task<T> task) noexcept
      : context_(context), task_(std::move(task)) {}
  Awaiter operator co_await() && noexcept { return Awaiter(task_.handle(), context_); }

 private:
  Context context_;
  Task<T> task_;
};

/// The T of a Task<T>.
template <class TaskType>
using TaskValue = decltype(std::declval<typename TaskType::promise_type&>().take());

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<Task<T>> = true;

namespace detail {
template <class A>
decltype(auto) awaiter_of(A&& awaitable) {
  if constexpr (requires { std::forward<A>(awaitable).operator co_await(); }) {
    return std::forward<A>(awaitable).operator co_await();
  } else {
    return std::forward<A>(awaitable);
  }
}
}  // namespace detail

/// An Awaitable can be awaited in a Task but is not a Task, such as `stream.read()`.
template <class A>
concept Awaitable = !is_task<A> && std::move_constructible<A> &&
                    requires(A& a) { detail::awaiter_of(std::move(a)).await_ready(); };

/// The type of the result of awaiting an A.
template <class A>
using AwaitResult = decltype(detail::awaiter_of(std::declval<A>()).await_resume());

/// Turns an awaitable into a Task.
/// Cancel: the behaviour of the awaitable.
template <class T>
Task<T> as_task(Task<T> task) {
  return task;
}
template <Awaitable A>
Task<AwaitResult<A>> as_task(A awaitable) {
  co_return co_await std::move(awaitable);
}

}  // namespace weir
