// Sleeping: wait for a moment or for a length of time.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/task/context.hpp"

namespace weir {

/// The awaiter behind sleep() and sleep_until().
class SleepAwaiter : Waiter, CancelNode, Timer {
 public:
  explicit SleepAwaiter(Duration length) noexcept
      : CancelNode(&cancel), Timer(&fire), relative_(true), length_(length) {}
  explicit SleepAwaiter(Instant deadline) noexcept
      : CancelNode(&cancel), Timer(&fire), length_(deadline.time_since_epoch()) {}

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

  bool cancelled_ = false;
  bool relative_ = false;
  Duration length_;  // from when it is awaited, if relative_, else from the clock's beginning
};

/// See sleep().
class [[nodiscard]] Sleep {
 public:
  explicit Sleep(Duration length) noexcept : length_(length) {}
  Duration length() const noexcept { return length_; }
  SleepAwaiter operator co_await() const noexcept { return SleepAwaiter(length_); }

 private:
  Duration length_;
};

/// See sleep_until().
class [[nodiscard]] SleepUntil {
 public:
  explicit SleepUntil(Instant deadline) noexcept : deadline_(deadline) {}
  Instant deadline() const noexcept { return deadline_; }
  SleepAwaiter operator co_await() const noexcept { return SleepAwaiter(deadline_); }

 private:
  Instant deadline_;
};

// Functions, not types: `using namespace weir` then overloads POSIX' ::sleep(unsigned) instead of
// making the name ambiguous.

/// `co_await sleep(10ms)`: resumes no sooner than that, on the same loop. A length of zero or less
/// still lets others run. Errors: Errc::cancelled.
/// Cancel: returns in the loop's next round.
inline Sleep sleep(Duration length) noexcept {
  return Sleep(length);
}

/// The same, until a moment on the host's monotonic clock; `never`: until cancelled.
/// Cancel: returns in the loop's next round.
inline SleepUntil sleep_until(Instant deadline) noexcept {
  return SleepUntil(deadline);
}

}  // namespace weir
