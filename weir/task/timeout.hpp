// timeout() cancels a task that takes too long.
#pragma once

#include <type_traits>

#include "weir/base/time.hpp"
#include "weir/task/task.hpp"

namespace weir {

namespace detail {

/// A TimedCancelSource is a cancellation source that a timer cancels after `length`.
class TimedCancelSource : loop::Timer {
 public:
  TimedCancelSource(const Context& outer, Duration length) noexcept
      : loop::Timer(&expire), outer_(outer), cancel_(outer.cancel) {
    outer.loop->timers().start(*this, after(outer.loop->platform().now(), length));
  }
  Context context() noexcept { return {outer_.loop, &cancel_}; }
  /// Returns true if the timer cancelled the source; Errc::cancelled under it then means a
  /// timeout.
  bool expired() const noexcept { return expired_; }

 private:
  static void expire(loop::Timer& timer) {
    auto& self = static_cast<TimedCancelSource&>(timer);
    if (self.cancel_.cancelled()) return;
    self.expired_ = true;
    self.cancel_.cancel();
  }

  Context outer_;
  CancelSource cancel_;
  bool expired_ = false;
};

}  // namespace detail

/// Runs `task` and cancels it after `length`. It returns when the task has finished. A task that
/// succeeds after the timeout keeps its value. A Task<> cannot report a cancellation; if it ends
/// after the timeout, it counts as cut short.
/// Returns: a Result<T> with the result of the task, for a Task<T> and for a Task<Result<T>>.
/// Errors: the error of the task; Errc::timed_out if the task stopped because of the timeout.
/// Cancel: passed to the task, which then reports Errc::cancelled.
template <class T>
Task<typename detail::AsResult<T>::type> timeout(Duration length, Task<T> task) {
  detail::TimedCancelSource timed_cancel(co_await this_context(), length);
  auto running = in_context(timed_cancel.context(), std::move(task));
  if constexpr (std::is_void_v<T>) {
    co_await std::move(running);
    if (timed_cancel.expired()) co_return fail(Errc::timed_out);
    co_return {};
  } else {
    typename detail::AsResult<T>::type result = co_await std::move(running);
    if (!result && timed_cancel.expired() && result.error() == Errc::cancelled) {
      co_return fail(Errc::timed_out);
    }
    co_return result;
  }
}

/// Runs timeout() for any other awaitable, such as `timeout(1s, peer.read())`.
/// Returns: the result of the awaitable as a Result.
/// Errors: those of the awaitable; Errc::timed_out if the time was over first.
/// Cancel: passed to the awaitable, which then reports Errc::cancelled.
template <Awaitable A>
auto timeout(Duration length, A awaitable) {
  return timeout(length, as_task(std::move(awaitable)));
}

}  // namespace weir
