// Why a text could not be read: where in the text, where in the value, and what is wrong there.
#pragma once

#include <cstddef>
#include <string>
#include <system_error>

#include "weir/base/error.hpp"

namespace weir::json {

/// The first thing that is wrong with a text. All of it may be shown to the one who sent the text:
/// what comes from there is cut to a bounded length and has no control characters.
struct Error {
  /// Where in the value, such as `users[3].address.zip`; empty for the whole of it.
  std::string path;
  /// What is wrong, such as `expected an integer, found a string`.
  std::string what;
  /// Where in the text, in bytes from its start.
  std::size_t offset = 0;
  /// bad_input; limit_reached for what ReadOptions forbid by a limit.
  Errc code = Errc::bad_input;

  /// For example `users[3].address.zip: expected an integer, found a string (at byte 71)`.
  std::string message() const;
};

inline std::error_code make_error_code(const Error& error) noexcept {
  return make_error_code(error.code);
}

}  // namespace weir::json
