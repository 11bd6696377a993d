// Numbers in requests, by which the response to one is told from the response to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"

namespace weir::bench {

/// Where in a request its number stands: in place of a run of '#', with as many digits and without
/// leading zeros, so that it is a number in JSON too.
struct Numbering {
  static constexpr unsigned digits_max = 18;

  std::size_t offset = 0;
  unsigned digits = 0;  ///< 0: requests have no numbers

  /// The run of '#' in `request`. Errors: Errc::bad_input when there is not exactly one, or when it
  /// is longer than digits_max.
  static Result<Numbering> in(std::string_view request);

  explicit operator bool() const noexcept { return digits != 0; }
  /// That of a connection's first request; far from those of other connections.
  std::uint64_t first(unsigned connection) const noexcept;
  /// That of the request behind number `number`; begins again where the digits end.
  std::uint64_t next(std::uint64_t number) const noexcept;
  std::string text(std::uint64_t number) const { return std::to_string(number); }
};

}  // namespace weir::bench
