// Random numbers from a seed: the same numbers on every machine.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "weir/base/time.hpp"

namespace weir::sim {

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
/// Threads: one.
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t next() noexcept {
    std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
  }
  /// Returns a number from 0 to `count` - 1.
  std::size_t below(std::size_t count) noexcept {
    assert(count > 0);
    return count == 1 ? 0 : static_cast<std::size_t>(next() % count);
  }
  /// Returns one of these values.
  template <class T, std::size_t N>
  T one_of(const std::array<T, N>& values) noexcept(std::is_nothrow_copy_constructible_v<T>) {
    return values[below(N)];
  }
  /// Returns true with the probability `rate`: never for 0, always for 1. These two rates use no
  /// random number.
  bool bernoulli(double rate) noexcept {
    if (rate <= 0) return false;
    return rate >= 1 || static_cast<double>(next() >> 11) * 0x1p-53 < rate;
  }
  /// Returns a duration from `least` to `most`, both included.
  Duration between(Duration least, Duration most) noexcept {
    if (most <= least) return least;
    const auto range = static_cast<std::uint64_t>((most - least).count()) + 1;
    return least + Duration(static_cast<std::int64_t>(next() % range));
  }

 private:
  std::uint64_t state_;
};

}  // namespace weir::sim
