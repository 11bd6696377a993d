// Error describes why a text could not be read: path in the value, reason and position in the
// text.
#pragma once

#include <cstddef>
#include <string>
#include <system_error>

#include "weir/base/result.hpp"

namespace weir::json {

/// An Error is the first error in a text. It may be shown to the sender of the text. Parts of the
/// text in it are cut to a bounded length and have no control characters.
struct Error {
  /// The path in the value, such as `users[3].address.zip`; empty for the whole value.
  std::string path;
  /// The reason, such as `expected an integer, found a string`.
  std::string what;
  /// The position in the text, in bytes from its start.
  std::size_t offset = 0;
  /// The error code: limit_reached if a limit of ReadOptions is exceeded, else bad_input.
  Errc code = Errc::bad_input;
  /// The path as a JSON pointer (RFC 6901), such as `/users/3/address/zip`, with the names as they
  /// were sent. A pointer of more than 512 bytes is cut to an enclosing value.
  std::string pointer = {};

  /// Returns, for example,
  /// `users[3].address.zip: expected an integer, found a string (at byte 71)`.
  std::string message() const {
    std::string message;
    if (!path.empty()) message.append(path).append(": ");
    message.append(what).append(" (at byte ").append(std::to_string(offset)).append(")");
    return message;
  }
};

inline std::error_code make_error_code(const Error& error) noexcept {
  return make_error_code(error.code);
}

}  // namespace weir::json
