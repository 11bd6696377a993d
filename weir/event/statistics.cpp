// Counts and times events.
#include "weir/event/statistics.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace weir {

EventStatistics::EventStatistics(CoreEvents& events)
    : clock_(events.loop().platform()),
      before_(events.before([this](const AnyEvent&) {
        started_at_ = clock_.now();
        return EventVerdict::pass;
      })),
      after_(events.after([this](const AnyEvent& event, const EventOutcome& outcome) {
        if (!outcome.vetoed) add(event, clock_.now() - started_at_);
      })) {}

void EventStatistics::add(const AnyEvent& event, Duration length) {
  const std::size_t index = event.type_index();
  if (index >= entries_.size()) entries_.resize(index + 1);
  auto& entry = entries_[index];
  if (entry == nullptr) entry = std::make_unique<Entry>(*event.type_);
  entry->times.add(length);
}

EventSummary EventStatistics::Entry::summary() const noexcept {
  return {.type = type->name,
          .count = times.count(),
          .minimum = times.minimum(),
          .average = times.average(),
          .maximum = times.maximum(),
          .p99 = times.percentile(99)};
}

std::vector<EventSummary> EventStatistics::all() const {
  std::vector<EventSummary> summaries;
  for (const auto& entry : entries_) {
    if (entry != nullptr) summaries.push_back(entry->summary());
  }
  return summaries;
}

EventSummary EventStatistics::of(const detail::EventType& type) const noexcept {
  for (const auto& entry : entries_) {
    if (entry != nullptr && entry->type == &type) return entry->summary();
  }
  return {.type = type.name};
}

std::size_t EventHistogram::bucket_of(std::uint64_t value) noexcept {
  if (value < sub_buckets) return value;
  const auto shift = static_cast<unsigned>(std::bit_width(value)) - sub_bucket_bits - 1;
  return (std::size_t{shift} << sub_bucket_bits) + (value >> shift);
}

/// Returns the largest value in `bucket`.
std::uint64_t EventHistogram::bucket_max(std::size_t bucket) noexcept {
  if (bucket < 2 * sub_buckets) return bucket;
  const std::size_t shift = (bucket >> sub_bucket_bits) - 1;
  const std::uint64_t first = (bucket & (sub_buckets - 1)) + sub_buckets;
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
  return std::min(Duration(static_cast<Duration::rep>(bucket_max(bucket))), maximum_);
}

}  // namespace weir
