// Deadlines: a task that is cancelled when it takes too long.
#pragma once

#include <type_traits>

#include "weir/base/time.hpp"
#include "weir/task/task.hpp"

namespace weir {

namespace detail {

/// A cancellation that happens by itself at a moment.
class Deadline : Timer {
 public:
  Deadline(const Context& outer, Duration length) noexcept
      : Timer(&expire), outer_(outer), cancel_(outer.cancel) {
    outer.loop->timers().start(*this, after(outer.loop->host().now(), length));
  }
  Context context() noexcept { return {outer_.loop, &cancel_}; }
  /// Whether Errc::cancelled under it means that time was up.
  bool expired() const noexcept { return expired_; }

 private:
  static void expire(Timer& timer) {
    auto& self = static_cast<Deadline&>(timer);
    if (self.cancel_.cancelled()) return;
    self.expired_ = true;
    self.cancel_.cancel();
  }

  Context outer_;
  CancelSource cancel_;
  bool expired_ = false;
};

template <class T>
struct AsResult {
  using type = Result<T>;
};
template <class T>
struct AsResult<Result<T>> {
  using type = Result<T>;
};

}  // namespace detail

/// Runs `task` and cancels it after `length`. Gives what the task gives: a Result<T> both for a
/// Task<Result<T>> and a Task<T>; Errc::timed_out when time was up and the task stopped because of
/// that. A task that succeeds all the same keeps its value; of a Task<>, which cannot tell, it is
/// taken that it was cut short when time was up before its end. Returns when the task has finished.
/// Cancel: passed on to the task, which then reports Errc::cancelled.
template <class T>
Task<typename detail::AsResult<T>::type> timeout(Duration length, Task<T> task) {
  detail::Deadline deadline(co_await this_context(), length);
  auto running = in_context(deadline.context(), std::move(task));
  if constexpr (std::is_void_v<T>) {
    co_await std::move(running);
    if (deadline.expired()) co_return fail(Errc::timed_out);
    co_return {};
  } else {
    typename detail::AsResult<T>::type result = co_await std::move(running);
    if (!result && deadline.expired() && result.error() == Errc::cancelled) {
      co_return fail(Errc::timed_out);
    }
    co_return result;
  }
}

/// The same for anything else that can be awaited, such as `timeout(1s, peer.read())`.
/// Cancel: as above.
template <Awaitable A>
auto timeout(Duration length, A awaitable) {
  return timeout(length, as_task(std::move(awaitable)));
}

}  // namespace weir
