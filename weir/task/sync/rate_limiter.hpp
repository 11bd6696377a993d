// A rate limiter on one core: a token bucket.
#pragma once

#include <cstdint>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/task/detail/wait.hpp"

namespace weir {

/// `tokens` in each `per`, and at most `burst` at once after a pause. All greater than zero.
struct RateLimit {
  std::uint64_t tokens = 1;
  Duration per = std::chrono::seconds(1);
  std::uint64_t burst = 1;
};

/// A bucket that holds `burst` tokens, full at first, into which tokens drip evenly; each thing
/// that is done takes some out. In any length of time t no more are taken than burst + rate × t, to
/// the nanosecond: fractions of a token are kept, nothing drifts.
/// Threads: its loop's. Lifetime: longer than every wait for it (asserted).
class CoreRateLimiter {
 public:
  /// Errors: Errc::bad_configuration when something is not greater than zero, or the time to fill
  /// the bucket is beyond all measure (`per` × `burst` does not fit into 63 bits of nanoseconds,
  /// after `tokens` and `per` are divided by what they have in common).
  static Result<> check(const RateLimit& limit) noexcept;
  /// What check() accepts (asserted).
  explicit CoreRateLimiter(const RateLimit& limit) noexcept;
  CoreRateLimiter(const CoreRateLimiter&) = delete;
  CoreRateLimiter& operator=(const CoreRateLimiter&) = delete;

  class [[nodiscard]] Acquire : public QueuedWait {
   public:
    using Value = Result<>;
    Acquire(CoreRateLimiter& limiter, std::uint64_t count) noexcept
        : limiter_(limiter), count_(count) {}

    bool ready() const noexcept { return refused(); }
    bool due(Loop& loop) noexcept { return limiter_.try_acquire(loop.now(), count_); }
    bool begin(Loop& loop);
    void withdraw() noexcept { unlink(); }
    void withdrawn() { limiter_.serve(); }
    Value value() const noexcept {
      if (refused()) return fail(Errc::limit_reached);
      return {};
    }
    Awaiting<Acquire> operator co_await() && noexcept { return Awaiting<Acquire>(*this); }

   private:
    friend class CoreRateLimiter;
    bool refused() const noexcept { return count_ > limiter_.burst_; }
    CoreRateLimiter& limiter_;
    std::uint64_t count_;
  };

  /// `co_await limiter.acquire(n)`: returns when n tokens have been taken out for this task; at
  /// once if there are as many and nobody waits. Who asks for many is not overtaken by those behind
  /// who ask for few. A timer of the loop serves the first who waits, and the task runs in that
  /// round. Errors: Errc::limit_reached, at once, when n is more than the bucket holds;
  /// Errc::cancelled.
  /// Cancel: leaves the queue and returns in the loop's next round, and takes nothing out; those
  /// behind it move up. Tokens that it had been given before are spent: it returns success.
  Acquire acquire(std::uint64_t count = 1) noexcept { return Acquire(*this, count); }

  /// The same without waiting, `now` being the loop's time. Returns whether it took them: no, as
  /// long as somebody waits.
  bool try_acquire(Instant now, std::uint64_t count = 1) noexcept;

  /// Whole tokens in the bucket at that time.
  std::uint64_t available(Instant now) noexcept;

 private:
  struct Refill : Timer {
    explicit Refill(CoreRateLimiter& of) noexcept;
    CoreRateLimiter& limiter;
  };
  void refill(Instant now) noexcept;
  bool take(std::uint64_t count) noexcept;
  void serve();

  // In parts: a token has `parts_` of them, and in a nanosecond `drip_` drip in.
  std::uint64_t parts_;
  std::uint64_t drip_;
  std::uint64_t burst_;
  std::uint64_t held_;  // at `filled_`
  Instant filled_ = Instant::min();
  WaitQueue<Acquire> waiting_;
  Refill refill_;
  Loop* loop_ = nullptr;  // of those who wait
};

}  // namespace weir
