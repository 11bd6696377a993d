// How long a connection still waits for a peer that must keep up a minimum rate.
#pragma once

#include <algorithm>
#include <cstdint>

#include "weir/base/time.hpp"
#include "weir/http/limits.hpp"

namespace weir::http {

/// The account behind a MinimumRate: time that is left. It knows no clock, only what it is told.
class Patience {
 public:
  explicit Patience(const MinimumRate& rate) noexcept : rate_(rate), left_(rate.grace) {}

  Duration left() const noexcept { return left_; }
  bool exhausted() const noexcept { return left_ <= Duration::zero(); }

  /// The peer was waited for so long, and meanwhile so many bytes came of it.
  void note(Duration waited, std::uint64_t bytes) noexcept {
    left_ = std::min(left_ - waited + earned_by(bytes), std::max(rate_.stall_max, rate_.grace));
  }

 private:
  Duration earned_by(std::uint64_t bytes) const noexcept {
    constexpr std::uint64_t plenty = 1024 * 1024 * 1024;  // keeps the product below in range
    constexpr Duration second = std::chrono::seconds(1);
    return second * static_cast<std::int64_t>(std::min(bytes, plenty)) / rate_.bytes_per_second;
  }

  MinimumRate rate_;
  Duration left_;
};

}  // namespace weir::http
