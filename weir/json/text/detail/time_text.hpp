// Reads and writes points in time as RFC 3339 defines them, such as 2026-11-25T22:14:43.5Z.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace weir::json::detail {

/// A TimeScale describes a type that counts ticks since 1970-01-01T00:00:00Z.
struct TimeScale {
  std::uint64_t tick;  ///< length of a tick in nanoseconds
  std::int64_t min;
  std::int64_t max;
};

/// Reads a date and a time of day with `Z` or an offset, and converts it to UTC.
/// Returns: the number of ticks; for other texts the description of those that fit, such as
/// `a date of the calendar`. A time between two ticks does not fit, nor does a leap second.
std::expected<std::int64_t, std::string> parse_time(std::string_view text, const TimeScale& scale);

/// Returns the description of the texts that parse_time() accepts.
std::string expected_time(const TimeScale& scale);

/// Returns the time in UTC, with `Z` and 0, 3, 6 or 9 digits of a second. A year before 0 or after
/// 9999 has a sign and at least six digits, and parse_time() rejects it.
std::string time_text(std::int64_t ticks, std::uint64_t tick);

}  // namespace weir::json::detail
