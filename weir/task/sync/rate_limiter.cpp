// The token bucket and its timer.
#include "weir/task/sync/rate_limiter.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>

namespace weir {
namespace {

constexpr std::uint64_t parts_max = std::numeric_limits<std::int64_t>::max();

/// Returns the greatest common divisor of `tokens` and the nanoseconds of `per`.
std::uint64_t common_divisor(const RateLimit& limit) noexcept {
  return std::gcd(limit.tokens, static_cast<std::uint64_t>(limit.per.count()));
}

}  // namespace

Result<> RateLimiter::check(const RateLimit& limit) noexcept {
  if (limit.tokens == 0 || limit.burst == 0 || limit.per <= Duration::zero()) {
    return fail(Errc::bad_configuration);
  }
  const std::uint64_t parts = static_cast<std::uint64_t>(limit.per.count()) / common_divisor(limit);
  if (limit.burst > parts_max / parts) return fail(Errc::bad_configuration);
  return {};
}

RateLimiter::Refill::Refill(RateLimiter& of) noexcept
    : loop::Timer([](loop::Timer& timer) { static_cast<Refill&>(timer).limiter.grant_waiters(); }),
      limiter(of) {}

RateLimiter::RateLimiter(const RateLimit& limit) noexcept
    : parts_per_token_(static_cast<std::uint64_t>(limit.per.count()) / common_divisor(limit)),
      refill_per_ns_(limit.tokens / common_divisor(limit)),
      burst_(limit.burst),
      level_(burst_ * parts_per_token_),
      refill_(*this) {
  assert(check(limit));
}

/// Adds the tokens that are due at `now`. It counts whole nanoseconds, so nothing is ever
/// rounded.
void RateLimiter::refill(Instant now) noexcept {
  if (now <= refilled_at_) return;
  // A waiter is owed its tokens at a fraction of a nanosecond, but the timer fires at the next
  // whole one. The parts added between the two do not overflow the bucket.
  const std::uint64_t fraction =
      waiting_.empty() ? 0 : std::min(refill_per_ns_, parts_per_token_) - 1;
  const std::uint64_t most = burst_ * parts_per_token_ + fraction;
  const std::uint64_t room = most > level_ ? most - level_ : 0;
  if (room != 0) {  // never the first time, when `refilled_at_` is not a time yet
    const auto passed = static_cast<std::uint64_t>((now - refilled_at_).count());
    level_ += passed > room / refill_per_ns_ ? room : passed * refill_per_ns_;
  }
  refilled_at_ = now;
}

bool RateLimiter::take(std::uint64_t count) noexcept {
  if (count > burst_ || count * parts_per_token_ > level_) return false;
  level_ -= count * parts_per_token_;
  return true;
}

bool RateLimiter::try_acquire(Instant now, std::uint64_t count) noexcept {
  if (!waiting_.empty()) return false;
  refill(now);
  return take(count);
}

std::uint64_t RateLimiter::available(Instant now) noexcept {
  refill(now);
  return level_ / parts_per_token_;
}

/// Grants waiters in order while there are tokens, and sets the timer for the first remaining
/// one.
void RateLimiter::grant_waiters() {
  refill(loop_->now());
  while (Acquire* const first = waiting_.front()) {
    if (!take(first->count_)) break;
    first->grant();
  }
  Acquire* const left = waiting_.front();
  if (left == nullptr) return refill_.cancel();
  const std::uint64_t missing = left->count_ * parts_per_token_ - level_;
  const auto wait = static_cast<Duration::rep>(missing / refill_per_ns_ +
                                               (missing % refill_per_ns_ != 0 ? 1 : 0));
  loop_->timers().start(refill_, after(refilled_at_, Duration(wait)));
}

bool RateLimiter::Acquire::begin(Loop& loop) {
  if (due(loop)) return false;
  limiter_.loop_ = &loop;
  limiter_.waiting_.push_back(*this);
  if (limiter_.waiting_.front() == this) limiter_.grant_waiters();
  return true;
}

}  // namespace weir
