#include "weir/web/proxy/detail/upstreams.hpp"

#include <algorithm>
#include <utility>

namespace weir::http {

Upstreams::Upstreams(std::size_t count, const ReverseProxyOptions& options, std::size_t connections,
                     std::size_t first)
    : all_(count),
      connections_(connections),
      connections_of_one_max_(
          std::max<std::size_t>(options.client.limits.connections_per_origin_max, 1)),
      choice_(options.choice),
      failures_max_(options.failures_max),
      eject_time_(options.eject_time),
      next_(first % count) {}

void Upstreams::set_requests_per_connection(std::size_t index, std::size_t requests) noexcept {
  if (std::exchange(all_[index].per_connection, requests) != requests) divide_at_ = Instant::min();
}

std::size_t Upstreams::capacity(Instant now) noexcept {
  if (now >= divide_at_) divide_connections(now);
  return capacity_;
}

/// Divides the connections equally among the upstreams that are not ejected.
void Upstreams::divide_connections(Instant now) noexcept {
  const auto is_ejected = [now](const Upstream& each) { return each.ejected_until > now; };
  const auto ejected = static_cast<std::size_t>(std::ranges::count_if(all_, is_ejected));
  const bool all_ejected = ejected == all_.size();
  const std::size_t users = all_.size() - (all_ejected ? 0 : ejected);
  divide_at_ = never;
  capacity_ = 0;
  std::size_t rest = connections_ % users;
  for (Upstream& each : all_) {
    each.capacity = 0;
    if (is_ejected(each)) divide_at_ = std::min(divide_at_, each.ejected_until);
    if (is_ejected(each) && !all_ejected) {
      capacity_ += each.requests;
      continue;
    }
    std::size_t share = connections_ / users;
    if (rest > 0) ++share, --rest;
    each.capacity = std::min(share, connections_of_one_max_) * each.per_connection;
    capacity_ += each.capacity;
  }
}

std::optional<std::size_t> Upstreams::choose(Instant now,
                                             std::span<const std::size_t> tried) noexcept {
  if (now >= divide_at_) divide_connections(now);
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
  divide_at_ = Instant::min();
  return !was_ejected;
}

/// Returns true if `a` should get the request rather than `b`, which comes earlier in the round.
bool Upstreams::is_better(const Upstream& a, const Upstream& b, Instant now) const noexcept {
  const Instant a_until = std::max(a.ejected_until, now);
  const Instant b_until = std::max(b.ejected_until, now);
  if (a_until != b_until) return a_until < b_until;
  if (a.is_full() != b.is_full()) return b.is_full();
  return choice_ == UpstreamChoice::least_requests && a.load() < b.load();
}

}  // namespace weir::http
