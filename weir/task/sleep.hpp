// Sleeping: wait for a moment or for a length of time.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/task/context.hpp"

namespace weir {

/// The awaiter behind sleep() and sleep_until().
class SleepAwaiter : Waiter, Timer, CancelNode {
 public:
  SleepAwaiter(Duration length, Instant deadline) noexcept
      : Timer(&fire), CancelNode(&cancel), length_(length), deadline_(deadline) {}

  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    wait_in(handle);
    return begin();
  }
  Result<> await_resume() const noexcept {
    if (cancelled_) return fail(Errc::cancelled);
    return {};
  }

 private:
  bool begin() noexcept;
  static void fire(Timer& timer);
  static void cancel(CancelNode& node);

  Duration length_;
  Instant deadline_;
  bool cancelled_ = false;
};

/// `co_await sleep(10ms)`: resumes no sooner than that, on the same loop. A length of zero or less
/// still lets others run. Errors: Errc::cancelled.
/// Cancel: returns in the loop's next round.
class [[nodiscard]] sleep {
 public:
  explicit sleep(Duration length) noexcept : length_(length) {}
  SleepAwaiter operator co_await() const noexcept { return {length_, never}; }

 private:
  Duration length_;
};

/// The same, until a moment on the host's monotonic clock; `never`: until cancelled.
/// Cancel: returns in the loop's next round.
class [[nodiscard]] sleep_until {
 public:
  explicit sleep_until(Instant deadline) noexcept : deadline_(deadline) {}
  SleepAwaiter operator co_await() const noexcept { return {Duration::min(), deadline_}; }

 private:
  Instant deadline_;
};

}  // namespace weir
