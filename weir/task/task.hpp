// Task<T>: a coroutine that may wait.
#pragma once

#include <cassert>
#include <concepts>
#include <coroutine>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/task/detail/promise.hpp"

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13 && !defined(WEIR_KNOWS_GCC_12)
#pragma message(                                                                            \
    "Weir: GCC 12 destroys some temporaries twice that are made in a co_await expression. " \
    "docs/gcc-12.md (installed: share/doc/weir) says which, and what to write instead; "    \
    "define WEIR_KNOWS_GCC_12 when you know")
#endif

namespace weir {

// Whether a coroutine that hands over to another leaves nothing on the stack. GCC does that only
// when it optimises (-O2) and no sanitizer keeps the frames; elsewhere a loop over tasks that
// finish at once would overflow the stack, so there a task is started by a call instead.
#if defined(__clang__) || \
    (defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__))
inline constexpr bool transfers_are_tail_calls = true;
#else
inline constexpr bool transfers_are_tail_calls = false;
#endif

/// A coroutine that returns a T and may wait on the way. Lazy: it runs when it is awaited (or
/// spawned in a Scope), on the loop of who awaits it, and under its cancellation. Await it once:
/// `T value = co_await std::move(task)`, or directly the call that returns it. What it throws is
/// thrown at the co_await.
/// Threads: those of one loop from its start to its end; it may be made on another thread.
/// Lifetime: a task that was never started may be dropped; one that runs is owned by whoever
/// awaits it and finishes first. Parameters by reference must live until its end.
/// Cancel: passed on to what it waits for; it goes on with the errors that come from there.
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

  class Awaiter : protected Completion {
   public:
    explicit Awaiter(Handle task) noexcept : Awaiter(task, &completed) {}

    bool await_ready() const noexcept { return false; }
    template <HasContext P>
    auto await_suspend(std::coroutine_handle<P> parent) {
      return begin(parent, parent.promise().context());
    }
    T await_resume() { return task_.promise().take(); }

   protected:
    Awaiter(Handle task, Function completed) noexcept : Completion(completed), task_(task) {}

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
    static std::coroutine_handle<> completed(Completion& self, std::coroutine_handle<>) {
      auto& awaiter = static_cast<Awaiter&>(self);
      if (!transfers_are_tail_calls && awaiter.starting_) return std::noop_coroutine();
      return Running::go_on(awaiter.parent_);
    }
    std::coroutine_handle<> parent() const noexcept { return parent_; }

   private:
    Handle task_;
    std::coroutine_handle<> parent_;
    bool starting_ = false;
  };

  Awaiter operator co_await() && noexcept {
    assert(handle_ && !handle_.done());
    return Awaiter(handle_);
  }

  /// For what runs tasks: starts it outside a coroutine; `completion` is told of the end, maybe
  /// inside this call.
  void start(const Context& context, Completion& completion) {
    const Running::Working working(context.unit());
    handle_.promise().begin(context, completion);
    Running::resume(handle_);
  }
  /// For what runs tasks: the caller destroys the frame from now on.
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

/// `co_await in_context(context, task)`: runs it under another cancellation (or none: a shield).
/// Cancel: whatever `context` says; the awaiting task's own cancellation does not reach it.
template <class T>
class in_context {
  /// Who awaits may work for somebody else than the task does.
  class Awaiter : public Task<T>::Awaiter {
    using Base = typename Task<T>::Awaiter;

   public:
    Awaiter(typename Task<T>::Handle task, const Context& context) noexcept
        : Base(task, &completed_elsewhere), context_(context) {}
    template <HasContext P>
    auto await_suspend(std::coroutine_handle<P> parent) {
      Running::work_for(context_.unit());
      return Base::begin(parent, context_);
    }

   private:
    static std::coroutine_handle<> completed_elsewhere(Completion& self,
                                                       std::coroutine_handle<> finished) {
      Running::work_for(ContextHolder::of(static_cast<Awaiter&>(self).parent()).unit());
      return Base::completed(self, finished);
    }
    const Context& context_;  // the in_context's, which lives until its task has ended
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

/// Everything that can be awaited in a Task but is none, such as `stream.read()`.
template <class A>
concept Awaitable = !is_task<A> && std::move_constructible<A> &&
                    requires(A& a) { detail::awaiter_of(std::move(a)).await_ready(); };

/// What awaiting an A gives.
template <class A>
using AwaitResult = decltype(detail::awaiter_of(std::declval<A>()).await_resume());

/// The same as a Task. Cancel: as the awaitable.
template <class T>
Task<T> as_task(Task<T> task) {
  return task;
}
template <Awaitable A>
Task<AwaitResult<A>> as_task(A awaitable) {
  co_return co_await std::move(awaitable);
}

}  // namespace weir
