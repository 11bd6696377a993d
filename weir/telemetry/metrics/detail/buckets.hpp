// The buckets of histograms: explicit bounds, and exponential buckets of schema 3.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::telemetry::detail {

/// The exponential buckets of Prometheus's native histograms with schema 3: eight in each factor of
/// two. Bucket `key` has the values above 2^((key - 1) / 8) up to 2^(key / 8).
struct NativeBuckets {
  static constexpr int schema = 3;
  static constexpr int per_octave = 8;
  /// 30 factors of two: a microsecond to 18 minutes.
  static constexpr int count = 30 * per_octave;

  /// Returns the key of the bucket of a positive finite number.
  static int key_of(double value) noexcept {
    // 0.5 * 2^(i / 8): the fractions of std::frexp() that divide a factor of two, and its end.
    constexpr std::array bounds{0.5,
                                0.5452538663326288,
                                0.5946035575013605,
                                0.6484197773255048,
                                0.7071067811865475,
                                0.7711054127039704,
                                0.8408964152537144,
                                0.9170040432046711,
                                1.0};
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const int exponent = static_cast<int>(bits >> 52) - 1022;
    const auto fraction =
        std::bit_cast<double>((bits & 0x000fffffffffffff) | std::uint64_t{1022} << 52);
    // The first three bits of the fraction give x with 2^x <= 1 + x < 2^(x + 2 / 8). So the bucket
    // is this one or one of the next two, which needs no branch.
    const std::size_t least = bits >> 49 & 7;
    const int index = static_cast<int>(least) + (bounds[least] < fraction ? 1 : 0) +
                      (bounds[least + 1] < fraction ? 1 : 0);
    return (exponent - 1) * per_octave + index;
  }
};

/// The cells of a histogram, in this order: the sum; the explicit buckets, the last one without an
/// upper bound; then, if it has native buckets, the zero bucket and NativeBuckets::count others.
/// The last of them also has all larger values.
struct HistogramLayout {
  std::vector<double> bounds;
  bool native = false;
  int zero_key = 0;  ///< the values up to 2^(zero_key / 8) are in the zero bucket

  std::size_t native_offset() const noexcept { return bounds.size() + 2; }
  std::size_t cell_count() const noexcept {
    return native_offset() + (native ? std::size_t{1} + NativeBuckets::count : 0);
  }
  /// Returns the index of the explicit bucket.
  std::size_t bucket_of(double value) const noexcept {
    std::size_t index = 0;
    while (index < bounds.size() && value > bounds[index]) ++index;
    return index;
  }
  /// Returns the index of the native bucket; 0 is the zero bucket.
  std::size_t native_bucket_of(double value) const noexcept {
    if (!(value > 0)) return 0;
    const int index = NativeBuckets::key_of(value) - zero_key;
    if (index <= 0) return 0;
    return static_cast<std::size_t>(index < NativeBuckets::count ? index : NativeBuckets::count);
  }
  /// Returns the cells that a value is counted in.
  struct Place {
    double value = 0;
    std::size_t bucket = 0;         ///< the cell of the explicit bucket
    std::size_t native_bucket = 0;  ///< the cell of the native bucket, if the layout has them
  };
  Place place_of(double value) const noexcept {
    return {value, 1 + bucket_of(value), native ? native_offset() + native_bucket_of(value) : 0};
  }
  double zero_threshold() const noexcept {
    return std::exp2(static_cast<double>(zero_key) / NativeBuckets::per_octave);
  }
  bool operator==(const HistogramLayout&) const = default;
};

}  // namespace weir::telemetry::detail
