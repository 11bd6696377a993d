// The reasons for which a request is rejected: one name for each, to count and to explain them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "weir/http/syntax/status.hpp"

namespace weir::http {

/// The reason why the bytes of a peer were rejected. A server counts the reasons in an array of
/// `parse_error_count` numbers. A ParseError converts to std::error_code (category "weir.http"),
/// from which to_status() finds the status again.
enum class ParseError : std::uint8_t {
  none,  ///< no error

  // The request line
  bad_line_end,           ///< a CR or LF that is not part of CRLF, anywhere in a head or trailer
  too_many_empty_lines,   ///< more empty lines before a request than the limit
  bad_method,             ///< the method is not a token followed by one space
  bad_target,             ///< a byte that RFC 3986 does not allow in a target, or no target
  bad_target_form,        ///< a form that the method does not allow, or a scheme other than http(s)
  bad_target_authority,   ///< a bad host, port or user info in an absolute form; no port in CONNECT
  bad_escape,             ///< '%' without two hexadecimal digits
  nul_escape,             ///< "%00"
  dot_segment,            ///< a "." or ".." segment, encoded or not
  bad_version,            ///< not "HTTP/" DIGIT "." DIGIT, or extra bytes after the version
  unsupported_version,    ///< a well-formed version with a major number other than 1
  http2_preface,          ///< "PRI * HTTP/2.0" on a connection that does not serve HTTP/2
  request_line_too_long,  ///< longer than HeadLimits::request_line_max
  method_too_long,        ///< the same, and its method is longer than every registered one
  unsupported_protocol,   ///< an extended CONNECT (RFC 8441) for another protocol than websocket

  // Headers
  bad_header_name,               ///< a name that is empty or not a token
  space_before_colon,            ///< white space between a header's name and its colon
  folded_line,                   ///< a line that starts with white space
  bad_header_value,              ///< a control character in a value
  too_many_headers,              ///< more lines than HeadLimits::headers_max
  headers_too_long,              ///< more bytes than HeadLimits::headers_bytes_max
  missing_host,                  ///< an HTTP/1.1 request without Host
  repeated_host,                 ///< two Host headers
  bad_host,                      ///< a Host value that is not exactly one host[:port]
  bad_content_length,            ///< a length that is not digits only, or does not fit 63 bits
  repeated_content_length,       ///< two Content-Length headers or a list, with equal values or not
  bad_transfer_encoding,         ///< not a list of codings with one "chunked", at its end
  unknown_transfer_coding,       ///< a well-formed coding that is not "chunked"
  repeated_transfer_encoding,    ///< two Transfer-Encoding headers
  unexpected_transfer_encoding,  ///< Transfer-Encoding in HTTP/1.0
  both_lengths,                  ///< Content-Length together with Transfer-Encoding
  bad_connection,                ///< a Connection header that is not a list of tokens
  unknown_expectation,           ///< an Expect other than 100-continue

  // Fields of HTTP/2
  malformed_fields,  ///< a request that RFC 9113 §8.1.1 calls malformed; its stream is reset
  bad_field_block,   ///< bytes that HPACK cannot decode; the connection ends

  // Chunked bodies
  bad_chunk_size,             ///< a chunk size that is not hexadecimal digits
  chunk_size_too_large,       ///< more than 63 bits or 16 digits, leading zeros included
  bad_chunk_extension,        ///< not of the form *( ";" name [ "=" ( token / quoted-string ) ] )
  chunk_line_too_long,        ///< longer than ChunkLimits::line_max
  chunk_extensions_too_long,  ///< more than ChunkLimits::extensions_max in one message
  bad_chunk_end,              ///< chunk data that is not followed by CRLF
  forbidden_trailer,          ///< a trailer field that would change framing or routing
  too_many_trailers,          ///< more lines than ChunkLimits::trailers_max
  trailers_too_long,          ///< more bytes than ChunkLimits::trailers_bytes_max

  // Responses, which a client receives
  bad_status,            ///< no status from 100 to 999 after the version, or a bad byte after it
  status_line_too_long,  ///< longer than HeadLimits::request_line_max
  too_many_interim,      ///< more 1xx responses than ResponseLimits::interim_max
  unexpected_upgrade,    ///< 101 (Switching Protocols), for which the client has not asked
  unexpected_response,   ///< bytes of a response without a request

  // Errors that the connection detects, counted in the same table
  head_timed_out,  ///< the head did not arrive in time
  body_timed_out,  ///< the body arrived too slowly
  body_too_large,  ///< a body that is longer than the route allows
};

inline constexpr std::size_t parse_error_count =
    static_cast<std::size_t>(ParseError::body_too_large) + 1;

/// Returns the status that answers this error: 400 unless a better one exists, 200 for `none`.
Status to_status(ParseError error) noexcept;

/// Returns a short name for counters and logs, such as "bad_host".
/// Lifetime: the text lives as long as the process.
std::string_view name_of(ParseError error) noexcept;

/// Returns the category of ParseError; its name is "weir.http".
const std::error_category& parse_error_category() noexcept;

inline std::error_code make_error_code(ParseError error) noexcept {
  return {static_cast<int>(error), parse_error_category()};
}

}  // namespace weir::http

template <>
struct std::is_error_code_enum<weir::http::ParseError> : std::true_type {};
