// Scopes own spawned tasks: spawning takes a Scope&, and leaving a scope waits for its tasks.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "weir/base/detail/counter.hpp"
#include "weir/task/task.hpp"

namespace weir {

/// The reaction of a scope to the failure of a child. A child fails if it throws, or if it is a
/// Task<Result<>> and returns an error.
enum class OnFailure : std::uint8_t {
  /// Cancels the body and the other children; the scope fails with the first failure. A child
  /// that returns Errc::cancelled after the scope was cancelled has not failed. The scope then
  /// returns Errc::cancelled if the cancellation came from outside.
  cancel_siblings,
  /// Logs and counts the failure; the body and the other children are not affected.
  isolate,
};

/// A Scope owns running children. with_scope() opens it and does not return before every child
/// has finished, on every path. A finished child is freed immediately.
/// Threads: its loop's.
/// Lifetime: spawn() is called only while the body or a child of the scope runs.
class Scope {
 public:
  Scope(const Context& parent, OnFailure policy) noexcept;
  /// Opens the scope of the coroutine `owner`, with its context.
  Scope(std::coroutine_handle<> owner, OnFailure policy) noexcept
      : Scope(ContextHolder::of(owner), policy) {
    owner_ = owner;
  }
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// Runs `child` until it first waits, then returns. The child continues on its own, under this
  /// scope's cancellation.
  void spawn(Task<> child);
  void spawn(Task<Result<>> child);
  template <Awaitable A>
  void spawn(A awaitable) {
    spawn(as_task(std::move(awaitable)));
  }

  /// Requests the cancellation of the body and all children.
  void cancel() { cancel_.cancel(); }
  bool cancelled() const noexcept { return cancel_.cancelled(); }

  std::size_t running() const noexcept { return running_; }
  std::uint64_t failures() const noexcept { return failures_; }
  Loop& loop() const noexcept { return *context_.loop; }
  /// Returns the context of the children.
  const Context& context() const noexcept { return context_; }

  /// Stores the first failure; cancels the scope if its policy is cancel_siblings. with_scope()
  /// calls it for a failure of the body.
  void record_failure(std::error_code error, const std::exception_ptr& exception);
  std::error_code first_error() const noexcept { return first_error_; }
  const std::exception_ptr& first_exception() const noexcept { return first_exception_; }

  /// `co_await scope.children_finished()` returns when no child is running.
  /// Cancel: not affected; it also waits for children that were cancelled.
  class ChildrenFinished {
   public:
    explicit ChildrenFinished(Scope& scope) noexcept : scope_(scope) {}
    bool await_ready() const noexcept { return scope_.running_ == 0; }
    template <HasContext Promise>
    void await_suspend(std::coroutine_handle<Promise> handle) noexcept {
      scope_.owner_ = handle;
      scope_.owner_waits_ = true;
    }
    void await_resume() const noexcept {}

   private:
    Scope& scope_;
  };
  ChildrenFinished children_finished() noexcept { return ChildrenFinished(*this); }

 private:
  template <class T>
  struct Children : Continuation {
    explicit Children(Scope& scope) noexcept : Continuation(child_kind), scope_(scope) {}
    static std::coroutine_handle<> completed(Continuation& self, std::coroutine_handle<> finished);
    static std::coroutine_handle<> owner_of(const Continuation& self) noexcept {
      return static_cast<const Children&>(self).scope_.owner_;
    }
    static constexpr Kind child_kind{&completed, &owner_of, "scope"};
    Scope& scope_;
  };
  void child_failed(std::error_code error, const std::exception_ptr& exception);
  std::coroutine_handle<> child_finished() noexcept;

  OnFailure policy_;
  bool owner_waits_ = false;  // for the end of the children
  CancelSource* parent_cancel_;
  CancelSource cancel_;
  Context context_;
  std::size_t running_ = 0;
  std::uint64_t failures_ = 0;
  std::coroutine_handle<> owner_;
  std::error_code first_error_;
  std::exception_ptr first_exception_;
  Children<void> void_children_;
  Children<Result<>> result_children_;
};

/// Returns a text for logs: the error's message, or a description of what was thrown.
std::string describe(std::error_code error, const std::exception_ptr& exception);

namespace detail {
template <class T>
struct ScopeValue {
  using type = Result<T>;
};
template <class T>
struct ScopeValue<Result<T>> {
  using type = Result<T>;
};
}  // namespace detail

/// Runs `body(scope, args...)`, a function that returns a Task, then waits for the children that
/// it spawned. Arguments are moved in.
/// Returns: the body's value as a Result.
/// Errors: the first failure of the body or, with OnFailure::cancel_siblings, of a child; an
/// exception is thrown again.
/// Cancel: passed to the body and all children; returns when they have finished.
/// Lifetime: `body` and its parameters live until the children have finished; the body's own
/// variables do not.
template <class Body, class... Args>
auto with_scope(OnFailure policy, Body body, Args... args) -> Task<
    typename detail::ScopeValue<TaskValue<std::invoke_result_t<Body&, Scope&, Args...>>>::type> {
  using T = TaskValue<std::invoke_result_t<Body&, Scope&, Args...>>;
  using Value = typename detail::ScopeValue<T>::type;
  Scope scope(co_await detail::ThisCoroutine(), policy);
  std::optional<in_context<T>> running;
  std::optional<Value> value;
  try {
    running.emplace(scope.context(), body(scope, std::move(args)...));
    if constexpr (std::is_void_v<T>) {
      co_await std::move(*running);
      value.emplace();
    } else {
      value.emplace(co_await std::move(*running));
    }
  } catch (...) {
    scope.record_failure({}, std::current_exception());
  }
  if (value && !*value) scope.record_failure(value->error(), nullptr);
  co_await scope.children_finished();
  if (scope.first_exception() != nullptr) std::rethrow_exception(scope.first_exception());
  if (scope.first_error()) co_return fail(scope.first_error());
  co_return std::move(*value);
}

/// Runs with_scope() with OnFailure::cancel_siblings.
template <class Body, class... Args>
  requires(!std::is_same_v<Body, OnFailure>)
auto with_scope(Body body, Args... args) {
  return with_scope(OnFailure::cancel_siblings, std::move(body), std::move(args)...);
}

}  // namespace weir
