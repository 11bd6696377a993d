// sleep() waits for a duration, sleep_until() until a point in time.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/task/context.hpp"

namespace weir {

/// SleepAwaiter is the awaiter of sleep() and sleep_until().
class SleepAwaiter : CancellableWaiter, loop::Timer {
 public:
  explicit SleepAwaiter(Duration length) noexcept
      : CancellableWaiter(sleep_kind), loop::Timer(&fire), relative_(true), length_(length) {}
  explicit SleepAwaiter(Instant deadline) noexcept
      : CancellableWaiter(sleep_kind), loop::Timer(&fire), length_(deadline.time_since_epoch()) {}

  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    set_coroutine(handle);
    return begin();
  }
  Result<> await_resume() const noexcept {
    if (cancelled_) return fail(Errc::cancelled);
    return {};
  }

 private:
  bool begin() noexcept;
  static void fire(loop::Timer& timer);
  static void on_cancel(CancelNode& node);
  static constexpr Kind sleep_kind = waiting_kind(&on_cancel, "sleep");

  bool cancelled_ = false;
  bool relative_ = false;
  Duration length_;  // from the await if relative_, else from the clock's epoch
};

/// The awaitable of sleep().
class [[nodiscard]] Sleep {
 public:
  explicit Sleep(Duration length) noexcept : length_(length) {}
  Duration length() const noexcept { return length_; }
  SleepAwaiter operator co_await() const noexcept { return SleepAwaiter(length_); }

 private:
  Duration length_;
};

/// The awaitable of sleep_until().
class [[nodiscard]] SleepUntil {
 public:
  explicit SleepUntil(Instant deadline) noexcept : deadline_(deadline) {}
  Instant deadline() const noexcept { return deadline_; }
  SleepAwaiter operator co_await() const noexcept { return SleepAwaiter(deadline_); }

 private:
  Instant deadline_;
};

// These are functions, not types. `using namespace weir` then overloads POSIX' ::sleep(unsigned)
// and does not make the name ambiguous.

/// Suspends the task for at least `length`: `co_await sleep(10ms)`. The task resumes on the same
/// loop. A length of zero or less still lets other tasks run.
/// Errors: Errc::cancelled.
/// Cancel: resumes from the loop's ready queue.
inline Sleep sleep(Duration length) noexcept {
  return Sleep(length);
}

/// Suspends the task until `deadline` on the platform's monotonic clock; `never` means until it
/// is cancelled.
/// Errors: Errc::cancelled.
/// Cancel: resumes from the loop's ready queue.
inline SleepUntil sleep_until(Instant deadline) noexcept {
  return SleepUntil(deadline);
}

}  // namespace weir
