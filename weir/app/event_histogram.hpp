// How often something took how long: counts in buckets that grow with the duration.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "weir/base/time.hpp"

namespace weir {

/// Durations from 0 to the longest there is, in buckets of which none is wider than a sixteenth of
/// what it holds (the idea of HdrHistogram). 8 KiB. Threads: one at a time.
class EventHistogram {
 public:
  /// A negative one counts as 0.
  void add(Duration length) noexcept;
  /// As if everything that was added to `other` had been added here.
  void merge(const EventHistogram& other) noexcept;

  std::uint64_t count() const noexcept { return count_; }
  /// All of these are 0 when nothing was added.
  Duration minimum() const noexcept { return count_ == 0 ? Duration() : minimum_; }
  Duration average() const noexcept;
  Duration maximum() const noexcept { return maximum_; }
  /// What `percent` of a hundred did not exceed: rounded up by at most a sixteenth, and never more
  /// than the maximum. From 0 to 100.
  Duration percentile(double percent) const noexcept;

 private:
  // Values below 16 have a bucket each; from there, 16 buckets for each power of two.
  static constexpr unsigned step_bits = 4;
  static constexpr std::size_t steps = std::size_t{1} << step_bits;
  static constexpr std::size_t bucket_count = (63 - step_bits + 1) * steps;

  static std::size_t bucket_of(std::uint64_t value) noexcept;
  static std::uint64_t last_of(std::size_t bucket) noexcept;

  std::array<std::uint64_t, bucket_count> buckets_{};
  std::uint64_t count_ = 0;
  long double sum_ = 0;  // nanoseconds; exact for five hundred years
  Duration minimum_ = Duration::max();
  Duration maximum_{};
};

}  // namespace weir
