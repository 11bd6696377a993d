// Dates of HTTP headers as IMF-fixdate, "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110 §5.6.7).
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "weir/base/time.hpp"

namespace weir::http {

inline constexpr std::size_t date_size = 29;

/// A formatted date. A server formats one per second, not one per response.
class Date {
 public:
  /// Rounds down to a full second. Every year that a WallTime can hold, 1677 to 2262, has four
  /// digits.
  explicit Date(WallTime time) noexcept;

  std::string_view text() const noexcept { return {text_.data(), text_.size()}; }

 private:
  std::array<char, date_size> text_;
};

}  // namespace weir::http
