// The account of a peer's work: what it makes the server do, against the requests that it
// completes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "weir/base/time.hpp"

namespace weir::http {

/// The units that events of a connection cost or earn. A client may reset as many requests as it
/// completes, and acknowledge each large DATA frame, without a loss. DATA pays for frames only: a
/// reset discards the work of a whole request, and would otherwise cost an attacker some frames of
/// 256 bytes.
struct WorkUnits {
  static constexpr std::int32_t frame = 1;      ///< a control frame, an empty frame, a CONTINUATION
  static constexpr std::int32_t reset = 10;     ///< a reset of either side, or a refused stream
  static constexpr std::int32_t request = 10;   ///< earned by a request that ended normally
  static constexpr std::int32_t sent_data = 2;  ///< earned back by DATA that was sent
  static constexpr std::int32_t received_data = 1;  ///< earned back by DATA that was received
  /// The least content of DATA that earns something.
  static constexpr std::uint32_t data_bytes_min = 256;
  /// The number of open streams for which a new initial window costs as much as a frame.
  static constexpr std::uint32_t streams_per_frame = 8;
};

/// The limits of a WorkAccount.
struct WorkLimits {
  std::int32_t burst = 10'000;                      ///< units of a full account, 100 to 10^9
  std::int32_t refill_per_second = 1'000;           ///< units that time alone earns, at least 1
  Duration delay = std::chrono::milliseconds(100);  ///< length of a delay
  /// Delays until the account is half full again; above 65,535: any number.
  std::uint32_t delays_max = 20;
};

/// A WorkAccount is a balance of units. Work that serves no request spends units; completed
/// requests and time earn them. DATA earns back what frames have spent, and nothing else. An empty
/// account delays the peer. After `delays_max` delays the peer has exhausted it. A RateLimiter
/// would not do: requests earn nothing there, and it has waiters and a timer. The account reads no
/// clock. Lifetime: the limits outlive the account.
class WorkAccount {
 public:
  enum class Verdict : std::uint8_t {
    open,       ///< go on
    empty,      ///< wait for WorkLimits::delay and check again
    exhausted,  ///< end the connection
  };

  WorkAccount(const WorkLimits& limits, Instant now) noexcept
      : limits_(&limits), balance_(limits.burst), refilled_at_(now) {}

  std::int32_t balance() const noexcept { return balance_; }
  bool empty() const noexcept { return balance_ <= 0; }
  void spend(std::int32_t units) noexcept { balance_ = std::max(balance_ - units, -debt_max); }
  /// Spends units that earn_by_data() may earn back.
  void spend_on_frames(std::int32_t units) noexcept {
    spend(units);
    spent_on_frames_ =
        static_cast<std::uint16_t>(std::min<std::int32_t>(spent_on_frames_ + units, count_max));
  }
  void earn_by_data(std::int32_t units) noexcept {
    const std::int32_t earned = std::min<std::int32_t>(units, spent_on_frames_);
    if (earned == 0) return;
    spent_on_frames_ = static_cast<std::uint16_t>(spent_on_frames_ - earned);
    earn(earned);
  }
  void earn(std::int32_t units) noexcept {
    balance_ = std::min(balance_ + units, limits_->burst);
    if (balance_ > limits_->burst / 2) delays_ = 0;
  }

  /// Adds what time has earned, and returns if the peer may go on. Times before the last call count
  /// as the time of that call.
  Verdict check(Instant now) noexcept {
    refill(now);
    if (!empty()) return Verdict::open;
    if (delays_ == limits_->delays_max) return Verdict::exhausted;
    if (delays_ < count_max) ++delays_;
    return Verdict::empty;
  }

 private:
  static constexpr std::int32_t debt_max = 1'000'000;  // keeps the sums in range
  static constexpr std::int32_t count_max = 0xFFFF;

  void refill(Instant now) noexcept {
    if (now <= refilled_at_) return;
    constexpr Duration plenty = std::chrono::hours(1);  // keeps the product in range
    const auto passed = std::chrono::floor<std::chrono::microseconds>(
        std::min<Duration>(now - refilled_at_, plenty));
    const std::int64_t units = passed.count() * limits_->refill_per_second / 1'000'000;
    const std::int64_t room = std::int64_t{limits_->burst} - balance_;
    refilled_at_ = now;
    earn(static_cast<std::int32_t>(std::min(units, room)));
  }

  const WorkLimits* limits_;
  std::int32_t balance_;
  std::uint16_t delays_ = 0;
  std::uint16_t spent_on_frames_ = 0;  // units that DATA has not earned back
  Instant refilled_at_;
};

}  // namespace weir::http
