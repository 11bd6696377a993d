// The age of a connection and its bytes, in little memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/base/time.hpp"

namespace weir::http {

/// The age of a connection, and the bytes that it has read and written, in 16 bytes. The age has
/// steps of 134 ms. A count begins again at 0 after 256 TiB.
/// Threads: those of the connection.
class ConnectionTotals {
 public:
  void begin(Instant now) noexcept {
    const std::uint32_t steps = steps_of(now);
    received_ = steps & 0xffffU;
    sent_ = steps >> 16U;
  }
  void add_received(std::size_t bytes) noexcept { received_ += std::uint64_t{bytes} << 16U; }
  void add_sent(std::size_t bytes) noexcept { sent_ += std::uint64_t{bytes} << 16U; }

  Duration age(Instant now) const noexcept {
    const auto begun = static_cast<std::uint32_t>(received_ & 0xffffU) |
                       static_cast<std::uint32_t>(sent_ & 0xffffU) << 16U;
    return Duration(std::int64_t{steps_of(now) - begun} << step_shift);
  }
  /// Returns the time of begin(), or a little later: at most 0.3 s.
  Instant begun(Instant now) const noexcept {
    return after(now, Duration(std::int64_t{2} << step_shift) - age(now));
  }
  std::uint64_t received() const noexcept { return received_ >> 16U; }
  std::uint64_t sent() const noexcept { return sent_ >> 16U; }

 private:
  static constexpr unsigned step_shift = 27;  // of nanoseconds
  static std::uint32_t steps_of(Instant now) noexcept {
    const auto nanoseconds = static_cast<std::uint64_t>(now.time_since_epoch().count());
    return static_cast<std::uint32_t>(nanoseconds >> step_shift);
  }

  // Each has a count in its upper 48 bits, and below it a half of the time of begin().
  std::uint64_t received_ = 0;
  std::uint64_t sent_ = 0;
};
static_assert(sizeof(ConnectionTotals) == 16, "there is one for each idle connection");

}  // namespace weir::http
