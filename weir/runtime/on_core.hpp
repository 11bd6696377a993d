// Calls a function on another core and returns its result to the calling core.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "weir/task/task.hpp"

namespace weir {
namespace detail {

/// A RemoteCall is a call on another loop, from its start there until its result is back on the
/// owner. It lives in the frame of the awaiting coroutine. Each step is posted from one loop to
/// the other, which orders all access.
class RemoteCall : CancellableWaiter {
 public:
  explicit RemoteCall(Loop& remote) noexcept : CancellableWaiter(call_kind), remote_(remote) {}
  RemoteCall(const RemoteCall&) = delete;
  RemoteCall& operator=(const RemoteCall&) = delete;

  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    set_coroutine(handle);
    begin();
  }
  void await_resume() const noexcept {}

 protected:
  ~RemoteCall() = default;
  /// Starts the call on the remote loop; finished() is called at the end, possibly inside.
  virtual void start(const Context& context) = 0;
  /// Resumes the waiter; called on the remote loop. The call may be destroyed when this returns.
  void finished();
  /// Lists the call in the reports of tasks of the remote loop, until finished().
  void list() noexcept { remote_cancel_.list_in(remote_.roots()); }

 private:
  /// A Step is posted from one loop to the other, once.
  class Step : public loop::Runnable {
   public:
    Step(RemoteCall& call, void (RemoteCall::*action)()) noexcept
        : loop::Runnable(&run), call_(call), action_(action) {}

   private:
    static void run(loop::Runnable& self) {
      auto& step = static_cast<Step&>(self);
      (step.call_.*step.action_)();
    }
    RemoteCall& call_;
    void (RemoteCall::*action_)();
  };

  void begin();                        // on the owner
  static void on_cancel(CancelNode&);  // on the owner
  static constexpr Kind call_kind = waiting_kind(&on_cancel, "on_core");
  void start_remote();           // on the remote loop
  void cancel_remote();          // on the remote loop
  void on_completed_at_owner();  // on the owner, once for each remote step

  Loop& remote_;
  Loop* owner_ = nullptr;
  CancelSource remote_cancel_;    // used by the remote loop only
  bool remote_finished_ = false;  // used by the remote loop only
  unsigned steps_in_flight_ = 0;  // used by the owner only: steps not yet back
  Step start_{*this, &RemoteCall::start_remote};
  Step finish_{*this, &RemoteCall::on_completed_at_owner};
  Step cancel_{*this, &RemoteCall::cancel_remote};
  Step cancel_done_{*this, &RemoteCall::on_completed_at_owner};
};

template <class T>
struct Awaited {
  using type = T;
};
template <class T>
struct Awaited<Task<T>> {
  using type = T;
};

/// OnCoreValue is the type of the value of on_core() for a function that returns a Returned.
template <class Returned>
struct OnCoreValue : Awaited<Returned> {
  static_assert(!std::is_reference_v<typename Awaited<Returned>::type>,
                "return a value: a reference would cross the cores");
};

/// RemoteCallOf calls `make`, which returns a T or a Task<T>.
template <class Make, class T>
class RemoteCallOf final : public RemoteCall, Continuation {
 public:
  RemoteCallOf(Loop& remote, Make& make) noexcept
      : RemoteCall(remote), Continuation(remote_kind), make_(make) {}

  /// Returns the result; called once on the owner, after the end.
  T take() {
    if (exception_ != nullptr) std::rethrow_exception(std::exchange(exception_, nullptr));
    if constexpr (!std::is_void_v<T>) return std::move(*value_);
  }

 private:
  void start(const Context& context) override {
    try {
      if constexpr (is_task<std::invoke_result_t<Make&>>) {
        list();
        auto handle = make_().release();
        handle.promise().begin(context, *this);
        resume_coroutine(handle);  // *this may be destroyed when it returns
        return;
      } else if constexpr (std::is_void_v<T>) {
        make_();
      } else {
        value_.emplace(make_());
      }
    } catch (...) {
      exception_ = std::current_exception();
    }
    finished();
  }

  // The frame is destroyed on the core that created it; only the value crosses.
  static std::coroutine_handle<> completed(Continuation& self, std::coroutine_handle<> finished) {
    auto& call = static_cast<RemoteCallOf&>(self);
    const auto task = Task<T>::Handle::from_address(finished.address());
    try {
      if constexpr (std::is_void_v<T>) {
        task.promise().take();
      } else {
        call.value_.emplace(task.promise().take());
      }
    } catch (...) {
      call.exception_ = std::current_exception();
    }
    task.destroy();
    call.finished();
    return std::noop_coroutine();
  }
  static constexpr Continuation::Kind remote_kind{&completed, nullptr, "on_core"};

  struct Nothing {};
  Make& make_;
  [[no_unique_address]] std::conditional_t<std::is_void_v<T>, Nothing, std::optional<T>> value_;
  std::exception_ptr exception_;
};

/// Returns the loop of a core in the group of `owner`.
/// Errors: throws std::out_of_range if the core does not exist.
Loop& loop_of_core(Loop& owner, unsigned core);

}  // namespace detail

/// `co_await on_core(n, fn, args...)` calls `fn(args...)` on the loop of core `n` of this runtime
/// and returns here. `n` is at least 0 and less than Runtime::core_count(); it may be the
/// caller's own core. `fn` returns a T or a Task<T>. `fn` and `args` are moved in and live on
/// this core until the end. They and the result must be safe to use on both threads.
/// Returns: the value of `fn`; an exception that `fn` throws is rethrown on this core.
/// Errors: throws std::out_of_range if the core does not exist.
/// Cancel: passed on to the remote task; returns when the remote task has finished.
template <class Fn, class... Args>
auto on_core(unsigned core, Fn fn, Args... args)
    -> Task<typename detail::OnCoreValue<std::invoke_result_t<Fn, Args...>>::type> {
  using T = typename detail::OnCoreValue<std::invoke_result_t<Fn, Args...>>::type;
  const Context context = co_await this_context();
  auto make = [&] { return std::invoke(std::move(fn), std::move(args)...); };
  detail::RemoteCallOf<decltype(make), T> call(detail::loop_of_core(*context.loop, core), make);
  co_await call;
  co_return call.take();
}

}  // namespace weir
