// Sums and percentiles of histograms.
#include "tools/weir/histogram.hpp"

#include <algorithm>
#include <cmath>

namespace weir::bench {

void Histogram::add(const Histogram& other) noexcept {
  for (std::size_t index = 0; index < bucket_count; ++index) counts_[index] += other.counts_[index];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

std::uint64_t Histogram::percentile(double percent) const noexcept {
  const double share = std::clamp(percent, 0.0, 100.0) / 100;
  const auto rank = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t index = 0; index < bucket_count; ++index) {
    seen += counts_[index];
    if (seen >= std::max<std::uint64_t>(rank, 1)) {
      return index + 1 == bucket_count ? max_ : std::clamp(upper_bound_of(index), min(), max_);
    }
  }
  return 0;
}

}  // namespace weir::bench
