// Puts numbers into requests, which show to which request a response belongs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"

namespace weir::bench {

/// The position of the number in a request, which is a run of '#'. The number has as many digits
/// as the run and no leading zeros, so that it is also a number in JSON.
struct NumberPlaceholder {
  static constexpr unsigned digits_max = 18;

  std::size_t offset = 0;
  unsigned digits = 0;  ///< number of digits; 0: requests have no numbers

  /// Finds the run of '#' in `request`.
  /// Errors: Errc::bad_input if `request` has no run, more than one, or one longer than
  /// digits_max.
  static Result<NumberPlaceholder> find(std::string_view request);

  explicit operator bool() const noexcept { return digits != 0; }
  /// Returns the number of a connection's first request. Connections begin far from each other.
  std::uint64_t first(unsigned connection) const noexcept;
  /// Returns the number of the request after number `number`. The numbers start over when the
  /// digits are exhausted.
  std::uint64_t next(std::uint64_t number) const noexcept;
  std::string text(std::uint64_t number) const { return std::to_string(number); }
};

}  // namespace weir::bench
