#include "weir/web/middleware/detail/rate_table.hpp"

#include <algorithm>

namespace weir::http {
namespace {

__extension__ using Wide = unsigned __int128;

}  // namespace

RateTable::RateTable(const RateLimit& limit, std::size_t keys_max)
    : interval_(std::max<std::int64_t>(
          1, (limit.per.count() + static_cast<std::int64_t>(limit.tokens) - 1) /
                 static_cast<std::int64_t>(limit.tokens))),
      capacity_(interval_ * static_cast<std::int64_t>(limit.burst)),
      buckets_(std::max<std::size_t>(1, (keys_max + ways - 1) / ways) * ways) {}

RateTable::Bucket& RateTable::find(const Hash128& key, std::int64_t now) noexcept {
  const std::size_t sets = buckets_.size() / ways;
  const auto set = static_cast<std::size_t>((static_cast<Wide>(key.high) * sets) >> 64);
  Bucket* const first = &buckets_[set * ways];
  Bucket* fullest = first;
  for (Bucket* each = first; each != first + ways; ++each) {
    if (each->key == key.low) return *each;
    if (each->full_at < fullest->full_at) fullest = each;
  }
  *fullest = {key.low, now};
  return *fullest;
}

RateDecision RateTable::take(const Hash128& key, Instant now) noexcept {
  if (start_ == Instant::min()) start_ = now;
  const std::int64_t time = (now - start_).count();
  Bucket& bucket = find(key, time);
  const std::int64_t before = std::max(bucket.full_at, time);
  const std::int64_t after = before + interval_;
  RateDecision decision;
  if (after - time > capacity_) {
    decision.allowed = false;
    decision.retry_after = Duration(after - time - capacity_);
    decision.until_full = Duration(before - time);
    return decision;
  }
  bucket.full_at = after;
  decision.remaining = static_cast<std::uint64_t>((capacity_ - (after - time)) / interval_);
  decision.until_full = Duration(after - time);
  return decision;
}

}  // namespace weir::http
