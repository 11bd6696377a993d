// The priority of a response (RFC 9218).
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::http {

struct Priority {
  static constexpr std::uint8_t urgency_max = 7;

  std::uint8_t urgency = 3;  ///< 0 is the most urgent one
  bool incremental = false;  ///< parts of the response are useful before the whole

  bool operator==(const Priority&) const = default;
};

/// Reads the value of the field `priority`, or of PRIORITY_UPDATE: `u=1, i`. The last value of a
/// parameter counts. Parameters that are unknown or invalid are ignored, and so is all that follows
/// a syntax error.
Priority parse_priority(std::string_view value) noexcept;

}  // namespace weir::http
