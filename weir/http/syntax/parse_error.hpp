// Why a request was refused: one name per reason, so that refusals can be counted and explained.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "weir/http/syntax/status.hpp"

namespace weir::http {

/// Why the bytes of a peer were refused. One value per reason, so that a server counts in an array
/// of `refusal_count` numbers. Converts to std::error_code (category "weir.http"), from which
/// status_for() finds the status again.
enum class Refusal : std::uint8_t {
  none,  ///< nothing is wrong

  // The request line
  bad_line_end,           ///< a CR or LF that is not part of CRLF, anywhere in a head or trailer
  too_many_empty_lines,   ///< more empty lines before a request than the limit
  bad_method,             ///< the method is not a token followed by one space
  bad_target,             ///< a byte that RFC 3986 does not allow in a target, or no target
  bad_target_form,        ///< a form that this method does not take, or a scheme other than http(s)
  bad_target_authority,   ///< host or port of an absolute or authority form, or user info in it
  bad_escape,             ///< '%' without two hexadecimal digits
  nul_escape,             ///< "%00"
  dot_segment,            ///< a "." or ".." segment, encoded or not
  bad_version,            ///< not "HTTP/" DIGIT "." DIGIT, or something behind it
  unsupported_version,    ///< a well-formed version with another major number than 1
  http2_preface,          ///< "PRI * HTTP/2.0" where HTTP/2 is not served
  request_line_too_long,  ///< longer than HeadLimits::request_line_max

  // Fields
  bad_field_name,                ///< an empty name or one that is not a token
  space_before_colon,            ///< white space between a field's name and its colon
  folded_line,                   ///< a line that starts with white space
  bad_field_value,               ///< a control character in a value
  too_many_fields,               ///< more lines than HeadLimits::fields_max
  fields_too_long,               ///< more bytes than HeadLimits::fields_bytes_max
  missing_host,                  ///< HTTP/1.1 without Host
  repeated_host,                 ///< two Host fields
  bad_host,                      ///< not one host[:port]
  bad_content_length,            ///< not digits only, or beyond 63 bits
  repeated_content_length,       ///< two Content-Length fields or a list, equal or not
  bad_transfer_encoding,         ///< not a list of codings that ends with one "chunked"
  unknown_transfer_coding,       ///< a well-formed coding that is not "chunked"
  repeated_transfer_encoding,    ///< two Transfer-Encoding fields
  unexpected_transfer_encoding,  ///< Transfer-Encoding in HTTP/1.0
  both_lengths,                  ///< Content-Length and Transfer-Encoding
  bad_connection,                ///< Connection is not a list of tokens
  unknown_expectation,           ///< an Expect other than 100-continue

  // Chunked bodies
  bad_chunk_size,             ///< not hexadecimal digits
  chunk_size_too_large,       ///< beyond 63 bits or 16 digits, leading zeros included
  bad_chunk_extension,        ///< not *( ";" name [ "=" ( token / quoted-string ) ] )
  chunk_line_too_long,        ///< longer than ChunkLimits::line_max
  chunk_extensions_too_long,  ///< more than ChunkLimits::extensions_max in one message
  bad_chunk_end,              ///< data that is not followed by CRLF
  forbidden_trailer,          ///< a trailer field that would change framing or routing
  too_many_trailers,          ///< more lines than ChunkLimits::trailers_max
  trailers_too_long,          ///< more bytes than ChunkLimits::trailers_bytes_max

  // What a connection decides, counted in the same table
  head_timed_out,  ///< the head did not arrive in time
  body_timed_out,  ///< the body arrived too slowly
  body_too_large,  ///< longer than the route allows
};

inline constexpr std::size_t refusal_count = static_cast<std::size_t>(Refusal::body_too_large) + 1;

/// The status that answers this refusal: 400 unless a better one exists. 200 for `none`.
Status status_of(Refusal refusal) noexcept;

/// A short name for counters and logs, such as "bad_host". Lives as long as the process.
std::string_view name_of(Refusal refusal) noexcept;

/// The category of Refusal as an error; its name is "weir.http".
const std::error_category& refusal_category() noexcept;

inline std::error_code make_error_code(Refusal refusal) noexcept {
  return {static_cast<int>(refusal), refusal_category()};
}

}  // namespace weir::http

template <>
struct std::is_error_code_enum<weir::http::Refusal> : std::true_type {};
