// The time that a connection still waits for a peer that must keep a minimum rate.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "weir/base/time.hpp"
#include "weir/http/server/limits.hpp"

namespace weir::http {

/// The time budget behind a MinimumRate. It reads no clock; its caller reports the times. A rate
/// of 0 counts as 1.
class RateTracker {
 public:
  explicit RateTracker(const MinimumRate& rate) noexcept : rate_(rate), time_left_(rate.grace) {}

  Duration time_left() const noexcept { return time_left_; }
  bool exhausted() const noexcept { return time_left_ <= Duration::zero(); }

  /// Records that the peer was waited for during `waited` and that it moved `bytes` meanwhile.
  void record(Duration waited, std::uint64_t bytes) noexcept {
    const Duration left = time_left_ - waited;
    const Duration earned = earned_by(bytes);
    const Duration most = std::max(rate_.stall_max, rate_.grace);
    time_left_ = left > most - earned ? most : left + earned;  // left + earned may overflow
  }

 private:
  Duration earned_by(std::uint64_t bytes) const noexcept {
    constexpr std::uint64_t plenty = 1024 * 1024 * 1024;  // keeps the product below in range
    constexpr Duration second = std::chrono::seconds(1);
    const std::int64_t rate = std::max(rate_.bytes_per_second, 1U);
    return second * static_cast<std::int64_t>(std::min(bytes, plenty)) / rate;
  }

  MinimumRate rate_;
  Duration time_left_;
};

}  // namespace weir::http
