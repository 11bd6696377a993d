// A RateLimiter is a token bucket for the tasks of one core.
#pragma once

#include <cstdint>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/task/detail/wait.hpp"

namespace weir {

/// A RateLimit allows `tokens` per duration `per`, and at most `burst` together after a pause.
/// All values are greater than zero.
struct RateLimit {
  std::uint64_t tokens = 1;
  Duration per = std::chrono::seconds(1);
  std::uint64_t burst = 1;
};

/// A RateLimiter is a bucket of at most `burst` tokens, full at first, which is refilled evenly.
/// Each action takes tokens out. The tokens taken in any duration t are at most burst + rate × t,
/// exact to the nanosecond. Fractions of a token are kept, so nothing drifts.
/// Threads: its loop's.
/// Lifetime: it outlives every wait for it (asserted).
class RateLimiter {
 public:
  /// Checks a limit.
  /// Errors: Errc::bad_configuration if a value is not greater than zero, or if the time to fill
  /// the bucket is out of range. Divide `tokens` and `per` by their greatest common divisor:
  /// `per` × `burst` must then fit into 63 bits of nanoseconds.
  static Result<> check(const RateLimit& limit) noexcept;
  /// Takes a limit that check() accepts (asserted).
  explicit RateLimiter(const RateLimit& limit) noexcept;
  RateLimiter(const RateLimiter&) = delete;
  RateLimiter& operator=(const RateLimiter&) = delete;

  class [[nodiscard]] Acquire : public QueuedWait {
   public:
    using Value = Result<>;
    Acquire(RateLimiter& limiter, std::uint64_t count) noexcept
        : limiter_(limiter), count_(count) {}

    bool ready() const noexcept { return exceeds_burst(); }
    bool due(Loop& loop) noexcept { return limiter_.try_acquire(loop.now(), count_); }
    bool begin(Loop& loop);
    void withdraw() noexcept { unlink(); }
    void on_withdrawn() { limiter_.grant_waiters(); }
    Value value() const noexcept {
      if (exceeds_burst()) return fail(Errc::limit_reached);
      return {};
    }
    WaitAwaiter<Acquire> operator co_await() && noexcept { return WaitAwaiter<Acquire>(*this); }

   private:
    friend class RateLimiter;
    bool exceeds_burst() const noexcept { return count_ > limiter_.burst_; }
    RateLimiter& limiter_;
    std::uint64_t count_;
  };

  /// Takes `count` tokens out: `co_await limiter.acquire(n)`. It returns immediately if there are
  /// enough tokens and no task waits. Waiters are served in the order of arrival, so small
  /// requests do not overtake a large one. A timer of the loop serves the first waiter, and
  /// the loop then resumes its task from the ready queue. A limiter without waiters has no timer.
  /// Errors: Errc::limit_reached, immediately, if `count` is more than the bucket holds;
  /// Errc::cancelled.
  /// Cancel: leaves the queue and resumes from the loop's ready queue without taking tokens; the
  /// waiters behind it move up. Tokens that were granted before the cancellation are spent: it
  /// returns success.
  Acquire acquire(std::uint64_t count = 1) noexcept { return Acquire(*this, count); }

  /// Takes `count` tokens without waiting. `now` is the loop's time.
  /// Returns: true if it took them; false if there are too few or if a task waits.
  bool try_acquire(Instant now, std::uint64_t count = 1) noexcept;

  /// Returns the number of whole tokens in the bucket at `now`.
  std::uint64_t available(Instant now) noexcept;

 private:
  struct Refill : loop::Timer {
    explicit Refill(RateLimiter& of) noexcept;
    RateLimiter& limiter;
  };
  void refill(Instant now) noexcept;
  bool take(std::uint64_t count) noexcept;
  void grant_waiters();

  // The bucket counts in parts of a token. A token has `parts_per_token_` parts, and each
  // nanosecond adds `refill_per_ns_` parts.
  std::uint64_t parts_per_token_;
  std::uint64_t refill_per_ns_;
  std::uint64_t burst_;
  std::uint64_t level_;  // in parts, at `refilled_at_`
  Instant refilled_at_ = Instant::min();
  WaitQueue<Acquire> waiting_;
  Refill refill_;
  Loop* loop_ = nullptr;  // of the waiters
};

}  // namespace weir
