// Parsers of the headers that define a message's end and the reuse of the connection (RFC 9112
// §6, §9).
#pragma once

#include <cstdint>
#include <string_view>

#include "weir/http/syntax/parse_error.hpp"

namespace weir::http {

/// Returns the error of a `character` that is not allowed: bad_line_end for CR and LF, else
/// `otherwise`.
constexpr ParseError error_at(char character, ParseError otherwise) noexcept {
  return character == '\r' || character == '\n' ? ParseError::bad_line_end : otherwise;
}

/// Removes the first member from a comma-separated list, and returns it without white space around
/// it; empty for an empty member (RFC 9110 §5.6.1).
std::string_view take_member(std::string_view& list) noexcept;

/// Parses a Content-Length: 1*DIGIT that fits 63 bits (RFC 9110 §8.6). A list, even of equal
/// values, is repeated_content_length. Any other text that is not such a number is
/// bad_content_length.
ParseError parse_content_length(std::string_view value, std::uint64_t& length) noexcept;

/// Checks a Transfer-Encoding value (RFC 9112 §6.1).
/// Returns: ParseError::none for exactly "chunked", in any letter case. The result is
/// unknown_transfer_coding for a well-formed list with another coding, in which "chunked" is
/// absent or occurs only at the end. Any other text is bad_transfer_encoding.
ParseError check_transfer_encoding(std::string_view value) noexcept;

/// The options that a Connection header requests.
struct ConnectionOptions {
  bool close = false;
  bool keep_alive = false;
  bool upgrade = false;
};

/// Adds the options in the value to `options`. Empty list elements and unknown tokens are
/// ignored. An element that is not a token is bad_connection (RFC 9110 §7.6.1).
ParseError parse_connection(std::string_view value, ConnectionOptions& options) noexcept;

/// The expectation in an Expect header (RFC 9110 §10.1.1).
enum class Expectation : std::uint8_t { none, continue_, other };

/// Returns `other` if any member of the list is not "100-continue".
Expectation parse_expect(std::string_view value) noexcept;

}  // namespace weir::http
