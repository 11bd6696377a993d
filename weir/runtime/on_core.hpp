// Calling a function on another core, and waiting here for what it gives.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "weir/task/task.hpp"

namespace weir {
namespace detail {

/// A call on another loop, from its start there to its return home. It lives in the frame of who
/// waits at home; each step below is posted from one loop to the other, which orders all access.
class RemoteCall : Waiter, CancelNode {
 public:
  explicit RemoteCall(Loop& remote) noexcept : CancelNode(&ask), remote_(remote) {}
  RemoteCall(const RemoteCall&) = delete;
  RemoteCall& operator=(const RemoteCall&) = delete;

  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    wait_in(handle);
    begin();
  }
  void await_resume() const noexcept {}

 protected:
  ~RemoteCall() = default;
  /// On the remote loop: begins; calls finished() at the end, maybe inside.
  virtual void start(const Context& context) = 0;
  /// On the remote loop: lets the waiter go on. The call may be gone when it returns.
  void finished();

 private:
  /// Something that one loop posts to the other, once.
  class Step : public Runnable {
   public:
    Step(RemoteCall& call, void (RemoteCall::*action)()) noexcept
        : Runnable(&run), call_(call), action_(action) {}

   private:
    static void run(Runnable& self) {
      auto& step = static_cast<Step&>(self);
      (step.call_.*step.action_)();
    }
    RemoteCall& call_;
    void (RemoteCall::*action_)();
  };

  void begin();                  // at home
  static void ask(CancelNode&);  // at home
  void start_there();            // there
  void cancel_there();           // there
  void came_home();              // at home, once for each step that was sent there

  Loop& remote_;
  Loop* home_ = nullptr;
  CancelSource cancelled_there_;  // the remote loop's
  bool finished_there_ = false;   // the remote loop's
  unsigned out_ = 0;              // the home loop's: steps that have not come home
  Step start_{*this, &RemoteCall::start_there};
  Step finish_{*this, &RemoteCall::came_home};
  Step cancel_{*this, &RemoteCall::cancel_there};
  Step cancel_done_{*this, &RemoteCall::came_home};
};

template <class T>
struct Awaited {
  using type = T;
};
template <class T>
struct Awaited<Task<T>> {
  using type = T;
};

/// The call of `make`, which gives a T or a Task<T>.
template <class Make, class T>
class RemoteCallOf final : public RemoteCall, Completion {
 public:
  RemoteCallOf(Loop& remote, Make& make) noexcept
      : RemoteCall(remote), Completion(&completed), make_(make) {}

  /// At home, after the end. Once.
  T take() {
    if (exception_ != nullptr) std::rethrow_exception(std::exchange(exception_, nullptr));
    if constexpr (!std::is_void_v<T>) return std::move(*value_);
  }

 private:
  void start(const Context& context) override {
    try {
      if constexpr (is_task<std::invoke_result_t<Make&>>) {
        auto handle = make_().release();
        handle.promise().begin(context, *this);
        go_on_with(handle);  // *this may be gone when it returns
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

  // The frame goes where it came from: it is destroyed here, only the value travels.
  static std::coroutine_handle<> completed(Completion& self, std::coroutine_handle<> finished) {
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

  struct Nothing {};
  Make& make_;
  [[no_unique_address]] std::conditional_t<std::is_void_v<T>, Nothing, std::optional<T>> value_;
  std::exception_ptr exception_;
};

/// The loop of a core among those that `home` belongs to. Errors: throws std::out_of_range.
Loop& loop_of_core(Loop& home, unsigned core);

}  // namespace detail

/// `co_await on_core(n, fn, args...)`: calls `fn(args...)`, which returns a T or a Task<T>, on the
/// loop of core `n` of this runtime, counted from 0 to Runtime::core_count() - 1; gives its value
/// or throws what it throws, back on this core. `fn` and `args` are moved in and live here until
/// the end; what crosses must be good for both threads. The own core is no special case. Errors:
/// throws std::out_of_range where there is no such core. Cancel: passed on to the remote task;
/// returns when that has finished.
template <class Fn, class... Args>
auto on_core(unsigned core, Fn fn, Args... args)
    -> Task<typename detail::Awaited<std::invoke_result_t<Fn, Args...>>::type> {
  using T = typename detail::Awaited<std::invoke_result_t<Fn, Args...>>::type;
  static_assert(!std::is_reference_v<T>, "return a value: a reference would cross the cores");
  const Context context = co_await this_context();
  auto make = [&] { return std::invoke(std::move(fn), std::move(args)...); };
  detail::RemoteCallOf<decltype(make), T> call(detail::loop_of_core(*context.loop, core), make);
  co_await call;
  co_return call.take();
}

}  // namespace weir
