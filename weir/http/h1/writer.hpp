// The bytes of a response in HTTP/1.1: its head and the framing of chunks (RFC 9112 §4, §6, §7.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weir/http/message/detail/date.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/status.hpp"

namespace weir::http {

/// How the receiver finds the end of the body.
enum class BodyFraming : std::uint8_t {
  none,     ///< no field says so: 1xx, 204, 304, or a body that ends with the connection
  length,   ///< Content-Length
  chunked,  ///< Transfer-Encoding: chunked; HTTP/1.1 only
};

/// Which Connection field to send; none needs saying in the usual case of the client's version.
enum class ConnectionField : std::uint8_t { none, close, keep_alive };

/// A response's head. The status line always says HTTP/1.1 (RFC 9112 §2.3), to 1.0 too.
struct ResponseHead {
  Status status = Status::ok;
  BodyFraming framing = BodyFraming::length;
  ConnectionField connection = ConnectionField::none;
  std::uint64_t content_length = 0;  ///< with BodyFraming::length
  const Date* date = nullptr;        ///< nullptr leaves the field out
  std::string_view content_type;     ///< a valid field value; empty leaves the field out
  std::string_view lines;            ///< more fields as Fields::lines()
};

/// How many bytes write_head() needs at most.
std::size_t head_size_max(const ResponseHead& head) noexcept;

/// Writes the head with its empty line to `out`, which has room for head_size_max() bytes, and
/// returns the end. Allocates nothing. `head.content_type` must have passed valid_field().
char* write_head(const ResponseHead& head, char* out) noexcept;

/// Appends the head to `out`.
void append_head(std::string& out, const ResponseHead& head);

/// Bytes that write_chunk_size() needs at most.
inline constexpr std::size_t chunk_size_max = 18;

/// Writes the line in front of a chunk of `size` > 0 bytes and returns the end. Behind the data
/// comes `chunk_end`, behind the last chunk `last_chunk`.
char* write_chunk_size(std::uint64_t size, char* out) noexcept;

inline constexpr std::string_view chunk_end = "\r\n";
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

/// The interim answer to Expect: 100-continue.
inline constexpr std::string_view continue_head = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace weir::http
