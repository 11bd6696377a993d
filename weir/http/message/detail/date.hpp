// Dates of HTTP headers (RFC 9110 §5.6.7), such as "Sun, 06 Nov 1994 08:49:37 GMT".
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "weir/base/time.hpp"

namespace weir::http {

inline constexpr std::size_t date_size = 29;

/// A formatted date, an IMF-fixdate. A server formats one per second, not one per response.
class Date {
 public:
  /// Rounds down to a full second. Every year that a WallTime can hold, 1677 to 2262, has four
  /// digits.
  explicit Date(WallTime time) noexcept;

  std::string_view text() const noexcept { return {text_.data(), text_.size()}; }

 private:
  std::array<char, date_size> text_;
};

/// Parses an HTTP-date in any of its three forms. A year of two digits is one from 1970 to 2069.
/// Returns: nullopt for any other text, and for years before 1678 or after 2261.
std::optional<WallTime> parse_http_date(std::string_view text) noexcept;

}  // namespace weir::http
