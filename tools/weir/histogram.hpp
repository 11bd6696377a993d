// A histogram of times with log-linear buckets, exact to 1/128, of a small fixed size.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weir::bench {

/// Counts values, for example nanoseconds, in buckets that are less than 0.8 % wide. It has 128
/// buckets for each power of two, as HdrHistogram does. Minimum, maximum and mean are exact. The
/// last bucket takes all values above `value_max`.
/// Threads: one at a time.
class Histogram {
 public:
  static constexpr std::uint64_t value_max = (std::uint64_t{1} << 42) - 1;  ///< 73 minutes

  /// Records `value` `times` times.
  void record(std::uint64_t value, std::uint64_t times = 1) noexcept {
    counts_[index_of(value)] += times;
    count_ += times;
    sum_ += static_cast<double>(value) * static_cast<double>(times);
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
  }
  /// Adds everything that `other` has recorded.
  void add(const Histogram& other) noexcept;

  std::uint64_t count() const noexcept { return count_; }
  /// Returns the least recorded value, or 0 if the histogram is empty. max(), mean() and
  /// percentile() also return 0 then.
  std::uint64_t min() const noexcept { return count_ == 0 ? 0 : min_; }
  std::uint64_t max() const noexcept { return max_; }
  double mean() const noexcept { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  /// Returns a value that `percent` % of the recorded values do not exceed. It is at most 0.8 %
  /// above the least such value. percentile(100) is the maximum.
  std::uint64_t percentile(double percent) const noexcept;
  /// Calls visit(top, count) for each bucket that is not empty, in ascending order. `top` is the
  /// largest value that belongs to the bucket.
  template <class Visit>
  void visit(Visit visit) const {
    for (std::size_t index = 0; index < counts_.size(); ++index) {
      if (counts_[index] != 0) visit(upper_bound_of(index), counts_[index]);
    }
  }

 private:
  static constexpr unsigned sub_bits = 7;
  static constexpr std::uint64_t sub_count = 1 << sub_bits;
  // Shifts go from 0 to 42 - 8, each with its upper half of sub-buckets. Values below 256 are
  // exact.
  static constexpr std::size_t bucket_count = (42 - (sub_bits + 1) + 2) * sub_count;

  static constexpr std::size_t index_of(std::uint64_t value) noexcept {
    if (value > value_max) value = value_max;
    const auto width = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = width > sub_bits + 1 ? width - (sub_bits + 1) : 0;
    return shift * sub_count + (value >> shift);
  }
  /// Returns the largest value of a bucket.
  static constexpr std::uint64_t upper_bound_of(std::size_t index) noexcept {
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
