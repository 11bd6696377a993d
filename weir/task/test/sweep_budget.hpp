// The time that a test has for a sweep over many points, and the sample of its cases. Only tests
// include it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

namespace weir {

/// Bounds the time of one sweep. The environment variable WEIR_SWEEP_SECONDS sets it; without it, a
/// sweep visits every point. After the budget, a sweep visits one of about sixteen points, chosen
/// anew in each process. The trace of a failure names the point, and a run without the variable
/// visits it again.
class SweepBudget {
 public:
  /// Returns true if this process samples: sweeps have less than a minute.
  static bool samples() { return seconds() < 60; }

  /// Returns a random part of the values if this process samples: their number divided by
  /// `divisor`, rounded up, in their order. Otherwise returns all. Equal seeds give equal samples.
  template <class Value>
  static std::vector<Value> sample(std::vector<Value> values, std::size_t divisor,
                                   std::uint64_t seed = std::random_device()()) {
    if (!samples()) return values;
    std::vector<Value> chosen;
    std::mt19937_64 random(seed);
    std::ranges::sample(values, std::back_inserter(chosen),
                        static_cast<std::ptrdiff_t>((values.size() + divisor - 1) / divisor),
                        random);
    return chosen;
  }

  /// Returns the point to visit after `at`.
  std::size_t after(std::size_t at) {
    if (!spent()) return at + 1;
    return at + std::uniform_int_distribution<std::size_t>(1, 31)(random_);
  }
  /// Returns true if the budget is spent.
  bool spent() const { return std::chrono::steady_clock::now() >= end_; }

 private:
  static double seconds() {
    constexpr double unlimited = 1e6;
    const char* const given = std::getenv("WEIR_SWEEP_SECONDS");
    return given == nullptr ? unlimited : std::strtod(given, nullptr);
  }

  std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(
          std::chrono::duration<double>(seconds()));
  std::minstd_rand random_{std::random_device()()};
};

}  // namespace weir
