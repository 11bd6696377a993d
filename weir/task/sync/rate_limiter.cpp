#include "weir/task/sync/rate_limiter.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>

namespace weir {
namespace {

constexpr std::uint64_t parts_max = std::numeric_limits<std::int64_t>::max();

/// What `tokens` and the nanoseconds of `per` have in common.
std::uint64_t divisor_of(const RateLimit& limit) noexcept {
  return std::gcd(limit.tokens, static_cast<std::uint64_t>(limit.per.count()));
}

}  // namespace

Result<> CoreRateLimiter::check(const RateLimit& limit) noexcept {
  if (limit.tokens == 0 || limit.burst == 0 || limit.per <= Duration::zero()) {
    return fail(Errc::bad_configuration);
  }
  const std::uint64_t parts = static_cast<std::uint64_t>(limit.per.count()) / divisor_of(limit);
  if (limit.burst > parts_max / parts) return fail(Errc::bad_configuration);
  return {};
}

CoreRateLimiter::Refill::Refill(CoreRateLimiter& of) noexcept
    : Timer([](Timer& timer) { static_cast<Refill&>(timer).limiter.serve(); }), limiter(of) {}

CoreRateLimiter::CoreRateLimiter(const RateLimit& limit) noexcept
    : parts_(static_cast<std::uint64_t>(limit.per.count()) / divisor_of(limit)),
      drip_(limit.tokens / divisor_of(limit)),
      burst_(limit.burst),
      held_(burst_ * parts_),
      refill_(*this) {
  assert(check(limit));
}

/// Lets drip in what is due at `now`. In whole nanoseconds, so nothing is ever rounded.
void CoreRateLimiter::refill(Instant now) noexcept {
  if (now <= filled_) return;
  // Who waits is owed its tokens at a fraction of a nanosecond; what drips in between that and the
  // next whole one, when the timer can fire, does not run over.
  const std::uint64_t fraction = waiting_.empty() ? 0 : std::min(drip_, parts_) - 1;
  const std::uint64_t most = burst_ * parts_ + fraction;
  const std::uint64_t room = most > held_ ? most - held_ : 0;
  if (room != 0) {  // never the first time, when `filled_` is no time
    const auto passed = static_cast<std::uint64_t>((now - filled_).count());
    held_ += passed > room / drip_ ? room : passed * drip_;
  }
  filled_ = now;
}

bool CoreRateLimiter::take(std::uint64_t count) noexcept {
  if (count > burst_ || count * parts_ > held_) return false;
  held_ -= count * parts_;
  return true;
}

bool CoreRateLimiter::try_acquire(Instant now, std::uint64_t count) noexcept {
  if (!waiting_.empty()) return false;
  refill(now);
  return take(count);
}

std::uint64_t CoreRateLimiter::available(Instant now) noexcept {
  refill(now);
  return held_ / parts_;
}

/// Gives those who wait what there is, in order, and sets the timer for the first who is left.
void CoreRateLimiter::serve() {
  if (waiting_.empty()) return refill_.cancel();
  refill(loop_->now());
  while (Acquire* const first = waiting_.front()) {
    if (!take(first->count_)) break;
    first->grant();
  }
  Acquire* const left = waiting_.front();
  if (left == nullptr) return refill_.cancel();
  const std::uint64_t missing = left->count_ * parts_ - held_;
  const auto wait = static_cast<Duration::rep>(missing / drip_ + (missing % drip_ != 0 ? 1 : 0));
  loop_->timers().start(refill_, after(filled_, Duration(wait)));
}

bool CoreRateLimiter::Acquire::begin(Loop& loop) {
  if (due(loop)) return false;
  limiter_.loop_ = &loop;
  limiter_.waiting_.push_back(*this);
  if (limiter_.waiting_.front() == this) limiter_.serve();
  return true;
}

}  // namespace weir
