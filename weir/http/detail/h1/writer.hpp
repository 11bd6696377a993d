// The writer of HTTP/1.1 responses: heads and the framing of chunks (RFC 9112 §4, §6, §7.1).
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "weir/http/message/detail/date.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/status.hpp"

namespace weir::http {

/// The media type of a cached head. is() compares addresses, because media types are constants of
/// the program.
/// Threads: one at a time.
class CachedMediaType {
 public:
  /// The maximum length of a media type. Longer ones are too rare to be cached.
  static constexpr std::size_t size_max = 42;

  bool is(std::string_view type) const noexcept {
    return data_ == type.data() && size_ == type.size();
  }
  bool empty() const noexcept { return size_ == 0; }
  void set(std::string_view type) noexcept {
    data_ = type.data();
    size_ = type.size();
  }

 private:
  const char* data_ = nullptr;
  std::size_t size_ = size_max + 1;  // no media type yet
};

// The cached head of most responses: status 200, a media type, a Content-Length and keep-alive.

/// Writes the same bytes as write_head() for such a response, with one copy. The bytes before the
/// length are equal in consecutive responses while the date and the media type do not change.
/// Threads: one at a time.
class ResponseHeadCache {
  static constexpr std::size_t start_max = 128;

 public:
  static constexpr std::size_t type_size_max = CachedMediaType::size_max;
  /// The number of bytes that write() needs.
  static constexpr std::size_t size_max = start_max + 24;

  /// Returns true if the cache holds the head for this media type.
  bool is_for(std::string_view content_type) const noexcept { return type_.is(content_type); }
  /// Fills the cache for this date and media type. An empty media type leaves the header out.
  void begin(const Date& date, std::string_view content_type) noexcept;

  /// Writes the head with this length to `out`, which has room for size_max bytes.
  /// Returns: the end of the head.
  char* write(std::uint64_t content_length, char* out) const noexcept;

 private:
  std::array<char, start_max> start_{};
  std::size_t start_size_ = 0;
  CachedMediaType type_;
};

// Functions that append pieces of a head.

inline constexpr std::string_view empty_line = "\r\n\r\n";  // after another line
inline constexpr std::size_t digits_max = 20;

/// Copies `text` to `out`. Returns the end of the copy, as all of these functions do.
[[gnu::always_inline]] inline char* append(char* out, std::string_view text) noexcept {
  if (!text.empty()) std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

/// Appends a text that is usually 16 to 32 bytes long, with two overlapping copies and no call.
[[gnu::always_inline]] inline char* append_short(char* out, std::string_view text) noexcept {
  constexpr std::size_t half = 16;
  if (text.size() < half || text.size() > 2 * half) return append(out, text);
  std::memcpy(out, text.data(), half);
  std::memcpy(out + text.size() - half, text.data() + text.size() - half, half);
  return out + text.size();
}

/// Appends a number in decimal, which usually has few digits. `out` has room for digits_max
/// bytes.
[[gnu::always_inline]] inline char* append_number(char* out, std::uint64_t number) noexcept {
  if (number >= 100) return std::to_chars(out, out + digits_max, number).ptr;
  if (number >= 10) *out++ = static_cast<char>('0' + number / 10);
  *out++ = static_cast<char>('0' + number % 10);
  return out;
}

/// The way in which the receiver finds the end of the body.
enum class BodyFraming : std::uint8_t {
  none,     ///< no header: 1xx, 204, 304, or a body that ends with the connection
  length,   ///< Content-Length
  chunked,  ///< Transfer-Encoding: chunked; HTTP/1.1 only
};

/// The Connection header to send; `none` if the default of the client's HTTP version is right.
enum class ConnectionHeader : std::uint8_t { none, close, keep_alive };

/// The head of a response. The status line always has HTTP/1.1, also for HTTP/1.0 clients (RFC
/// 9112 §2.3).
struct ResponseHead {
  Status status = Status::ok;
  BodyFraming framing = BodyFraming::length;
  ConnectionHeader connection = ConnectionHeader::none;
  bool has_upgrade = false;  ///< `lines` has Upgrade, which Connection names (RFC 9110 §7.8)
  std::uint64_t content_length = 0;  ///< used with BodyFraming::length
  const Date* date = nullptr;        ///< the Date header; nullptr leaves it out
  std::string_view content_type;     ///< a valid header value; empty leaves the header out
  std::string_view lines;            ///< additional headers as Headers::lines()
};

/// Returns the number of bytes that write_head() needs at most.
std::size_t head_size_max(const ResponseHead& head) noexcept;

/// Writes the head with its empty line to `out`, which has room for head_size_max() bytes.
/// Allocates nothing. `head.content_type` must have passed is_valid_header().
/// Returns: the end of the head.
char* write_head(const ResponseHead& head, char* out) noexcept;

/// Appends the head with its empty line to `out`.
void append_head(std::string& out, const ResponseHead& head);

/// The number of bytes that write_chunk_size() needs at most.
inline constexpr std::size_t chunk_size_max = 18;

/// Writes the line before a chunk of `size` > 0 bytes to `out`. The caller sends `chunk_end`
/// after the data and `last_chunk` after the last chunk.
/// Returns: the end of the line.
char* write_chunk_size(std::uint64_t size, char* out) noexcept;

inline constexpr std::string_view chunk_end = "\r\n";
/// The last chunk of a body without trailers.
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

/// Returns the number of bytes that write_last_chunk() writes.
constexpr std::size_t last_chunk_size(std::string_view trailers) noexcept {
  return last_chunk.size() + trailers.size();
}
/// Writes the last chunk with trailers, which are given as Headers::lines().
/// Returns: its end.
char* write_last_chunk(std::string_view trailers, char* out) noexcept;

/// The interim response to Expect: 100-continue.
inline constexpr std::string_view continue_head = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace weir::http
