#include "weir/app/event_histogram.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace weir {

std::size_t EventHistogram::bucket_of(std::uint64_t value) noexcept {
  if (value < steps) return value;
  const auto shift = static_cast<unsigned>(std::bit_width(value)) - step_bits - 1;
  return (std::size_t{shift} << step_bits) + (value >> shift);
}

/// The largest value in it.
std::uint64_t EventHistogram::last_of(std::size_t bucket) noexcept {
  if (bucket < 2 * steps) return bucket;
  const std::size_t shift = (bucket >> step_bits) - 1;
  const std::uint64_t first = (bucket & (steps - 1)) + steps;
  return ((first + 1) << shift) - 1;
}

void EventHistogram::add(Duration length) noexcept {
  length = std::max(length, Duration());
  const auto value = static_cast<std::uint64_t>(length.count());
  ++buckets_[bucket_of(value)];
  ++count_;
  sum_ += static_cast<long double>(value);
  minimum_ = std::min(minimum_, length);
  maximum_ = std::max(maximum_, length);
}

void EventHistogram::merge(const EventHistogram& other) noexcept {
  for (std::size_t each = 0; each < bucket_count; ++each) buckets_[each] += other.buckets_[each];
  count_ += other.count_;
  sum_ += other.sum_;
  minimum_ = std::min(minimum_, other.minimum_);
  maximum_ = std::max(maximum_, other.maximum_);
}

Duration EventHistogram::average() const noexcept {
  if (count_ == 0) return {};
  return Duration(static_cast<Duration::rep>(sum_ / static_cast<long double>(count_)));
}

Duration EventHistogram::percentile(double percent) const noexcept {
  assert(percent >= 0 && percent <= 100);
  if (count_ == 0) return {};
  const double share = std::ceil(static_cast<double>(count_) * percent / 100);
  const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(share), 1, count_);
  std::uint64_t below = 0;
  std::size_t bucket = 0;
  while ((below += buckets_[bucket]) < rank) ++bucket;
  return std::min(Duration(static_cast<Duration::rep>(last_of(bucket))), maximum_);
}

}  // namespace weir
