// The writers of heads of HTTP/2, as HPACK field blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/detail/h2/hpack_encoder.hpp"
#include "weir/http/detail/h2/session.hpp"
#include "weir/http/message/detail/date.hpp"

namespace weir::http {

/// Returns the number of bytes that write_response_block() needs at most.
std::size_t response_block_size_max(const ResponseHead& head) noexcept;

/// Writes the head as a field block. The parts that only HTTP/1 has, `connection` and chunks, are
/// left out. So are the lines of such headers; see write_field_lines(). Allocates nothing.
/// Returns: the end of the block.
char* write_response_block(const ResponseHead& head, char* out) noexcept;

/// Returns the number of bytes that write_field_lines() needs at most.
std::size_t field_lines_size_max(std::string_view lines) noexcept;

/// Writes headers or trailers, which are given as Headers::lines(), as fields. The headers that
/// describe a connection of HTTP/1.1 are left out (RFC 9113 §8.2.2), and so is TE unless it is
/// "trailers". Allocates nothing.
/// Returns: the end of the fields.
char* write_field_lines(std::string_view lines, char* out) noexcept;

/// Ends an open stream behind its body, with trailers if there are some. They are given as
/// Headers::lines().
/// Errors: throws std::bad_alloc.
void send_end(H2Session& session, HpackEncoderState& encoder, H2Stream& stream,
              std::string_view trailers);

/// The block of most responses: status 200, a media type and a Content-Length; see
/// ResponseHeadCache. A block inserts the date and the media type into the dynamic table of the
/// client. The next blocks refer to them until the date or the media type changes.
/// Threads: one at a time.
class ResponseBlockCache {
  static constexpr std::size_t start_max = 128;

 public:
  /// The number of bytes that write() needs.
  static constexpr std::size_t size_max =
      HpackEncoderState::size_update_max + start_max + 3 + digits_max;

  /// Returns true if the cache holds the block for this media type.
  bool is_for(std::string_view content_type) const noexcept { return type_.is(content_type); }
  /// Fills the cache for this date and media type, of at most ResponseHeadCache::type_size_max
  /// bytes. An empty media type leaves the field out. Each call for a server has another `number`.
  void begin(const Date& date, std::string_view content_type, std::uint64_t number) noexcept;

  /// Writes the block with this length to `out`, which has room for size_max bytes, as the next
  /// block of the connection of `encoder`.
  /// Returns: the end of the block.
  char* write(std::uint64_t content_length, HpackEncoderState& encoder, char* out) const noexcept;

 private:
  std::uint64_t number_ = 0;
  std::array<char, start_max> start_{};
  std::size_t start_size_ = 0;
  CachedMediaType type_;
};

/// Returns the number of bytes that write_request_block() needs at most.
std::size_t request_block_size_max(std::string_view scheme, std::string_view head) noexcept;

/// Returns true if the field list of the block has at most `bytes_max` bytes (RFC 9113 §6.5.2).
bool request_list_fits(std::string_view scheme, std::string_view head,
                       std::size_t bytes_max) noexcept;

/// Writes a complete and valid head of HTTP/1.1 as a field block (RFC 9113 §8.3.1). Host becomes
/// `:authority`. The method CONNECT becomes an extended CONNECT for a WebSocket (RFC 8441 §5),
/// whose target is the path. The headers that write_field_lines() leaves out are left out here too.
/// No intermediary may index credentials and cookies. Allocates nothing. Returns: the end of the
/// block.
char* write_request_block(std::string_view scheme, std::string_view head, char* out) noexcept;

}  // namespace weir::http
