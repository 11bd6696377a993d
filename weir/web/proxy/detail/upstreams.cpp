#include "weir/web/proxy/detail/upstreams.hpp"

#include <algorithm>

namespace weir::http {

std::optional<std::size_t> Upstreams::choose(Instant now,
                                             std::span<const std::size_t> tried) noexcept {
  std::optional<std::size_t> best;
  for (std::size_t step = 0; step < all_.size(); ++step) {
    const std::size_t index = (next_ + step) % all_.size();
    if (std::ranges::find(tried, index) != tried.end()) continue;
    if (!best || is_better(all_[index], all_[*best], now)) best = index;
  }
  if (best) next_ = (*best + 1) % all_.size();
  return best;
}

bool Upstreams::record_failure(std::size_t index, Instant now) noexcept {
  Upstream& failed = all_[index];
  if (failures_max_ == 0 || ++failed.failures < failures_max_) return false;
  failed.failures = failures_max_ - 1;  // after its time, the next failure ejects it again
  const bool was_ejected = failed.ejected_until > now;
  failed.ejected_until = after(now, eject_time_);
  return !was_ejected;
}

/// Returns true if `a` should get the request rather than `b`, which comes earlier in the round.
bool Upstreams::is_better(const Upstream& a, const Upstream& b, Instant now) const noexcept {
  const Instant a_until = std::max(a.ejected_until, now);
  const Instant b_until = std::max(b.ejected_until, now);
  if (a_until != b_until) return a_until < b_until;
  return choice_ == UpstreamChoice::least_requests && a.requests < b.requests;
}

}  // namespace weir::http
