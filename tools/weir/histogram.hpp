// A histogram of times: log-linear buckets, exact to a part in 128, of a fixed small size.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weir::bench {

/// Counts values (nanoseconds, say) in buckets that are less than 0.8 % wide, as HdrHistogram does:
/// 128 of them for each power of two. Minimum, maximum and mean are exact. Values above `value_max`
/// fall into the last bucket. Threads: one at a time.
class Histogram {
 public:
  static constexpr std::uint64_t value_max = (std::uint64_t{1} << 42) - 1;  ///< 73 minutes

  /// `value`, `times` times.
  void record(std::uint64_t value, std::uint64_t times = 1) noexcept {
    counts_[index_of(value)] += times;
    count_ += times;
    sum_ += static_cast<double>(value) * static_cast<double>(times);
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
  }
  /// Everything that `other` has recorded.
  void add(const Histogram& other) noexcept;

  std::uint64_t count() const noexcept { return count_; }
  /// 0 when nothing was recorded, as for the next three.
  std::uint64_t min() const noexcept { return count_ == 0 ? 0 : min_; }
  std::uint64_t max() const noexcept { return max_; }
  double mean() const noexcept { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  /// A value that `percent` % of those recorded do not exceed, and at most 0.8 % above the least
  /// such value; percentile(100) is the maximum.
  std::uint64_t percentile(double percent) const noexcept;
  /// Calls visit(top, count) for each bucket in which there are values, from the least; `top` is
  /// the largest value that belongs there.
  template <class Visit>
  void visit(Visit visit) const {
    for (std::size_t index = 0; index < counts_.size(); ++index) {
      if (counts_[index] != 0) visit(top_of(index), counts_[index]);
    }
  }

 private:
  static constexpr unsigned sub_bits = 7;
  static constexpr std::uint64_t sub_count = 1 << sub_bits;
  // Shifts from 0 (values below 256 are exact) to 42 - 8, each with its upper half of sub-buckets.
  static constexpr std::size_t bucket_count = (42 - (sub_bits + 1) + 2) * sub_count;

  static constexpr std::size_t index_of(std::uint64_t value) noexcept {
    if (value > value_max) value = value_max;
    const auto width = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = width > sub_bits + 1 ? width - (sub_bits + 1) : 0;
    return shift * sub_count + (value >> shift);
  }
  /// The largest value of a bucket.
  static constexpr std::uint64_t top_of(std::size_t index) noexcept {
    const std::size_t shift = index < 2 * sub_count ? 0 : index / sub_count - 1;
    return ((index - shift * sub_count + 1) << shift) - 1;
  }

  std::array<std::uint64_t, bucket_count> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t min_ = UINT64_MAX;
  std::uint64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace weir::bench
