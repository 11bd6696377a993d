// The fields that decide where a message ends and what becomes of the connection (RFC 9112 §6, §9).
#pragma once

#include <cstdint>
#include <string_view>

#include "weir/http/syntax/parse_error.hpp"

namespace weir::http {

/// Reads a Content-Length: 1*DIGIT that fits 63 bits (RFC 9110 §8.6). A list, even of equal
/// values, is repeated_content_length; everything else that is not a number bad_content_length.
Refusal parse_content_length(std::string_view value, std::uint64_t& length) noexcept;

/// Refusal::none if the value is exactly "chunked", in any letter case (RFC 9112 §6.1).
/// unknown_transfer_coding for a well-formed list with another coding, unless "chunked" stands
/// twice or not at the end; then, as for every other text, bad_transfer_encoding.
Refusal check_transfer_encoding(std::string_view value) noexcept;

/// What a Connection field asks for.
struct ConnectionOptions {
  bool close = false;
  bool keep_alive = false;
  bool upgrade = false;
};

/// Adds what the value asks for to `options`. Empty list elements are passed over, unknown tokens
/// too; what is not a token is bad_connection (RFC 9110 §7.6.1).
Refusal parse_connection(std::string_view value, ConnectionOptions& options) noexcept;

/// What an Expect field asks for (RFC 9110 §10.1.1).
enum class Expectation : std::uint8_t { none, continue_, other };

/// `other` if any member of the list is not "100-continue".
Expectation parse_expect(std::string_view value) noexcept;

}  // namespace weir::http
