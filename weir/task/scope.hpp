// Scopes: what spawns work takes a Scope&, and leaving the scope waits for all of it.
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

/// What a scope does when a child fails: throws, or, being a Task<Result<>>, returns an error.
enum class OnFailure : std::uint8_t {
  /// Cancel the others and the body; the scope fails with the first failure. Being cancelled is
  /// none, unless it came from outside the scope: then the scope gives Errc::cancelled.
  fail_together,
  /// Log and count it; nobody else is touched.
  supervise,
};

/// Owns running children. Opened by with_scope(), which does not return before every child has
/// finished, on every path. A finished child is freed at once.
/// Threads: its loop's. Lifetime: spawn only while the body or a child of it runs.
class Scope {
 public:
  Scope(const Context& parent, OnFailure policy) noexcept;
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// Runs `child` until it first waits, then returns; the child goes on by itself, under this
  /// scope's cancellation.
  void spawn(Task<> child);
  void spawn(Task<Result<>> child);
  template <Awaitable A>
  void spawn(A awaitable) {
    spawn(as_task(std::move(awaitable)));
  }

  /// Asks the body and all children to stop.
  void cancel() { cancel_.cancel(); }
  bool cancelled() const noexcept { return cancel_.cancelled(); }

  std::size_t running() const noexcept { return running_; }
  std::uint64_t failures() const noexcept { return failures_; }
  Loop& loop() const noexcept { return *context_.loop; }
  /// What its children run under.
  const Context& context() const noexcept { return context_; }

  /// For with_scope(): what the body's own failure does.
  void failed(std::error_code error, const std::exception_ptr& exception);
  std::error_code first_error() const noexcept { return first_error_; }
  const std::exception_ptr& first_exception() const noexcept { return first_exception_; }

  /// `co_await scope.children_finished()`.
  /// Cancel: not affected; what is cancelled is still waited for.
  class ChildrenFinished {
   public:
    explicit ChildrenFinished(Scope& scope) noexcept : scope_(scope) {}
    bool await_ready() const noexcept { return scope_.running_ == 0; }
    template <HasContext Promise>
    void await_suspend(std::coroutine_handle<Promise> handle) noexcept {
      scope_.waiting_ = handle;
    }
    void await_resume() const noexcept {}

   private:
    Scope& scope_;
  };
  ChildrenFinished children_finished() noexcept { return ChildrenFinished(*this); }

 private:
  template <class T>
  struct Children : Completion {
    explicit Children(Scope& scope) noexcept : Completion(&completed), scope_(scope) {}
    static std::coroutine_handle<> completed(Completion& self, std::coroutine_handle<> finished);
    Scope& scope_;
  };
  void child_failed(std::error_code error, const std::exception_ptr& exception);
  std::coroutine_handle<> child_finished() noexcept;

  OnFailure policy_;
  CancelSource* outside_;
  CancelSource cancel_;
  Context context_;
  std::size_t running_ = 0;
  std::uint64_t failures_ = 0;
  std::coroutine_handle<> waiting_;
  std::error_code first_error_;
  std::exception_ptr first_exception_;
  Children<void> plain_;
  Children<Result<>> fallible_;
};

/// A failure in words, for logs: the error's message, or what was thrown.
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
/// it spawned. Gives the body's value, or the scope's first failure: an error as the Result, an
/// exception thrown on. Arguments are moved in; they (the body's parameters) and `body` itself live
/// until the children have finished, the body's own variables do not.
/// Cancel: passed on to the body and all children; returns when they have finished.
template <class Body, class... Args>
auto with_scope(OnFailure policy, Body body, Args... args) -> Task<
    typename detail::ScopeValue<TaskValue<std::invoke_result_t<Body&, Scope&, Args...>>>::type> {
  using T = TaskValue<std::invoke_result_t<Body&, Scope&, Args...>>;
  using Value = typename detail::ScopeValue<T>::type;
  Scope scope(co_await this_context(), policy);
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
    scope.failed({}, std::current_exception());
  }
  if (value && !*value) scope.failed(value->error(), nullptr);
  co_await scope.children_finished();
  if (scope.first_exception() != nullptr) std::rethrow_exception(scope.first_exception());
  if (scope.first_error()) co_return fail(scope.first_error());
  co_return std::move(*value);
}

/// The same with OnFailure::fail_together.
template <class Body, class... Args>
  requires(!std::is_same_v<Body, OnFailure>)
auto with_scope(Body body, Args... args) {
  return with_scope(OnFailure::fail_together, std::move(body), std::move(args)...);
}

}  // namespace weir
